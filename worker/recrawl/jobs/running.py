"""How the worker runs each kind of job: upkeep, which outlives its database; small jobs; batch jobs."""

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg

from recrawl import store
from recrawl.jobs.registry import Entry
from recrawl.jobs.upkeep import Upkeep

log = logging.getLogger(__name__)

MOST_PATIENT = 5.0  # seconds, between two tries to reach a database that does not answer
LONGEST = timedelta(hours=6)  # a run of a batch job
SESSION_ENDS = 5.0  # seconds, after its process died; later its run is ended as any that nobody ended


class Health:
    """Of a job that runs all the time: only that it fails, and that it goes on again, is said and written down."""

    def __init__(self, job: str, url: str) -> None:
        self.job, self.url = job, url
        self.is_well = True  # as was said
        self.written: bool | None = None  # None = not yet: a worker before this one may have seen it fail

    def note(self, error: psycopg.Error | None = None) -> None:
        """Of each run: the error with which it failed, or none."""
        if error and self.is_well:
            log.warning("%s fails, trying again: %s", self.job, first_line(error))
        elif not error and not self.is_well:
            log.info("%s works again", self.job)
        self.is_well = error is None
        if self.written is not self.is_well:
            with suppress(psycopg.Error), store.connect(self.url, "recrawl schedule") as connection:
                store.note_health(connection, self.job, first_line(error) if error else None)
                self.written = self.is_well


class Ticking:
    """Upkeep that says once when the database does not answer, and once when it does again.

    Where the database cannot be started again either, the worker ends with that `failure`.
    """

    def __init__(self, upkeep: Upkeep, restart: Callable[[], None]) -> None:
        self.upkeep, self.restart = upkeep, restart
        self.health = Health("upkeep", upkeep.url)
        self.is_away = False  # the database
        self.patience = 0.0  # seconds, until it is tried again
        self.again_at = 0.0
        self.failure: Exception | None = None

    def __call__(self) -> None:
        if time.monotonic() < self.again_at:
            return
        try:
            self.upkeep.run()
        except psycopg.Error as error:
            self.patience = min(2 * self.patience, MOST_PATIENT) or 0.1
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


class Small:
    """A job of a moment, in this process: when it fails, its next turn is the next try."""

    def __init__(self, entry: Entry, url: str) -> None:
        self.entry = entry
        self.job = entry.load()(url)
        self.health = Health(entry.name, url)
        self.is_stopped = False

    def __call__(self) -> None:
        if self.is_stopped:
            return
        try:
            self.job.run()
        except psycopg.Error as error:
            if not self.is_stopped and not store.is_away(error):  # which upkeep says
                self.health.note(error)
        else:
            self.health.note()

    def stop(self) -> None:
        self.is_stopped = True
        self.job.stop()


class Batch:
    """A batch job, in a process of its own (recrawl.jobs.child)."""

    def __init__(self, entry: Entry, url: str) -> None:
        self.entry, self.url = entry, url
        self.process: subprocess.Popen[str] | None = None
        self.is_under_way = self.is_running = self.is_stopped = self.is_given_up = False

    def __call__(self, why: str, newest: int) -> None:
        """Runs it. `newest` was the last run of any job before."""
        try:
            if not self.is_stopped:
                self.is_running, self.is_given_up = True, False
                self._told(self._outcome(), why, newest)
        finally:
            self.is_under_way = self.is_running = False

    def _outcome(self) -> dict[str, Any]:
        try:
            return self._run()
        except (OSError, ValueError) as error:  # it cannot be started, or says what is no answer
            if self.process:
                self.process.kill()
                self.process.wait()
            self.process = None
            return {"ok": False, "said": f"its process failed: {error}"}

    def _run(self) -> dict[str, Any]:
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "recrawl.jobs.child", self.entry.name],
                env=os.environ | {"DATABASE_URL": self.url},  # not in its command line, which is everybody's to read
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is the worker's, who tells it
            )
        process = self.process
        assert process.stdin and process.stdout
        if self.is_stopped:
            self.stop()
        with suppress(BrokenPipeError):
            process.stdin.write("run\n")
            process.stdin.flush()
        with self._limited():
            outcome: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
            if outcome.get("stays"):
                return outcome
            process.stdin.close()
            code = process.wait()
        self.process = None
        how = f"was killed after {LONGEST}" if self.is_given_up else f"died ({_ending(code)})"
        return outcome or {"ok": False, "said": f"its process {how}", "has_died": True}

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """What hangs must not keep the other jobs from their turn for ever."""
        limit = threading.Timer(LONGEST.total_seconds(), self._give_up)
        limit.daemon = True
        limit.start()
        try:
            yield
        finally:
            limit.cancel()

    def _give_up(self) -> None:
        self.is_given_up = True
        self.kill()

    def _told(self, outcome: dict[str, Any], why: str, newest: int) -> None:
        if self.is_stopped:
            outcome = {"ok": False, "said": "stopped"}
        level = logging.INFO if outcome["ok"] or self.is_stopped else logging.WARNING
        log.log(level, _line({"job": self.entry.name, "why": why} | outcome))
        if not outcome["ok"] and not self.is_stopped:
            self._note_failure(newest, outcome["said"], outcome.get("has_died", False))

    def _note_failure(self, newest: int, said: str, has_died: bool) -> None:
        until = time.monotonic() + SESSION_ENDS
        with suppress(psycopg.Error), store.connect(self.url, "recrawl schedule") as connection:
            while not store.note_failure(connection, self.entry.name, newest, said, has_died):
                if self.is_stopped or time.monotonic() > until:
                    break
                time.sleep(0.1)

    def stop(self) -> None:
        """It is given up: what it wrote so far is complete in itself, and its next run goes on from there."""
        self.is_stopped = True
        if process := self.process:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if process := self.process:
            process.kill()


def first_line(error: psycopg.Error) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _line(fields: dict[str, Any]) -> str:
    """As those who search logs like it: name=value, quoted where it has more than a word."""
    words = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    is_plain = re.compile(r"[\w.-]+").fullmatch
    return " ".join(f"{name}={word if is_plain(word) else json.dumps(word)}" for name, word in words.items())


def _ending(code: int) -> str:
    return f"{signal.Signals(-code).name}; out of memory?" if code == -signal.SIGKILL else f"exit code {code}"
