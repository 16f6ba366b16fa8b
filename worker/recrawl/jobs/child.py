"""A batch job in a process of its own: upkeep goes on while it runs, and its memory is freed when it ends.

The process runs the job once, prints the outcome as one line of JSON, and ends. It ends early if its worker ends.
"""

import _thread
import json
import os
import signal
import sys
import threading
import time
from typing import Any

from recrawl.jobs.registry import JOBS

# Crawlers come first: the process gets this niceness once the job is loaded. With jobs on 10M pages and two cores, a
# call of next_pages then takes 10 % less time than at niceness 5, and the jobs take no longer. Loading keeps the normal
# priority, so that a worker that must stop does not wait longer for the loading.
NICENESS = 10
ABANDONED_AFTER = 10.0  # seconds from the interrupt to a hard exit, because compiled code does not notice interrupts


def main(name: str, url: str) -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # anything else that is printed must not be read as the answer
    threading.Thread(target=_end_with_worker, daemon=True).start()
    sys.unraisablehook = _interrupt_again
    started = time.monotonic()
    try:
        job = JOBS[name].load()(url)
        os.nice(NICENESS)
        outcome: dict[str, Any] = {"ok": True, "message": job.run()}
    except Exception as error:
        outcome = {"ok": False, "message": " ".join((str(error) or type(error).__name__).split())}
    outcome["seconds"] = round(time.monotonic() - started, 3)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    try:
        print(json.dumps(outcome), file=answer, flush=True)
    except BrokenPipeError:  # the worker has ended
        os._exit(1)


def _end_with_worker() -> None:
    """Ends this process when its worker has ended, because another worker may run the job then. Also ends a process
    that hangs after its answer."""
    os.read(0, 1)  # returns when the worker closes standard input: it never writes
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
