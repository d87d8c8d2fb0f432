"""The shop floor: buyers pay at the simulated processor, workers fulfil from the stock of account 8101, and what became of it all."""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from clients.mail.letter import Letter
from operations.deps import Deps
from operations.ledger.reconciliation import ISSUANCE_SOON_SECONDS, Reconciliation
from operations.storefronts.sales.order_fulfilment import Fulfilment
from simulators.network.faults import NetworkFault
from storage.engine.store import Store
from storage.events import list_events
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import OrderRow
from storage.orphans import any_orphans, recover_orphans
from storage.replicas import REPLICA_LEASE_SECONDS, renew_replica
from tests.network_facts import ACCOUNT, DRAW, HOUR, MINUTE
from tests.top_ups.counter import BUYER, TopUpShop, open_counter

PRICE = 1000


@dataclass(slots=True)
class Floor:
    shop: TopUpShop
    reconciling: list[Reconciliation] = field(default_factory=list[Reconciliation])
    births: int = 0

    @property
    def deps(self) -> Deps:
        return self.shop.deps

    async def paid(self, plan: str = "nordic") -> str:
        """An order that was paid, and whose payment was told of."""
        begun = await self.shop.begin(plan)
        await self.shop.pay(begun.order)
        await self.shop.told()
        return begun.order

    async def row(self, order: str) -> OrderRow:
        return await self.shop.row(order)

    async def end(self, order: str) -> tuple[str, str | None, str | None]:
        return await self.shop.end(order)

    async def ledger(self, order: str) -> IssuanceRow | None:
        return await self.shop.world.store.read(find_issuance, organisation=self.shop.me.organisation, key=order)

    async def work(self, steps: int = 1, *, every: float = 0, worker: Fulfilment | None = None) -> None:
        """Steps of a worker, with a pause before each; the process lives, and lost rows are recovered and looked into."""
        world = self.shop.world
        for _ in range(steps):
            world.clock.advance(every)
            await world.store.write(renew_replica, replica=world.journal.replica, now=world.clock.now())
            if await world.store.read(any_orphans, now=world.clock.now()):
                await world.store.write(recover_orphans, now=world.clock.now())
            await (worker or self.shop.worker).step()

    async def reconcile(self, seconds: float = 0) -> None:
        """The rounds of the worker that finds out, for so long: the first after half a minute, the last at the end."""
        if not self.reconciling:
            self.reconciling.append(Reconciliation(self.deps, self.shop.reports.append))
        first = min(seconds, ISSUANCE_SOON_SECONDS)
        rounds = math.ceil((seconds - first) / (5 * MINUTE))
        for later in (first, *[(seconds - first) / max(1, rounds)] * rounds):
            self.shop.world.clock.advance(later)
            await self.reconciling[0].step()

    async def born(self, store: Store | None = None) -> tuple[Deps, Fulfilment]:
        """A process of its own, which lives."""
        self.births += 1
        deps = replace(self.deps, replica=f"rpl_{self.births}", store=store or self.deps.store)
        world = self.shop.world
        await world.store.write(renew_replica, replica=deps.replica, now=world.clock.now())
        return deps, Fulfilment(deps, self.shop.reports.append)

    async def mourn(self) -> None:
        """A process that died is known to be dead."""
        self.shop.world.clock.advance(REPLICA_LEASE_SECONDS + 150)
        await self.work()

    async def letters(self, to: str | None = None) -> list[Letter]:
        """The mails so far, all or those to one."""
        return [letter for letter in await self.shop.world.letters() if to in (None, letter.to)]

    async def told(self) -> list[str]:
        """The ICCIDs that esim.issued told of."""
        of = self.shop.me.organisation
        rows = await self.shop.world.store.read(list_events, organisation=of, intent=None, after=None, most=100)
        return [orjson.loads(row.data)["iccid"] for row in rows if row.type == "esim.issued"]

    def strike(self, times: int | None = 1, **fault: Any) -> None:
        self.shop.trouble(NetworkFault(DRAW, times=times, **fault))

    def draws(self) -> int:
        return sum(call.method == DRAW and "accountForSubs" in str(call.payload) for call in self.shop.world.sandbox.calls)

    async def gone(self) -> int:
        """How many eSIMs left the stock since the test began."""
        network = await self.shop.world.network()
        return sum((line.sim.affected_at or 0) >= self.began for line in network.lines_of(ACCOUNT))

    @property
    def began(self) -> int:
        clock = self.shop.world.clock
        return int(clock.wall - (clock.steady - 1000.0))

    async def empty_stock(self, *, but: int = 0) -> None:
        network = await self.shop.world.network()
        for line in [line for line in network.lines_of(ACCOUNT) if line.sim.status == "FREE"][but:]:
            line.sim.status = "AFFECTED"

    async def at_processor(self, trouble: str, path: str = "/v1/refunds", **more: Any) -> None:
        """The next calls of the processor meet trouble."""
        await self.shop.world.ask_payments("POST", "faults", {"trouble": trouble, "path": path, **more})

    async def calm(self) -> None:
        await self.shop.world.ask_payments("DELETE", "faults")

    async def asked_processor(self) -> int:
        calls = (await self.shop.world.ask_payments("GET", "calls"))["calls"]
        return len(calls) if isinstance(calls, list) else 0

    async def lose_news(self) -> None:
        """What happened at the processor so far is told to nobody."""
        async with self.shop.world.payments.turn(writes=True) as state:
            state.pending.clear()
            state.hooks.waiting.clear()

    def refunds(self) -> list[int]:
        return [refund.amount for refund in self.shop.world.payments.state.book(self.shop.payee).refunds.values()]

    async def charge(self, order: str) -> str:
        intent = (await self.row(order)).payment_intent
        charges = self.shop.world.payments.state.book(self.shop.payee).charges.values()
        return next(charge.id for charge in charges if charge.intent == intent and charge.status == "succeeded")

    async def is_settled_well(self, order: str) -> bool:
        """Paid implies exactly one of: an eSIM that the buyer has, all of the money back, a visible review."""
        row, ledger = await self.row(order), await self.ledger(order)
        has = row.status == "ready" and row.iccid is not None and ledger is not None and ledger.held == row.iccid
        back = row.status == "failed" and row.refund == "done" and (ledger is None or ledger.held is None)
        review = row.status == "needs_review"
        return [has, back, review].count(True) == 1


@asynccontextmanager
async def open_floor(folder: Path, url: str | None = None) -> AsyncGenerator[Floor]:
    """No fault of ours may happen."""
    async with open_counter(folder, url) as counter:
        yield Floor(counter)


__all__ = ["ACCOUNT", "BUYER", "DRAW", "HOUR", "MINUTE", "PRICE", "Floor", "open_floor"]
