"""What holds though the replicas of one database disagree by ten minutes about the time."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import sqlalchemy as sa

from clients.webhooks.sender import WebhookSender
from operations.intelligence.schedule_reports import ScheduleRuns
from operations.ledger.event_rights import ChooserRights
from operations.ledger.reconciliation import Reconciliation
from registry.caller import Tier
from registry.limits import TIERS, Limits, TierLimits
from registry.policy import quota_period
from storage.deliveries import DeliveryTable
from storage.engine.sql import Connection, Query
from storage.events import NewEvent, emit_event
from storage.quota import read_quota_used
from tests.deliveries.post_office import LOOPBACK, QUICK
from tests.endurance.two_clocks import Pair, open_pair
from tests.harness.held_receiver import receiving
from tests.network_facts import ACCOUNT
from tests.schedules.bureau import open_bureau
from tests.world import SettableClock, World
from transports.worker.worker import Worker

DELIVERY = DeliveryTable.table
DRAW, DELETE = "affectPackageToSubscriber", "deleteSubscriberPackage"
ISSUE = "/v1/subscribers/issue-from-inventory"
PLANS = "/v1/connectivity/plans"


class State(NamedTuple):
    """How a delivery stands, and in how many tries."""

    state: int
    attempts: int


STATES = Query(State, sa.select(DELIVERY.c.state, DELIVERY.c.attempts).order_by(DELIVERY.c.event_id))


def states(connection: Connection) -> list[State]:
    return connection.all(STATES)


async def issue(http: httpx.AsyncClient, key: str) -> httpx.Response:
    body = {"accountId": ACCOUNT, "packageTemplateId": 55010, "validityPeriod": 30}
    return await http.post(ISSUE, json=body, headers={"Idempotency-Key": key})


@pytest.mark.long
async def test_one_key_at_both_at_once_draws_once(tmp_path: Path, database_url: str | None, ahead: float) -> None:
    async with open_pair(tmp_path, database_url, ahead) as pair:
        keys = [f"order-{number}" for number in range(5)]
        said = await asyncio.gather(*(issue(http, key) for key in keys for _ in range(4) for http in pair.doors))
        assert {each.status_code for each in said} <= {200, 201, 409, 502}, Counter(each.status_code for each in said)
        # Who is ahead frees what the other has opened and not sent yet, and may come too late for the key itself: all are told to repeat.
        waiting = [key for number, key in enumerate(keys) if {each.status_code for each in said[8 * number : 8 * number + 8]} == {409}]
        assert pair.sent(DRAW) == len(keys) - len(waiting)
        for _ in range(3):  # whoever thinks that the other has died says that the outcome is unknown, and finds out
            for world in (pair.right, pair.wrong):
                world.clock.advance(40)
                await Reconciliation(world.pipeline.deps, print).step()
        final = {key: {(await issue(http, key)).json()["data"]["iccid"] for http in pair.doors} for key in keys}
        assert pair.sent(DRAW) == len(keys)
        assert sorted(map(len, final.values())) == [1] * len(keys)
        assert len(set.union(*final.values())) == len(keys)


@pytest.mark.cases
async def test_a_confirm_token_is_good_for_one_call_at_either(tmp_path: Path, database_url: str | None, ahead: float) -> None:
    async with open_pair(tmp_path, database_url, ahead) as pair:
        assert (await issue(pair.doors[0], "order")).status_code == 201
        asked = await pair.doors[0].delete(f"{ISSUE}/order")
        assert asked.status_code == 202
        token = {"X-Confirm-Token": asked.json()["confirm_token"]}
        said = await asyncio.gather(*(http.delete(f"{ISSUE}/order", headers=token) for _ in range(4) for http in reversed(pair.doors)))
        done = [each for each in said if each.status_code == 200]
        assert len(done) == 1, [(each.status_code, each.json().get("code")) for each in said]
        assert {each.json()["code"] for each in said if each not in done} <= {"confirm_token_invalid", "issuance_not_issued", "conflict"}
        assert pair.sent(DELETE) == 1


@pytest.mark.cases
async def test_a_token_is_never_good_for_longer_than_its_time_and_the_difference(
    tmp_path: Path, database_url: str | None, ahead: float
) -> None:
    async with open_pair(tmp_path, database_url, ahead) as pair:
        await issue(pair.doors[0], "order")
        asked = await pair.doors[0].delete(f"{ISSUE}/order")
        for world in (pair.right, pair.wrong):
            world.clock.advance(121 + max(0, -ahead))
        for http in pair.doors:
            late = await http.delete(f"{ISSUE}/order", headers={"X-Confirm-Token": asked.json()["confirm_token"]})
            assert late.status_code != 200, late.text
        assert pair.sent(DELETE) == 0


@pytest.mark.long
@pytest.mark.parametrize("to_midnight", [3600.0, 300.0])
async def test_no_day_of_the_quota_is_oversold(tmp_path: Path, database_url: str | None, ahead: float, to_midnight: float) -> None:
    """At noon both count for one day; around midnight each counts for its own."""
    few = Limits(tiers={**TIERS, Tier.FREE: TierLimits(50, 5, 10, 10)}, burst_enabled=False)
    async with open_pair(tmp_path, database_url, ahead, few, Tier.FREE) as pair:
        for world in (pair.right, pair.wrong):
            world.clock.advance(12 * 3600 - to_midnight)
        granted = Counter[str]()
        for _ in range(15):
            for world, http in zip((pair.right, pair.wrong), pair.doors, strict=True):
                day = quota_period(world.clock.now()).name
                said = await asyncio.gather(*(http.get(PLANS) for _ in range(5)))
                granted[day] += sum(each.status_code == 200 for each in said)
                assert {each.status_code for each in said} <= {200, 429}
        assert set(granted.values()) == {50}
        assert len(granted) == (1 if to_midnight == 3600.0 or ahead < 0 else 2)
        for day in granted:
            assert await pair.right.store.read(read_quota_used, organisation=pair.me.organisation, period=day) == 50


def worker(world: World, sender: WebhookSender) -> Worker:
    deps = world.pipeline.deps
    rights = ChooserRights(deps.internal_calls.operations_in)
    return Worker(store=world.store, keyring=deps.keyring, sender=sender, clock=world.clock, ids=world.ids, report=print, rights=rights)


@pytest.mark.cases
async def test_an_event_is_delivered_once_and_says_the_same_if_it_comes_twice(
    tmp_path: Path, database_url: str | None, ahead: float
) -> None:
    async with open_pair(tmp_path, database_url, ahead) as pair:
        exempt = replace(pair.right.pipeline.deps, webhook_exempt=LOOPBACK)
        pair.right.pipeline.deps = exempt
        sender = WebhookSender(pair.right.clock, exempt=LOOPBACK, limits=QUICK)
        with receiving(held=True) as receiver:
            made = await pair.doors[0].post("/v1/connectivity/webhook_endpoints", json={"url": receiver.url})
            assert made.status_code == 201, made.text
            for number in range(4):
                await emit_one(pair, number)
            both = [worker(world, sender) for world in (pair.right, pair.wrong)]
            first = asyncio.ensure_future(both[0].step())
            await asyncio.to_thread(receiver.wait, 2)
            second = asyncio.ensure_future(both[1].step())  # to one that is ahead the lease of the first has ended
            if ahead > 0:
                await asyncio.to_thread(receiver.wait, 4)
            receiver.gate.set()
            await asyncio.gather(first, second)
            for _ in range(6):
                for each in both:
                    await each.step()
                for world in (pair.right, pair.wrong):
                    world.clock.advance(61)
            seen = receiver.ids()
        await sender.aclose()
        assert sorted(seen) == [f"evt_{number}" for number in range(4)]
        assert max(seen.values()) <= 2
        assert len({(headers["webhook-id"], body) for headers, body in receiver.posts}) == 4
        rows = await pair.right.store.read(states)
        assert rows == [State(1, 1)] * 4


async def emit_one(pair: Pair, number: int) -> None:
    event = NewEvent(
        id=f"evt_{number}",
        organisation=pair.me.organisation,
        intent="cni_1",
        type="esim.issued",
        livemode=0,
        data='{"intent":"cni_1","iccid":"8999012345678901237","plan":"test_eu_1gb"}',
        dedup=f"once-{number}",
        created=int(pair.right.clock.now()),
    )
    await pair.right.store.write(emit_event, event=event, ids=pair.right.ids)


@pytest.mark.cases
async def test_each_boundary_has_one_report(tmp_path: Path, database_url: str | None, ahead: float) -> None:
    async with open_bureau(tmp_path, database_url) as bureau:
        await bureau.create(cron="*/15 * * * *")
        wrong = SettableClock(bureau.clock.now() + ahead)
        right, other = bureau.replica(), bureau.replica(wrong)
        began = bureau.clock.now()
        for _ in range(12 * 2):
            for clock in (bureau.clock, wrong):
                clock.advance(300)
            await asyncio.gather(*(turn(replica) for replica in (right, other)))
        kept = await bureau.kept()
        boundaries = [row.fire_ms for row in kept]
        assert len(set(boundaries)) == len(boundaries)
        due = [int(began + 900 * number) * 1000 for number in range(1, 2 * 4 + 1)]
        assert set(due) <= set(boundaries)
        assert {row.state for row in kept} == {"done"}


async def turn(replica: ScheduleRuns) -> None:
    """Begin what is due, make what it can take."""
    await replica.fire()
    while await replica.step():
        """The next one."""
