"""A store that does not say whether it took a commit, at any commit of a delivery, of a refund and of a top-up: each happens once."""

from collections.abc import Callable
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

import pytest

from registry.errors import StoreUnavailable
from storage.engine.sql import Connection
from storage.engine.store import Store
from storage.replicas import renew_replica
from tests.fulfilment.floor import Floor
from tests.network_facts import MINUTE
from tests.wrapped_store import WrappedStore

P = ParamSpec("P")
T = TypeVar("T")
MOST_COMMITS = 12


class Doubtful(WrappedStore):
    """Is away right after the commit `at`, which it took, and for some commits more, which it does not take."""

    def __init__(self, store: Store, at: int, away: int) -> None:
        super().__init__(store)
        self.at, self.away, self.commits = at, away, 0

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Whoever asks is not told of the one that counts."""
        number = self.commits
        self.commits += 1
        if self.at < number <= self.at + self.away:
            raise StoreUnavailable("the database is away")
        result = await self.store.write(fn, *args, **kwargs)
        if number == self.at:
            raise StoreUnavailable("the connection was lost during the commit")
        return result

    async def aclose(self) -> None:
        """The real one is somebody else's."""


async def outlast(floor: Floor, store: Doubtful) -> bool:
    """The process goes on until all is done; whether its store was in doubt at all."""
    deps, worker = await floor.born(store)
    for seconds in (0, 1, 1, 125, 125, 1, 31, 31, 31, 125):
        floor.shop.world.clock.advance(seconds)
        await store.store.write(renew_replica, replica=deps.replica, now=floor.shop.world.clock.now())
        with suppress(StoreUnavailable):
            await worker.step()
    await floor.mourn()
    await floor.reconcile(18 * MINUTE)
    await floor.work(4, every=MINUTE)
    return store.commits > store.at


@pytest.mark.long
@pytest.mark.parametrize("away", [0, 2])
async def test_a_delivery_is_made_once(floor: Floor, away: int) -> None:
    orders, doubted = list[str](), True
    while doubted and len(orders) < MOST_COMMITS:
        orders.append(await floor.paid())
        doubted = await outlast(floor, Doubtful(floor.deps.store, len(orders) - 1, away))
        assert (await floor.row(orders[-1])).status == "ready", len(orders)
    assert (floor.draws(), await floor.gone(), len(await floor.told()), floor.refunds()) == (len(orders),) * 3 + ([],)
    assert len(await floor.letters("buyer@home.test")) == len(orders) >= 4


@pytest.mark.long
@pytest.mark.parametrize("away", [0, 2])
async def test_a_refund_is_made_once(floor: Floor, away: int) -> None:
    orders, doubted = list[str](), True
    while doubted and len(orders) < MOST_COMMITS:
        orders.append(await floor.paid())
        floor.strike(code=6)
        doubted = await outlast(floor, Doubtful(floor.deps.store, len(orders) - 1, away))
        floor.shop.world.sandbox.faults.clear()
        assert await floor.end(orders[-1]) == ("failed", "no_inventory", "done"), len(orders)
        assert floor.refunds() == [1000] * len(orders)
    assert len(orders) >= 6


@pytest.mark.long
@pytest.mark.parametrize("away", [0, 2])
async def test_a_top_up_is_added_once(floor: Floor, away: int) -> None:
    order, top_ups, doubted = await floor.shop.buy(), list[str](), True
    while doubted and len(top_ups) < MOST_COMMITS:
        top_ups.append(await floor.shop.top_up(order))
        doubted = await outlast(floor, Doubtful(floor.deps.store, len(top_ups) - 1, away))
        assert await floor.end(top_ups[-1]) == ("ready", None, None), len(top_ups)
    assert (floor.shop.added(), len(await floor.shop.packages(order)), floor.refunds()) == (len(top_ups), len(top_ups) + 1, [])
    assert len(top_ups) >= 3
