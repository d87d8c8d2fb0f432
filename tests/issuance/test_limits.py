"""What a repeated call, a call that is given up and a long outage may cost."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.errors import QuotaExceeded, StoreUnavailable
from registry.policy import quota_period
from registry.ports import CallRecord
from storage.engine.sql import Connection
from storage.engine.store import Store
from storage.journal import MOST_DEFERRED_OPENINGS, StoreJournal
from tests.connectivity.requests import INTENTS
from tests.issuance.stage import PLAN_SLUG, open_issuance_stage
from tests.network_facts import ACCOUNT
from tests.world import World, open_world
from tests.wrapped_store import WrappedStore

P = ParamSpec("P")
T = TypeVar("T")


async def test_a_repeated_intent_does_not_wait_for_upstream_writes(tmp_path: Path) -> None:
    async with open_world(tmp_path, CATALOGUE) as world:
        me = await world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
        async with world.client(me.secret) as http:

            async def intend(key: str) -> int:
                return (await http.post(INTENTS, json={"plan": PLAN_SLUG}, headers={"Idempotency-Key": key})).status_code

            assert [await intend(f"k{number}") for number in range(11)] == [201] * 10 + [429]
            assert [await intend("k0") for _ in range(20)] == [201] * 20
            assert await intend("k10") == 429
            world.clock.advance(0.1)
            assert [await intend("k0"), await intend("k10"), await intend("k11")] == [201, 201, 429]


async def test_a_call_that_is_given_up_at_any_moment_never_leaves_its_key_busy(tmp_path: Path) -> None:
    async with open_issuance_stage(tmp_path) as stage:
        for turns in range(1, 15):
            key, before = f"k{turns}", stage.dispatches()
            task = asyncio.ensure_future(stage.issue(key))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await stage.world.journal.flush()
            assert (await stage.issue(key)).status_code != 409
            assert stage.dispatches() - before <= 1
            await stage.world.journal.flush()
        stage.world.faults.clear()  # a call that is cancelled is a fault of ours at the door


class Outage(WrappedStore):
    """A store that takes no write for a while."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.down, self.written = True, 0

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.down:
            raise StoreUnavailable("The disk is full; nothing was done")
        self.written += 1
        return await self.store.write(fn, *args, **kwargs)


@pytest.mark.long
async def test_an_outage_leaves_no_more_behind_than_it_may(tmp_path: Path) -> None:
    async with open_world(tmp_path, CATALOGUE) as world:
        store = Outage(world.store)
        keyring, name = world.pipeline.deps.keyring, world.ids.new("rpl_")
        journal = StoreJournal(store, keyring=keyring, blocks=world.blocks, clock=world.clock, replica=name)
        for number in range(MOST_DEFERRED_OPENINGS + 500):
            with pytest.raises(StoreUnavailable):
                await journal.open(opening(world, number))
        with pytest.raises(StoreUnavailable):
            await journal.flush()
        store.down = False
        await journal.flush()
        assert store.written == MOST_DEFERRED_OPENINGS
        await journal.flush()
        assert store.written == MOST_DEFERRED_OPENINGS


def opening(world: World, number: int) -> CallRecord:
    """A call that asks for an eSIM."""
    now = world.clock.now()
    return CallRecord(
        surface="http",
        operation="issue_esim_from_inventory",
        request_id=f"req_{number}",
        organisation="org_x",
        principal="prn_x",
        key_id="",
        scope=0,
        recheck=False,
        now=now,
        started=0.0,
        idempotency_key=f"k{number}",
        fingerprint=b"",
        expires_at=None,
        confirm=None,
        cost=0,
        period=quota_period(now),
        limit=10,
        over_quota=over,
        staged=True,
    )


def over(used: int) -> QuotaExceeded:
    raise AssertionError(used)
