"""A batch job in a process of its own, so that upkeep goes on beside it and its memory comes back. Crawlers come first.

It runs once for each line on its standard input and answers with one of JSON. It ends when it has nothing to remember,
or more than it may, and when its worker has.
"""

import _thread
import json
import os
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import psycopg

from recrawl import store
from recrawl.jobs.job import Job
from recrawl.jobs.registry import JOBS

# Lower than all others, from when it computes: beside jobs on 10M pages and two cores a pop takes 10 % less than for 5
# and the jobs no longer. It begins as fast as ever, and so a worker that is told to stop waits no longer for it.
PRIORITY = 10
ABANDONED_AFTER = 2.0  # seconds: what computes does not listen


def main(name: str, url: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no answer
    orders: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=[orders], daemon=True).start()
    job: Job | None = None
    while orders.get():
        started = time.monotonic()
        try:
            if job is None:
                job = JOBS[name].load()(url)
                os.nice(PRIORITY)
            outcome: dict[str, Any] = {"ok": True, "said": job.run()}
        except Exception as error:
            outcome = {"ok": False, "said": " ".join((str(error) or type(error).__name__).split())}
        stays = False
        if job is not None and outcome["ok"]:
            with suppress(psycopg.Error):  # what it did is done; it begins anew the next time
                stays = 0 < job.remembers() <= store.memory(url)
        outcome |= {"seconds": round(time.monotonic() - started, 3), "stays": stays}
        print(json.dumps(outcome), file=answers, flush=True)
        if not stays:
            return


def _listen(orders: "SimpleQueue[str]") -> None:
    """A worker that was killed says nothing more: what it asked for is somebody else's now."""
    for line in sys.stdin:
        orders.put(line)
    orders.put("")
    _thread.interrupt_main()
    time.sleep(ABANDONED_AFTER)
    os._exit(1)


if __name__ == "__main__":
    try:
        main(sys.argv[1], os.environ["DATABASE_URL"])
    except KeyboardInterrupt:
        sys.exit(130)
