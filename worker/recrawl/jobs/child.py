"""A batch job in a process of its own: upkeep goes on while it runs, and its memory is freed when it ends.

The job runs once for each line on standard input, and answers each line with a line of JSON. The process ends after
a run that failed or left nothing to remember, when it remembers more than the setting `memory` allows, and when the
worker has ended.
"""

import _thread
import json
import os
import signal
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

# Crawlers come first: the process gets this niceness once the job is loaded. With jobs on 10M pages and two cores, a
# call of next_pages then takes 10 % less time than at niceness 5, and the jobs take no longer. Loading keeps the normal
# priority, so that a worker that must stop does not wait longer for it.
NICENESS = 10
ABANDONED_AFTER = 10.0  # seconds from the interrupt to a hard exit, because compiled code does not notice interrupts


def main(name: str, url: str) -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # anything else that is printed must not be read as an answer
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=[requests], daemon=True).start()
    sys.unraisablehook = _interrupt_again
    job: Job | None = None
    while requests.get():
        started = time.monotonic()
        try:
            if job is None:
                job = JOBS[name].load()(url)
                os.nice(NICENESS)
            outcome: dict[str, Any] = {"ok": True, "message": job.run()}
        except Exception as error:
            outcome = {"ok": False, "message": " ".join((str(error) or type(error).__name__).split())}
        keeps_running = False
        if job is not None and outcome["ok"]:
            with suppress(psycopg.Error):  # the run itself has succeeded; only its memory is lost
                keeps_running = 0 < job.remembers() <= store.reads.memory(url)
        outcome |= {"seconds": round(time.monotonic() - started, 3), "keeps_running": keeps_running}
        if not keeps_running:
            # When the worker has the answer, it closes standard input, and _listen() then interrupts this process.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            print(json.dumps(outcome), file=replies, flush=True)
        except BrokenPipeError:  # the worker has ended
            os._exit(1)
        if not keeps_running:
            return


def _listen(requests: "SimpleQueue[str]") -> None:
    """Reads the requests. Ends this process when its worker has ended, because another worker may run the job then."""
    for line in sys.stdin:
        requests.put(line)
    requests.put("")
    _thread.interrupt_main()
    time.sleep(ABANDONED_AFTER)
    os._exit(1)


def _interrupt_again(lost: Any) -> None:
    """Interrupts this process again: Python drops an exception, even an interrupt, that is raised inside a callback of
    compiled code."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    try:
        main(sys.argv[1], os.environ["DATABASE_URL"])
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt that comes at the end prints no traceback
