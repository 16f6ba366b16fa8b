"""How the worker runs each kind of job: upkeep, jobs at intervals, and batch jobs in processes of their own."""

import _thread
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from recrawl import store
from recrawl.jobs.registry import JobEntry
from recrawl.jobs.upkeep import Upkeep

log = logging.getLogger(__name__)

LONGEST_PAUSE = 5.0  # seconds between two tries to reach a database that does not answer
LONGEST_RUN = timedelta(hours=6)  # a longer run of a batch job is killed
INTERRUPT_EVERY = 10.0  # seconds; an interrupted run needs a few to store that it was stopped
# If the view job_schedule says that a job is due while its process works, the run is dead or never began. After this
# time the process is killed.
KILL_AFTER_DUE = timedelta(minutes=3)
SESSION_ENDS = 5.0  # seconds to wait until the server has noticed that a job's process died


class Health:
    """Whether a job that runs at intervals works. Logs and stores only the changes: it fails now, it works again."""

    def __init__(self, job: str, url: str) -> None:
        self.job, self.url = job, url
        self.works = True  # what the last line of the log says: it works, or it fails
        # Whether the job works, as the database has it. None = unknown: an earlier worker may have stored a failure.
        self.stored: bool | None = None

    def note(self, error: Exception | None = None) -> None:
        """Call this after each run, with the error if it failed."""
        if error and self.works:
            unexpected = None if isinstance(error, psycopg.Error) else error  # its traceback is logged
            log.warning("%s fails, trying again: %s", self.job, first_line(error), exc_info=unexpected)
        elif not error and not self.works:
            log.info("%s works again", self.job)
        self.works = error is None
        if self.stored is not self.works:
            with suppress(psycopg.Error), store.connect(self.url, "recrawl schedule") as connection:
                store.schedule.note_health(connection, self.job, first_line(error) if error else None)
                self.stored = self.works


class UpkeepRunner:
    """Runs upkeep. Logs once that the database does not answer, and once that it answers again.

    If the database cannot be started again, the worker ends with that `failure`.
    """

    def __init__(self, upkeep: Upkeep, restart: Callable[[], None]) -> None:
        self.upkeep, self.restart = upkeep, restart
        self.health = Health("upkeep", upkeep.url)
        self.is_away = False  # the database
        self.patience = 0.0  # seconds until the next try
        self.again_at = 0.0  # the monotonic time of the next try
        self.failure: Exception | None = None

    def __call__(self) -> None:
        if time.monotonic() < self.again_at:
            return
        try:
            self.upkeep.run()
        except psycopg.Error as error:
            self.patience = min(2 * self.patience, LONGEST_PAUSE) or 0.1
            self.again_at = time.monotonic() + self.patience
            if not store.is_away(error):
                self.health.note(error)
                return
            if not self.is_away:
                log.warning("the database does not answer, trying again: %s", first_line(error))
            self.is_away = True
            self._restart()
        else:
            if self.is_away:
                log.info("the database answers again")
            self.is_away, self.patience = False, 0.0
            if not self.upkeep.is_stopped:
                self.health.note()

    def _restart(self) -> None:
        try:
            self.restart()
        except Exception as failure:
            self.failure = failure
            _thread.interrupt_main()


class IntervalRunner:
    """Runs a short job at intervals, in this process. A failed run is tried again at the next interval."""

    def __init__(self, entry: JobEntry, url: str) -> None:
        self.entry = entry
        self.job = entry.load()(url)
        self.health = Health(entry.name, url)

    def __call__(self) -> None:
        if self.job.is_stopped:
            return
        try:
            self.job.run()
        except Exception as error:
            is_away = isinstance(error, psycopg.Error) and store.is_away(error)  # upkeep logs this
            if not self.job.is_stopped and not is_away:
                self.health.note(error)
        else:
            self.health.note()


