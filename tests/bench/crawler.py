"""A crawler that runs during a measurement, and the cost of its pops in this time."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from bench import calls
from bench.measure import Backend
from bench.table import Line, at_most


@dataclass(frozen=True)
class Pop:
    seconds: float
    cpu: float  # seconds of its server process


class Crawler(threading.Thread):
    """Pops and reports, ten times a second."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.pops: list[Pop] = []
        self.done, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def run(self) -> None:
        with Backend(self.url) as backend:
            while not self.done.wait(0.05):
                self.goes_on.wait()
                before, started = backend.cpu(), time.monotonic()
                pages = calls.pop(backend, calls.ONE_A_HOST)
                seconds = time.monotonic() - started
                self.pops.append(Pop(seconds, (backend.cpu() - before) / 1e3))
                calls.report_arrays(backend, calls.fetched(pages))

    def pops_while(self, call: Callable[[], object]) -> list[Pop]:
        first = len(self.pops)
        call()
        return self.pops[first:]

    def pause(self) -> None:
        self.goes_on.clear()

    def resume(self) -> None:
        self.goes_on.set()


@contextmanager
def crawling(url: str) -> Iterator[Crawler]:
    crawler = Crawler(url)
    crawler.start()
    try:
        yield crawler
    finally:
        crawler.resume()
        crawler.done.set()
        crawler.join()


def compared(when: str, during: list[Pop], otherwise: list[Pop], bound: float) -> Iterator[Line]:
    """The medians of pops ÷ of others."""
    for what, name in (("seconds", "time"), ("cpu", "CPU")):
        now, usual = (median(getattr(pop, what) for pop in pops) for pops in (during, otherwise))
        detail = f" ({now * 1e3:.3g} and {usual * 1e3:.3g} ms)"
        yield at_most(f"median {name} of a pop {when}", now / usual, bound, "×", detail)
