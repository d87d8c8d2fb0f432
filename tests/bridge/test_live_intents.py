"""Live intents from end to end: what the network does is told once, whoever reports it, how often, and however early."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import anyio
import orjson
import pytest
import sqlalchemy as sa

from clients.http import OutboundLimits
from clients.webhooks.sender import WebhookSender
from operations.ledger.event_rights import ChooserRights
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from storage.engine.sql import Query
from storage.sightings import EarlySightingTable
from tests.bridge.operator import GIB, WEBHOOK, Operator, open_bridge_operator, used_of
from tests.bridge.pushing import kept, place, push_status
from tests.clients.webhooks.networks import parse_networks
from tests.clients.webhooks.receiver import receiver
from tests.clients.webhooks.receiver import status_answer as answering
from tests.deliveries.post_office import read
from tests.issuance.road import RoadGate
from tests.network_facts import ACCOUNT, DRAW, RESELLER
from tests.stage import opened, opened_on_both
from transports.upstream import deliver_in_process
from transports.worker.worker import Worker

ISSUED = "esim.issued"
ANOTHER = 8102
LOOPBACK = parse_networks(["127.0.0.0/8"])
QUICK = OutboundLimits(connections=20, keepalive_seconds=None, connect_seconds=2.0, total_seconds=2.0)
EARLY = EarlySightingTable.table
HOUR = 3600


class Count(NamedTuple):
    rows: int


KEPT_EARLY = Query(Count, sa.select(sa.func.count().label("rows")).select_from(EARLY))


operator = opened(open_bridge_operator)
either = opened_on_both(open_bridge_operator)


async def kept_early(operator: Operator) -> int:
    counted = await operator.world.store.read(lambda connection: connection.first(KEPT_EARLY))
    assert counted is not None
    return counted.rows


async def free_lines(operator: Operator) -> set[str]:
    network = await operator.world.network()
    return {line.iccid for line in network.lines_of(ACCOUNT) if line.sim.status == "FREE"}


async def drawn_since(operator: Operator, free: set[str]) -> Line:
    """The line that the network gave away, whether or not we know."""
    network = await operator.world.network()
    return next(line for line in network.lines_of(ACCOUNT) if line.iccid in free and line.sim.status != "FREE")


async def report_all(operator: Operator, line: Line, at: str = "2027-01-15T12:00:00") -> None:
    """Everything that can be said of a line in one network of France, most of it twice."""
    package = line.packages[-1].id
    await operator.push(push_status("Enable", line.iccid))
    for _ in range(2):
        await operator.push(place(line.iccid, at=at))
        await operator.push(used_of(package, GIB * 85 // 100))
        await operator.ingest("line-1", line.iccid, GIB * 3 // 10)
        await operator.ingest("line-2", line.iccid, GIB * 3 // 10)
    await operator.observe("location.update", line.iccid, mcc="208", mnc="10")
    await operator.observe("package.usage", line.iccid, used_bytes=GIB // 2)


@pytest.mark.long
async def test_a_phone_abroad_is_told_to_the_operators_own_endpoint(operator: Operator) -> None:
    """The simulated network does it all: its notifications come through our own door, and our worker delivers what they mean."""
    world = operator.world
    targets = {"usageUrl": WEBHOOK, "esimUrl": WEBHOOK, "locationUrl": WEBHOOK, "thresholds": [50, 80, 100]}
    await operator.control("push-targets", {"resellerId": RESELLER, **targets})
    world.pipeline.deps = replace(world.pipeline.deps, webhook_exempt=LOOPBACK)
    sender = WebhookSender(world.clock, exempt=LOOPBACK, limits=QUICK)
    keyring = world.pipeline.deps.keyring
    worker = Worker(
        store=world.store,
        keyring=keyring,
        sender=sender,
        clock=world.clock,
        ids=world.ids,
        report=pytest.fail,
        rights=ChooserRights(world.pipeline.deps.internal_calls.operations_in),
        chores=[],
        listener=None,
    )
    async with receiver(answering("200 OK")) as there:
        made = await operator.http.post("/v1/connectivity/webhook_endpoints", json={"url": there.url()})
        intent = await operator.draw()
        iccid = intent["esim"]["iccid"]
        said = await world.sandbox.handle("GET", "/control/networks", "iso2=no")
        network = orjson.loads(said.body)["networks"][0]
        await operator.control("provider-status", {"iccid": iccid, "status": "Enable"})
        await operator.control("attach", {"iccid": iccid, "networkId": network["networkId"]})
        for _ in range(12):
            used = {"iccid": iccid, "networkId": network["networkId"], "usageType": 33, "quantity": GIB // 12 + 1}
            await world.sandbox.handle("POST", "/control/usage", body=orjson.dumps(used))
            world.clock.advance(600)
            await world.sandbox.handle("GET", "/control/state")
            await world.sandbox.deliver(partial(deliver_in_process, world.door))
        while await worker.step():
            pass
        posts = [read(request) for request in there.requests]
        told = [post.verified(made.json()["secret"], world.clock.now()) for post in posts]
    await sender.aclose()
    assert {delivery.status for delivery in world.sandbox.deliveries} == {200}
    assert await operator.told(intent["id"]) == [ISSUED, "NO", 50, 80, 100]
    own = [event for event in told if isinstance(event, dict) and event["data"]["intent"] == intent["id"]]
    assert len(told) == len(own) == len({event["id"] for event in own}) == 5
    attached = next(event["data"] for event in own if event["type"] == "esim.first_attach")
    code = network["mccMncs"][0]
    assert (attached["iccid"], attached["mcc"], attached["country"]) == (iccid, code["mcc"], "NO")
    assert attached["mnc"] in {code["mnc"] for code in network["mccMncs"]}
    marks = [event["data"]["threshold_percent"] for event in own if event["type"] == "usage.threshold_reached"]
    assert sorted(marks) == [50, 80, 100]


@pytest.mark.long
async def test_what_comes_before_the_answer_of_the_draw_is_told_with_it(either: Operator) -> None:
    operator, gate = either, RoadGate(back=True)
    operator.road.gates[DRAW] = gate
    free = await free_lines(operator)
    ids: list[str] = []

    async def draw() -> None:
        ids.append((await operator.draw())["id"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(draw)
        await gate.entered.wait()
        await report_all(operator, await drawn_since(operator, free))
        assert await kept_early(operator) == 3
        gate.open.set()
    assert await operator.told(ids[0]) == [ISSUED, "FR", 50, 80]
    assert await kept_early(operator) == 0


@pytest.mark.long
async def test_what_comes_while_the_answer_comes_is_told_once(either: Operator) -> None:
    """Every report may be before, during and after the commit that gives the intent its eSIM."""
    operator = either
    for number in range(6):
        gate = operator.road.gates[DRAW] = RoadGate(back=True)
        free = await free_lines(operator)
        ids: list[str] = []
        key = f"k{number}"

        async def draw(key: str = key, ids: list[str] = ids) -> None:
            ids.append((await operator.draw(key))["id"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(draw)
            await gate.entered.wait()
            line = await drawn_since(operator, free)
            gate.open.set()
            tasks.start_soon(operator.push, place(line.iccid, at=None))
            tasks.start_soon(operator.push, used_of(line.packages[-1].id, GIB // 2))
            tasks.start_soon(operator.ingest, f"{key}-a", line.iccid, GIB // 2)
            tasks.start_soon(operator.ingest, f"{key}-b", line.iccid, GIB // 2)
        assert sorted(map(str, await operator.told(ids[0]))) == ["100", "50", "80", "FR", ISSUED]


@pytest.mark.long
async def test_what_comes_while_the_outcome_is_unknown_is_told_when_it_is_found_out(either: Operator) -> None:
    operator = either
    free = await free_lines(operator)
    operator.world.sandbox.faults.add(NetworkFault(DRAW, drop_after=True))
    intent = await operator.draw()
    assert (intent["status"], intent["error"]["code"]) == ("processing", "OUTCOME_UNKNOWN")
    operator.world.clock.advance(2 * HOUR)
    await report_all(operator, await drawn_since(operator, free), "2027-01-15T13:00:00")
    assert await operator.told(intent["id"]) == []
    operator.world.clock.advance(HOUR)
    assert await operator.settle() == 1
    assert await operator.told(intent["id"]) == [ISSUED, "FR", 50, 80]
    await report_all(operator, await drawn_since(operator, free), "2027-01-15T13:00:00")
    assert await operator.told(intent["id"]) == [ISSUED, "FR", 50, 80]


@pytest.mark.long
async def test_a_draw_that_came_to_nothing_leaves_reports_to_nobody(operator: Operator) -> None:
    iccid = min(await free_lines(operator))
    operator.world.sandbox.faults.add(NetworkFault(DRAW, drop_before=True))
    first = await operator.draw()
    await operator.push(place(iccid, at=None))
    assert await kept_early(operator) == 1
    operator.world.clock.advance(60)
    await operator.settle()
    operator.world.clock.advance(HOUR)
    await operator.settle()
    assert (await operator.http.get(f"/v1/connectivity/intents/{first['id']}")).json()["status"] == "failed"
    second = await operator.draw("again")
    assert second["esim"]["iccid"] == iccid
    assert await operator.told(second["id"]) == [ISSUED]


@pytest.mark.long
async def test_what_turned_out_to_be_nobodys_is_forgotten(operator: Operator) -> None:
    first, second, *_ = sorted(await free_lines(operator))
    operator.world.sandbox.faults.add(NetworkFault(DRAW, drop_before=True))
    await operator.draw()
    await operator.push(place(first, at=None))
    for _ in range(2):
        operator.world.clock.advance(HOUR)
        await operator.settle()
    assert await kept_early(operator) == 1
    await operator.push(place(second, at=None))
    assert await kept_early(operator) == 0


@pytest.mark.long
async def test_nothing_is_kept_while_no_esim_is_being_drawn(operator: Operator) -> None:
    await operator.draw()
    for iccid in await free_lines(operator):
        await operator.push(place(iccid))
        await operator.observe("package.usage", iccid, used_bytes=GIB, mcc="208")
    await operator.push(used_of(1, GIB))
    assert await kept_early(operator) == 0


@pytest.mark.long
async def test_reports_of_a_previous_owner_are_not_the_next_ones(operator: Operator) -> None:
    first = await operator.draw()
    iccid, world = first["esim"]["iccid"], operator.world
    world.clock.advance(HOUR)
    then = world.clock.now()
    await operator.push(place(iccid, at=None))
    world.clock.advance(HOUR)
    await operator.give_back(first["id"])
    late = then + 60
    await operator.ingest("between", iccid, GIB, at=late)
    world.clock.advance(HOUR)
    second = await operator.draw("again")
    assert second["esim"]["iccid"] == iccid
    await operator.ingest("late", iccid, GIB, at=late)
    await operator.push(place(iccid, 262, 2, "2027-01-15T13:30:00"))
    assert await operator.observe("package.usage", iccid, late, used_bytes=GIB, mcc="262") == {"ignored": True}
    assert await operator.told(second["id"]) == [ISSUED]
    world.clock.advance(60)
    await operator.ingest("now", iccid, GIB // 2)
    await operator.push(place(iccid, 244, 5, None))
    assert await operator.told(second["id"]) == [ISSUED, 50, "FI"]


async def test_the_clock_of_the_network_may_run_some_seconds_behind(operator: Operator) -> None:
    operator.world.clock.advance(9)
    intent = await operator.draw()
    await operator.push(place(intent["esim"]["iccid"], at="2027-01-15T12:00:00"))
    assert await operator.told(intent["id"]) == [ISSUED, "FR"]


async def line_of(operator: Operator, iccid: str) -> Line:
    return next(line for line in (await operator.world.network()).lines.values() if line.iccid == iccid)


def asked(operator: Operator) -> int:
    return [call.method for call in operator.calls()].count("getSingleSubscriber")


async def test_who_had_a_line_is_not_told_where_it_is_after_it_moved_to_another_account(either: Operator) -> None:
    operator = either
    intent = await operator.draw()
    iccid = intent["esim"]["iccid"]
    line = await line_of(operator, iccid)
    line.account_id = ANOTHER
    for seconds in (0, 60, 60):
        operator.world.clock.advance(seconds)
        await operator.push(place(iccid, at=None))
    assert (await operator.told(intent["id"]), await kept(operator.world), await kept_early(operator)) == ([ISSUED], [], 0)
    line.account_id = ACCOUNT
    await operator.push(place(iccid, 262, 2, None))
    assert await operator.told(intent["id"]) == [ISSUED, "DE"]


@pytest.mark.long
async def test_an_esim_is_told_in_the_country_where_the_account_before_was_seen_too(either: Operator) -> None:
    operator = either
    iccid = min(await free_lines(operator))
    line = await line_of(operator, iccid)
    line.account_id = ANOTHER
    await operator.push(place(iccid, at=None))
    line.account_id = ACCOUNT
    operator.world.clock.advance(HOUR)
    intent = await operator.draw()
    assert intent["esim"]["iccid"] == iccid
    before = asked(operator)
    for seconds in (60, 60, 60):
        operator.world.clock.advance(seconds)
        await operator.push(place(iccid, at=None))
    assert (await operator.told(intent["id"]), len(await kept(operator.world))) == ([ISSUED, "FR"], 3)
    assert asked(operator) == before + 1


async def test_where_nobody_can_say_whose_the_line_is_its_intent_is_told(operator: Operator) -> None:
    intent = await operator.draw()
    operator.world.sandbox.faults.add(NetworkFault("getSingleSubscriber", drop_before=True))
    await operator.push(place(intent["esim"]["iccid"], at=None))
    assert await operator.told(intent["id"]) == [ISSUED, "FR"]