class BatchRunner:
    """Runs a batch job in a process of its own (recrawl.jobs.child). The process prints one line and ends. It is
    killed if it runs too long, gives no sign of life, or prints no JSON.

    A failure is logged and stored. If the worker stops, it is only logged. store/runs.py has the life of the run in the
    process.
    """

    def __init__(self, entry: JobEntry, url: str) -> None:
        self.entry, self.url = entry, url
        self.process: subprocess.Popen[str] | None = None
        self.is_under_way = self.is_running = self.is_stopped = False
        self.given_up = ""  # why its process was killed
        self.due_since: float | None = None  # the monotonic time since when the job is due although it runs

    def __call__(self, why: str, newest: int, may_run: Callable[[], bool] = lambda: True) -> None:
        """Runs the job once. `newest` is the highest token of the runs before this one."""
        try:
            if not self.is_stopped and may_run():
                self.is_running, self.given_up = True, ""
                self._record(self._outcome(), why, newest)
        finally:
            self.is_under_way = self.is_running = False

    def _outcome(self) -> dict[str, Any]:
        try:
            return self._run()
        except (OSError, ValueError) as error:  # it cannot be started, or its answer is no JSON
            if self.process:
                self.process.kill()
                self.process.wait()
            self.process = None
            return {"ok": False, "message": f"its process failed: {error}"}

    def _run(self) -> dict[str, Any]:
        process = self.process = subprocess.Popen(
            # -P: Python must not look for modules in the folder in which `recrawl` was started.
            [sys.executable, "-P", "-m", "recrawl.jobs.child", self.entry.name],
            env=os.environ  # the URL is not in the command line, because everybody can read that
            | {"DATABASE_URL": self.url, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.PIPE,  # open until the process has answered, or this worker has ended
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only the worker, which stops the job
        )
        assert process.stdin and process.stdout
        if self.is_stopped:
            self.stop()
        # The other batch jobs wait for this one.
        limit = threading.Timer(LONGEST_RUN.total_seconds(), self._give_up, [f"it ran for {LONGEST_RUN}"])
        limit.daemon = True
        limit.start()
        try:
            outcome: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
            process.stdin.close()
            code = process.wait()
        finally:
            limit.cancel()
        process.stdout.close()
        self.process = None
        ending = "SIGKILL; out of memory?" if code == -signal.SIGKILL else f"exit code {code}"
        how = f"was killed: {self.given_up}" if self.given_up else f"died ({ending})"
        return outcome or {"ok": False, "message": f"its process {how}", "has_died": True}

    def kill_if_frozen(self, is_due: bool) -> None:
        """Call this after each question which jobs are due (see KILL_AFTER_DUE)."""
        now = time.monotonic()
        self.due_since = (self.due_since or now) if is_due and self.is_running else None
        if self.due_since is not None and now - self.due_since > KILL_AFTER_DUE.total_seconds():
            self._give_up("it gave no sign of life")

    def _give_up(self, why: str) -> None:
        self.given_up = why
        self.kill()

    def _record(self, outcome: dict[str, Any], why: str, newest: int) -> None:
        """Logs the outcome, and stores a failure."""
        if self.is_stopped:
            outcome = {"ok": False, "message": "stopped"}
        level = logging.INFO if outcome["ok"] or self.is_stopped else logging.WARNING
        log.log(level, _line({"job": self.entry.name, "why": why} | outcome))
        if not outcome["ok"] and not self.is_stopped:
            self._note_failure(newest, outcome["message"], outcome.get("has_died", False))

    def _note_failure(self, newest: int, message: str, has_died: bool) -> None:
        until = time.monotonic() + SESSION_ENDS
        with suppress(psycopg.Error), store.connect(self.url, "recrawl schedule") as connection:
            while not store.schedule.note_failure(connection, self.entry.name, newest, message, has_died):
                if self.is_stopped or time.monotonic() > until:
                    break
                time.sleep(0.1)

    def stop(self) -> None:
        """Gives the run up. The chunks that it wrote stay. The next run computes everything again."""
        self.is_stopped = True
        if process := self.process:
            threading.Thread(target=_interrupt, args=[process], daemon=True).start()

    def kill(self) -> None:
        if process := self.process:
            process.kill()


def _interrupt(process: "subprocess.Popen[str]") -> None:
    """Interrupts until the process ends: Python loses an interrupt that arrives inside a callback of compiled code."""
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(INTERRUPT_EVERY)


def first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _line(fields: dict[str, Any]) -> str:
    """One line for tools that search logs: name=value, with quotes around a value of several words."""
    words = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    is_plain = re.compile(r"[\w.-]+").fullmatch
    return " ".join(f"{name}={word if is_plain(word) else json.dumps(word)}" for name, word in words.items())
