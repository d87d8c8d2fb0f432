"""A fault of ours with one order is that order's: it is shown for review, and all others are delivered."""

from collections.abc import Callable
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

import pytest
import sqlalchemy as sa

from operations.storefronts.sales.order_fulfilment import Fulfilment
from registry.errors import StoreUnavailable
from storage.engine.sql import Command, Connection
from storage.order_queue import ORDER_LEASE_MS
from storage.orders import STOREFRONT_ORDER
from storage.replicas import renew_replica
from tests.fulfilment.floor import BUYER, Floor
from tests.issuance.road import RoadGate
from tests.wrapped_store import WrappedStore

P = ParamSpec("P")
T = TypeVar("T")
TEMPLATES = "listPrepaidPackageTemplate"
BLANK = Command(
    sa.update(STOREFRONT_ORDER).where(STOREFRONT_ORDER.c.id == sa.bindparam("named")).values(bought="{}", currency=sa.bindparam("of"))
)


def blank(connection: Connection, *, order: str, currency: str = "EUR") -> None:
    """Nobody knows what its plan was called, so that no mail to its buyer can be written."""
    connection.run(BLANK, named=order, of=currency)


class Absent(WrappedStore):
    """A store that is away once: when the first eSIM is there."""

    def __init__(self, floor: Floor) -> None:
        super().__init__(floor.deps.store)
        self.floor, self.was_away = floor, False

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As the real one, but for that once."""
        if self.floor.draws() and not self.was_away:
            self.was_away = True
            raise StoreUnavailable("the database is away")
        return await self.store.write(fn, *args, **kwargs)

    async def aclose(self) -> None:
        """The real one is somebody else's."""


async def toil(floor: Floor, worker: Fulfilment, replica: str) -> list[str]:
    """Some steps of a process that lives, and its faults."""
    faults = list[str]()
    for _ in range(5):
        await floor.deps.store.write(renew_replica, replica=replica, now=floor.shop.world.clock.now())
        try:
            with suppress(StoreUnavailable):
                await worker.step()
        except BaseException as fault:
            faults.append(type(fault).__name__)
        floor.shop.world.clock.advance(1)
    return faults


@pytest.mark.long
@pytest.mark.parametrize("away", [False, True])
async def test_an_esim_that_cannot_be_told_of_is_for_a_person_and_stops_nobody(floor: Floor, away: bool) -> None:
    broken = await floor.paid()
    await floor.deps.store.write(blank, order=broken)
    deps, worker = await floor.born(Absent(floor) if away else None)
    faults = await toil(floor, worker, deps.replica)
    well = await floor.paid()
    faults += await toil(floor, worker, deps.replica)
    assert (len(faults), (await floor.row(well)).status) == (1, "ready")
    ledger = await floor.ledger(broken)
    assert ((await floor.row(broken)).status, ledger and ledger.state, floor.draws()) == ("needs_review", "outcome_unknown", 2)
    assert len(await floor.letters("help@fjord.test")) == 1
    assert len(await floor.letters(BUYER)) == 1


async def test_a_fault_that_ends_a_step_does_not_meet_the_same_orders_again(floor: Floor) -> None:
    broken = (await floor.shop.begin()).order
    await floor.shop.pay(broken)
    await floor.lose_news()
    await floor.deps.store.write(blank, order=broken, currency="SEK")
    floor.shop.world.clock.advance(700)
    well = await floor.paid()
    floor.shop.world.clock.advance(61)  # what is known of templates is a minute old at most
    gate = floor.shop.road.gates[TEMPLATES] = RoadGate()
    with pytest.raises(ExceptionGroup):
        await floor.shop.worker.step()
    assert gate.entered.is_set() and (await floor.row(well)).status == "paid"
    del floor.shop.road.gates[TEMPLATES]
    await floor.work(1, every=ORDER_LEASE_MS / 1000 + 1)
    assert [(await floor.row(order)).status for order in (well, broken)] == ["ready", "pending_payment"]
