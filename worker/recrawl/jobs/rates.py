"""Learns from all pages how often the pages of each host tend to change; new pages start from that."""

import numpy as np

from recrawl import store
from recrawl.jobs.crawl import by_host
from recrawl.jobs.job import Job, Tell
from recrawl.model.change import prior


class Rates(Job):
    def run(self, tell: Tell = lambda _: None) -> str:
        with store.run(self.url, "rates") as run:
            tell("reading what the fetches saw")
            evidence = store.evidence(self.url)
            hosts, order, first = by_host(evidence.host_id)
            tell(f"learning from {len(order):,} pages on {len(hosts):,} hosts")
            priors = prior.fit(first, evidence.changes[order], evidence.days[order])
            run.put(
                "put_priors",
                np.concatenate(([0], hosts)),  # host 0 stands for all others
                np.append(priors.all_a, priors.a),
                np.append(priors.all_b, priors.b),
            )
            rate = priors.all_a / priors.all_b
            run.message = (
                f"{len(order):,} pages on {len(hosts):,} hosts; on average a page changes {rate:.3g} times a day"
            )
        return run.message
