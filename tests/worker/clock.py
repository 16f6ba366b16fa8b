"""A clock in the test's hand for whole processes: libfaketime stands between them and the machine's.

The clock that only runs forward, by which programs wait, stays as it is.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Self

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


def remove_remains() -> None:
    """Removes the semaphores and the shared memory of processes that no longer run. libfaketime names them by the
    number of the process. As long as they exist, a new process with the same number may not start."""
    for remains in Path("/dev/shm").glob("*faketime_s*_*"):
        if not Path("/proc", remains.name.rpartition("_")[2]).exists():
            with suppress(OSError):  # of another user, or another test was first
                remains.unlink()


class Clock:
    """Of the processes that are started with its environment."""

    def __init__(self, file: Path) -> None:
        self.file, self.seconds = file, 0  # that it is ahead
        self.environment = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def __enter__(self) -> Self:
        self.step(0)
        return self

    def __exit__(self, *_: object) -> None:
        self.file.unlink()

    def step(self, seconds: int) -> None:
        self.seconds += seconds
        new = self.file.with_suffix(".new")
        new.write_text(f"{self.seconds:+d}\n")
        new.chmod(0o644)
        new.replace(self.file)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Programs that start now are under it."""
        remove_remains()
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name in self.environment:
                del os.environ[name]
            os.environ.update(before)

    @contextmanager
    def started(self, server: AbstractContextManager[str]) -> Iterator[str]:
        """A server that is started under it."""
        with self.applied():
            url = server.__enter__()
        try:
            yield url
        finally:
            server.__exit__(None, None, None)
