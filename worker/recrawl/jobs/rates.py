"""Learns how often the pages of each host usually change. New pages start with this rate."""

from functools import partial

import numpy as np

from recrawl import store
from recrawl.jobs.allocation_input import by_host
from recrawl.jobs.job import Job, Tell, silent
from recrawl.model.change import prior
from recrawl.store import reads
from recrawl.words import count, things


class Rates(Job):
    def run(self, tell: Tell = silent) -> str:
        with store.runs.run(self.url, "rates", self.as_of) as run:
            tell("reading what the fetches found")
            newest_page = reads.newest_page(run.connection)
            watch = partial(tell, "reading what the fetches found", of=newest_page)
            evidence = reads.evidence(self.url, watch=watch)
            if not len(evidence.host_id):
                run.message = "no page has been fetched twice yet, so no change rate can be learned"
                return run.message
            hosts, order, starts = by_host(evidence.host_id)
            tell(f"learning the change rates of {things(len(order), 'page')} on {things(len(hosts), 'host')}")
            priors = prior.fit(starts, evidence.changes[order], evidence.days[order])
            run.put(
                "put_priors",
                np.concatenate(([0], hosts)),  # host 0 stands for all others
                np.append(priors.all_a, priors.a),
                np.append(priors.all_b, priors.b),
            )
            rate = priors.all_a / priors.all_b
            run.message = (
                f"{things(len(order), 'page')} on {things(len(hosts), 'host')}; "
                f"a page changes {count(rate)} times a day on average"
            )
        return run.message
