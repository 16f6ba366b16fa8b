"""Keeps the pages in hand: extends their leases, and gives pages back that must not be requested any more."""

import asyncio
import time
from dataclasses import dataclass

from recrawl.client.database import Database
from recrawl.client.missed_slots import MissedSlots
from recrawl.client.runner import Runner

EVERY = 0.25  # seconds; pages of a blocked host are given back within twice that time
SHORTEST = 1.0  # seconds by which a lease can be extended


@dataclass(eq=False)
class LeaseKeeper:
    database: Database
    runner: Runner
    missed_slots: MissedSlots
    lease: float  # seconds

    async def give_back_for_ever(self) -> None:
        """Pages whose slot has passed, and pages of blocked hosts."""
        while True:
            await asyncio.sleep(EVERY)
            self.runner.in_hand.drop_late(time.monotonic())
            self.runner.catch_up()
            self.missed_slots.tell_sometimes()
            leases, hosts = self.runner.in_hand.leases_and_hosts_before_requests()
            if leases:
                pages = await self.database.blocked_pages(leases)
                self.runner.in_hand.give_back("blocked", pages=pages)
            if hosts:
                self.runner.in_hand.give_back("blocked", await self.database.blocked_hosts(hosts))
            self.runner.catch_up()

    async def extend_leases_for_ever(self) -> None:
        """This is a loop of its own, because extending a lease may have to wait for a report on that lease."""
        while True:
            await asyncio.sleep(EVERY)
            for lease_id, until in self.runner.in_hand.leases_ending_by(time.monotonic() + self.lease / 2).items():
                # The lease then ends `lease` seconds from now. The setting longest_lease limits how late it may end.
                missing = time.monotonic() + self.lease - until
                ends_at = await self.database.extend_lease(lease_id, min(max(missing, SHORTEST), self.lease))
                self.runner.in_hand.extended(lease_id, ends_at)
                self.runner.catch_up()
