"""Progress while a call runs, and what becomes of it when the client hangs up."""

from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from registry.caller import Tier
from storage.upstream_connections import set_connection
from tests.mcp.house import ERAS, MODERN, House, open_house, request
from tests.mcp.notes import HANDLER_GATES, HandlerGate
from tests.mcp.refusals import refusal_of
from tests.mcp.wire import Wire
from tests.note_rows import every_note
from tests.world import Credentials

LEGACY = "2025-11-25"


@pytest.fixture
def gate() -> Generator[HandlerGate]:
    HANDLER_GATES.append(HandlerGate())
    yield HANDLER_GATES[-1]
    HANDLER_GATES.pop()


@pytest.mark.parametrize("era", ERAS)
async def test_progress_reaches_the_client_that_asked_for_it(house: House, pro: Credentials, era: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with house.connect(pro, era) as client:
        answer = await client.call_tool("count_slowly", {"steps": 3}, progress_callback=on_progress)
    assert answer.structured_content == {"name": "count", "writes": 3}
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_call_that_asked_for_progress_is_answered_as_a_stream(house: House, pro: Credentials) -> None:
    wire = Wire(house, pro, request("tools/call", meta={"progressToken": "p"}, name="count_slowly", arguments={"steps": 2}))
    await wire.run()
    assert [event.get("method", "result") for event in wire.events()] == ["notifications/progress"] * 2 + ["result"]


async def test_a_call_that_did_not_ask_is_answered_as_plain_json(house: House, pro: Credentials) -> None:
    answer = await house.post(request("tools/call", name="count_slowly", arguments={}), secret=pro.secret)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.cases
@pytest.mark.parametrize(("era", "edge"), [(MODERN, True), (MODERN, False), (LEGACY, True), (LEGACY, False)])
async def test_a_client_that_hangs_up_cancels_its_read(tmp_path: Path, gate: HandlerGate, era: str, edge: bool) -> None:
    with anyio.fail_after(60):
        async with open_house(tmp_path, edge=edge) as house:
            pro = await house.world.caller(Tier.PRO)
            wire = Wire(house, pro, request("tools/call", name="wait_for_it", arguments={}), **{"mcp-protocol-version": era})
            await hung_up(wire, gate)
    assert gate.ended == "cancelled"
    assert not wire.received


@pytest.mark.parametrize("edge", [True, False])
async def test_a_call_whose_body_breaks_off_is_not_run_although_what_came_of_it_reads_like_one(tmp_path: Path, edge: bool) -> None:
    async with open_house(tmp_path, edge=edge) as house:
        pro = await house.world.caller(Tier.PRO)
        wire = Wire(house, pro, request("tools/call", name="create_note", arguments={"name": "first"}))
        wire.promises_more = True
        wire.hang_up()
        await wire.run()
        assert (wire.status, b'"client_disconnected"' in wire.received) == (400, True)  # for the log: it is no fault of ours
        assert await house.world.store.read(every_note) == []


async def hung_up(wire: Wire, gate: HandlerGate) -> None:
    """A client that leaves while its call waits."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.run)
        await gate.entered.wait()
        wire.hang_up()
        await wire.ended.wait()


async def test_an_order_that_has_reached_the_provider_is_finished_although_the_client_hung_up(house: House, gate: HandlerGate) -> None:
    caller = await house.world.caller(Tier.PRO, mode="managed", account=7)
    order = request("tools/call", name="order_upstream", arguments={"name": "sim", "idempotency_key": "order-1"})
    wire = Wire(house, caller, order)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.run)
            await gate.entered.wait()
            wire.hang_up()
            await anyio.wait_all_tasks_blocked()
            assert not wire.ended.is_set()
            gate.open.set()
            await wire.ended.wait()
    assert gate.ended == "finished"
    again = await house.post(order, secret=caller.secret)
    assert again.json()["result"]["_meta"]["replayed"] is True
    assert [row.value for row in await house.world.store.read(every_note)] == [1]


async def test_a_tool_that_needs_a_connection_tells_where_to_connect(house: House, pro: Credentials, gate: HandlerGate) -> None:
    del gate
    await house.world.store.write(set_connection, organisation=pro.organisation, mode=None, account_id=None, own_token=None)
    async with house.connect(pro) as client:
        refused = await client.call_tool("order_upstream", {"name": "sim", "idempotency_key": "k"})
    assert refusal_of(refused)["error_code"] == "org_not_connected"


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_many_calls_at_once_are_all_answered(house: House, pro: Credentials, era: str) -> None:
    answers: list[object] = []
    async with house.connect(pro, era) as client:

        async def call(number: int) -> None:
            answer = await client.call_tool("create_note", {"name": f"n{number}"})
            answers.append(answer.structured_content)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(call, number)
    assert len(answers) == 20
    assert len(await house.world.store.read(every_note)) == 20
