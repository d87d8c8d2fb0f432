"""The look at an account's stock before a draw: one at a time, shared by all who ask while it is taken, whatever comes of it."""

import anyio

from operations.ledger.stock_snapshot import look_at_stock
from operations.upstream.connection import Upstream, upstream_of_organisation
from registry.errors import OcsError, Refusal
from simulators.network.faults import NetworkFault
from storage.stock_snapshots import StockSnapshot
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import IssuanceStage
from tests.network_facts import ACCOUNT

LIST = "listSubscriber"
LOOKS = 20


class Asking:
    """Many who ask for a look at once, and what each of them was told."""

    def __init__(self, stage: IssuanceStage, upstream: Upstream) -> None:
        self._stage, self._upstream = stage, upstream
        self.told: dict[int, StockSnapshot | Refusal] = {}

    async def one(self, number: int, scope: anyio.CancelScope | None = None) -> None:
        with scope or anyio.CancelScope():
            try:
                self.told[number] = await look_at_stock(self._stage.world.pipeline.deps, self._upstream, ACCOUNT)
            except Refusal as refusal:
                self.told[number] = refusal


async def asking(stage: IssuanceStage) -> Asking:
    return Asking(stage, await upstream_of_organisation(stage.world.pipeline.deps, stage.me.organisation))


async def test_all_who_ask_while_a_look_is_taken_share_it(stage: IssuanceStage) -> None:
    many, gate = await asking(stage), RoadGate()
    stage.road.gates[LIST] = gate
    async with anyio.create_task_group() as group:
        for number in range(LOOKS):
            group.start_soon(many.one, number)
        await gate.entered.wait()
        gate.open.set()
    assert len(many.told) == LOOKS and len({id(told) for told in many.told.values()}) == 1
    assert isinstance(many.told[0], StockSnapshot) and len(stage.sent(LIST)) == 1


async def test_all_who_ask_while_a_look_fails_are_refused_with_it(stage: IssuanceStage) -> None:
    many, gate = await asking(stage), RoadGate()
    stage.trouble(NetworkFault(LIST, drop_before=True, times=2))  # a read is asked twice
    stage.road.gates[LIST] = gate
    async with anyio.create_task_group() as group:
        for number in range(LOOKS):
            group.start_soon(many.one, number)
        await gate.entered.wait()
        gate.open.set()
    assert len(many.told) == LOOKS and all(isinstance(told, OcsError) for told in many.told.values())
    assert len(stage.sent(LIST)) <= 2
    await many.one(LOOKS)
    assert isinstance(many.told[LOOKS], StockSnapshot)


async def test_a_look_that_took_long_is_shared_for_five_seconds_all_the_same(stage: IssuanceStage) -> None:
    gate = stage.road.gates[LIST] = RoadGate()
    async with held(gate, lambda: stage.issue("slow")) as answers:
        await stage.live_on(20)
    del stage.road.gates[LIST]
    assert answers[0].status_code == 201
    await stage.live_on(4)
    assert (await stage.issue("next")).status_code == 201 and len(stage.sent(LIST)) == 1
    await stage.live_on(2)
    assert (await stage.issue("later")).status_code == 201 and len(stage.sent(LIST)) == 2


async def test_when_who_takes_the_look_is_stopped_the_next_one_takes_it(stage: IssuanceStage) -> None:
    many, gate, first = await asking(stage), RoadGate(), anyio.CancelScope()
    stage.road.gates[LIST] = gate
    async with anyio.create_task_group() as group:
        group.start_soon(many.one, 0, first)
        for number in range(1, LOOKS):
            group.start_soon(many.one, number)
        await gate.entered.wait()
        again = stage.road.gates[LIST] = RoadGate()
        first.cancel()
        await again.entered.wait()
        again.open.set()
    assert sorted(many.told) == list(range(1, LOOKS)) and len({id(told) for told in many.told.values()}) == 1
    assert isinstance(many.told[1], StockSnapshot) and len(stage.sent(LIST)) == 1


async def test_who_is_stopped_while_waiting_disturbs_nobody(stage: IssuanceStage) -> None:
    many, gate, third = await asking(stage), RoadGate(), anyio.CancelScope()
    stage.road.gates[LIST] = gate
    async with anyio.create_task_group() as group:
        group.start_soon(many.one, 0)
        group.start_soon(many.one, 1)
        group.start_soon(many.one, 2, third)
        await gate.entered.wait()
        third.cancel()
        gate.open.set()
    assert sorted(many.told) == [0, 1] and many.told[0] is many.told[1] and len(stage.sent(LIST)) == 1


async def test_a_look_that_was_being_taken_when_an_esim_came_back_is_not_shared_any_more(stage: IssuanceStage) -> None:
    many, gate = await asking(stage), RoadGate(back=True)
    stage.road.gates[LIST] = gate
    async with anyio.create_task_group() as group:
        group.start_soon(many.one, 0)
        await gate.entered.wait()
        stage.world.pipeline.deps.stock.forget("8988303700000101234")
        gate.open.set()
    await many.one(1)
    assert many.told[0] is not many.told[1] and len(stage.sent(LIST)) == 2


async def test_two_credentials_do_not_share_a_refusal(stage: IssuanceStage) -> None:
    many, gate = await asking(stage), RoadGate()
    other = await stage.world.caller(mode="own", token=stage.world.pipeline.deps.ocs_token + " ")
    theirs = Asking(stage, await upstream_of_organisation(stage.world.pipeline.deps, other.organisation))
    stage.road.gates[LIST] = gate
    async with anyio.create_task_group() as group:
        group.start_soon(many.one, 0)
        await gate.entered.wait()
        group.start_soon(theirs.one, 0)
        gate.open.set()
    assert isinstance(many.told[0], StockSnapshot) and isinstance(theirs.told[0], OcsError)
