"""The asyncio side of InHand: it does what the transitions of pages ask for, and tells InHand what happens.

The four parts next to it (Asker, Sender, LeaseKeeper, OwnRequests) use the runner. It knows none of them.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from recrawl.client.answers import Result
from recrawl.client.database import GaveUp
from recrawl.client.in_hand import Answered, CancelVisit, InHand, TellOutcome
from recrawl.client.options import Hook
from recrawl.client.page import Kind, Page

log = logging.getLogger("recrawl.client")

SEND_AT = 100  # from this number of unsent results on, the sender does not wait

VisitFunction = Callable[[Page], Awaitable[object]]


class Runner:
    def __init__(self, in_hand: InHand, user_agent: str, on_outcome: Hook | None) -> None:
        self.in_hand = in_hand
        self.failure: BaseException | None = None  # an error that ended one of the parts
        self.consumers = 0  # they wait for a page
        self._has_page = asyncio.Event()  # a page is ready, or the client is closed
        self.has_results = asyncio.Event()  # SEND_AT results are unsent
        self.has_room = asyncio.Event()  # at most `ask_below` pages are visited or in line, or the client is closed
        self.ask_below = -1
        self._user_agent = user_agent
        self._on_outcome = on_outcome
        self._timer: asyncio.TimerHandle | None = None  # for the next page that becomes ready
        self._visits: dict[Page, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()  # the parts' tasks
        self.answers: dict[Page, asyncio.Future[Answered]] = {}  # that a part of the client waits for

    def open(self) -> None:
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def catch_up(self) -> None:
        """Does what transitions left to do."""
        while self.in_hand.to_do:
            match self.in_hand.to_do.popleft():
                case TellOutcome() as outcome:
                    self._tell(outcome)
                case CancelVisit(page):
                    if task := self._visits.get(page):
                        task.cancel()
                case Answered(page) as answered:
                    if (answer := self.answers.get(page)) and not answer.done():
                        answer.set_result(answered)
        if len(self.in_hand.results) >= SEND_AT:
            self.has_results.set()
        if self.in_hand.pages_and_visits <= self.ask_below:
            self.has_room.set()
        if self.in_hand.can_yield:
            self._has_page.set()
        due = self.in_hand.next_due
        if due != (self._timer and self._timer.when()):
            if self._timer:
                self._timer.cancel()
            self._timer = None if due is None else self._loop.call_at(due, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.in_hand.due(time.monotonic())
        self.catch_up()

    def _tell(self, outcome: TellOutcome) -> None:
        if self._on_outcome:
            try:
                self._on_outcome(*outcome)
            except Exception:
                self.in_hand.counts["hook_raised"] += 1
                log.exception("on_outcome raised")

    def page(self, row: Any, kind: Kind) -> Page:
        return Page(row, self._user_agent, kind, self._settle)

    def _settle(self, page: Page, result: Result | None, body: bytes | str | None, slot_used: bool) -> bool:
        """A page was reported, declined or released, in any thread."""
        if not self.in_hand.try_settle(page, slot_used):
            self.in_hand.counts["reported_again"] += result is not None
            return False
        if threading.get_ident() == self._thread:
            self._after_settling(page, result, body)
        else:
            self._loop.call_soon_threadsafe(self._after_settling, page, result, body)
        return True

    def _after_settling(self, page: Page, result: Result | None, body: bytes | str | None) -> None:
        answer = self.answers.get(page) if page.kind == "sitemap" and result is not None else None
        if answer and not answer.done():
            answer.set_result(Answered(page, result, body))  # its URLs are stored first, then `finish` is called
        else:
            self.finish(page, result, body)

    def finish(self, page: Page, result: Result | None, body: bytes | str | None = None) -> None:
        self.in_hand.end_settled(page, result, body)
        self.catch_up()

    def next(self) -> Page | None:
        page = self.in_hand.next(time.monotonic())
        self.catch_up()
        return page

    async def wait_for_page(self) -> None:
        if self.in_hand.is_closed or self.in_hand.can_yield:  # on_outcome may have closed it, or made a page ready
            return
        self._has_page.clear()
        self.consumers += 1
        try:
            await self._has_page.wait()
        finally:
            self.consumers -= 1

    def add(self, request: Page) -> None:
        self.in_hand.add(request, time.monotonic())
        self.catch_up()

    def close(self) -> None:
        self.in_hand.close()
        self.catch_up()
        self.has_room.set()
        self._has_page.set()

    def expect_answer(self, page: Page) -> "asyncio.Future[Answered]":
        """The answer to a page, when its request has ended."""
        answer = self.answers[page] = self._loop.create_future()
        answer.add_done_callback(lambda _: self.answers.pop(page))
        return answer

    def spawn(self, visit: VisitFunction, page: Page) -> asyncio.Task[None]:
        task = self._visits[page] = asyncio.create_task(self._visit(visit, page))
        self.in_hand.spawned(page)
        task.add_done_callback(lambda _: self._visit_over(page))  # it is called also if the task never began
        return task

    async def _visit(self, visit: VisitFunction, page: Page) -> None:
        self.in_hand.give_back_if_late(page, time.monotonic(), "missed")  # a busy loop begins tasks late
        if page.is_settled:
            self.catch_up()
            return
        try:
            await visit(page)
        except Exception as error:
            self.in_hand.counts["raised"] += 1
            what = f"the visit of {page.url} raised {type(error).__name__}: {error}"
            if self.in_hand.counts["raised"] == 1:  # a first crawl must not fail in silence
                log.warning("%s. The next errors are logged at level INFO", what)
            else:
                log.info("%s", what)
            if not page.is_settled:
                page.report(0)

    def _visit_over(self, page: Page) -> None:
        del self._visits[page]
        self.in_hand.visit_over(page)
        self.catch_up()

    async def begins(self, page: Page) -> bool:
        self.in_hand.prepared(page, time.monotonic())
        self.catch_up()
        while not page.is_settled:
            wait = self.in_hand.try_begin(page, time.monotonic())
            self.catch_up()
            if not wait:
                return not page.is_settled
            await asyncio.sleep(wait)
        return False

    def cancel_visits(self) -> None:
        for task in self._visits.values():
            task.cancel()

    async def end_visits(self, seconds: float) -> None:
        """Waits for visits, then cancels those that still run."""
        if self._visits:
            await asyncio.wait(self._visits.values(), timeout=seconds)
        self.cancel_visits()
        if self._visits:
            await asyncio.wait(self._visits.values(), timeout=1)
        self.in_hand.abandon()
        self.catch_up()

    def background(self, work: Coroutine[Any, Any, None], name: str = "loop") -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                with contextlib.suppress(GaveUp):  # the end of the client logs it
                    await work
            except Exception as error:
                self.failure = self.failure or error
                self.close()

        task = asyncio.create_task(guarded(), name=name)
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task

    async def end_tasks(self, name: str, seconds: float) -> None:
        """Waits for the tasks with that name, then cancels those that still run."""
        if tasks := [task for task in self._others if task.get_name() == name]:
            _, unfinished = await asyncio.wait(tasks, timeout=seconds)
            for task in unfinished:
                task.cancel()
            if unfinished:
                await asyncio.wait(unfinished, timeout=5)
