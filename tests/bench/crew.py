"""Client processes, each with a connection of its own, that do the same work at the same time."""

import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from types import TracebackType
from typing import Self

from bench.measure import Backend

# One piece of work; returns how many rows it was about. At the top of a module, where processes find it by name.
Work = Callable[[Backend], int]
# Prepares pieces of work whose making shall not be timed.
Prepare = Callable[[Backend], list[Work]]


class Crew:
    def __init__(self, url: str, size: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipes: list[Pipe] = []
        self._processes = []
        for number in range(size):
            here, there = spawn.Pipe()
            process = spawn.Process(target=_member, args=(there, url, number), daemon=True)
            process.start()
            there.close()  # so that a member's death is noticed
            self._pipes.append(here)
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            if error:
                process.terminate()
            else:
                pipe.send(None)
            process.join()

    def rate(self, work: Work, seconds: float) -> float:
        """Rows per second while all processes repeat a piece of work for a number of seconds."""
        return self._rate("repeat", work, seconds)

    def do(self, work: Work, times: int) -> int:
        """Each process does a piece of work the given number of times. Returns the number of rows of all processes."""
        return sum(rows for rows, _ in self._answers("times", work, times))

    def prepare(self, prepare: Prepare) -> None:
        self._answers("prepare", prepare)

    def rate_of_prepared(self) -> float:
        """Rows per second while all do what they have prepared."""
        return self._rate("do")

    def _rate(self, *order: object) -> float:
        # A process that ends early leaves the machine to the others, so each process counts by its own time.
        return sum(rows / seconds for rows, seconds in self._answers(*order))

    def _answers(self, *order: object) -> list[tuple[int, float]]:
        for pipe in self._pipes:
            pipe.send(order)
        answers = [pipe.recv() for pipe in self._pipes]
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers


def _member(pipe: Pipe, url: str, number: int) -> None:
    random.seed(number)
    prepared: list[Work] = []
    with Backend(url) as backend:
        while order := pipe.recv():
            try:
                start = time.monotonic()
                rows = 0
                match order:
                    case "repeat", work, seconds:
                        while time.monotonic() < start + seconds:
                            rows += work(backend)
                    case "times", work, times:
                        rows = sum(work(backend) for _ in range(times))
                    case "prepare", prepare:
                        prepared = prepare(backend)
                    case ("do",):
                        for work in prepared:
                            rows += work(backend)
                pipe.send((rows, time.monotonic() - start))
            except Exception as error:
                pipe.send(error)
