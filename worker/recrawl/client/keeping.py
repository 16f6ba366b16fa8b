"""Keeps the pages in hand: extends their leases, and gives pages back that must not be requested any more."""

import asyncio
import time

from recrawl.client.database import Database
from recrawl.client.misses import Misses
from recrawl.client.shell import Shell

EVERY = 0.25  # seconds; pages of a blocked host are given back within twice that time


class Keeper:
    def __init__(self, database: Database, asking: Database, shell: Shell, misses: Misses, lease: float) -> None:
        self._database = database
        self._asking = asking
        self._shell = shell
        self._in_hand = shell.in_hand
        self._misses = misses
        self._lease = lease  # seconds

    async def give_back(self) -> None:
        """Pages whose slot has passed, and pages of blocked hosts."""
        while True:
            await asyncio.sleep(EVERY)
            self._shell.do(self._in_hand.drop_late(time.monotonic()))
            self._misses.tell_sometimes()
            if leases := self._in_hand.leases_before_requests():
                blocked = await self._asking.blocked_pages(leases)
                self._shell.do(self._in_hand.give_back("blocked", pages=blocked))

    async def extend_leases(self) -> None:
        """This does not share a loop with give_back: to extend a lease may have to wait for a report on that lease."""
        while True:
            await asyncio.sleep(EVERY)
            for lease_id in self._in_hand.leases_ending_by(time.monotonic() + self._lease / 2):
                until = await self._database.extend_lease(lease_id, self._lease)
                self._shell.do(self._in_hand.extended(lease_id, until))
