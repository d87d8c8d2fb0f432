"""A top-up whose outcome is unknown: nothing is sent again, and only what the line shows decides, or a person."""

from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from operations.storefronts.sales.order_fulfilment import Fulfilment, review_all_lost_orders
from operations.storefronts.sales.top_up_sender import TopUpSending, look_into_top_up, prepare_top_up
from simulators.network.faults import NetworkFault
from storage.order_queue import claim_order
from storage.orders import OrderRow
from tests.issuance.road import RoadGate
from tests.top_ups.counter import ADD, NORDIC, TopUpShop

LIST = "listSubscriberPrepaidPackages"
REVIEW = "A top-up needs review: "
LOST_AFTER = NetworkFault(ADD, drop_after=True)
LOST_BEFORE = NetworkFault(ADD, drop_before=True)
LOST = [
    LOST_AFTER,
    NetworkFault(ADD, status=502, commit=True),
    NetworkFault(ADD, malformed=True),
    NetworkFault(ADD, code=18, commit=True),
    NetworkFault(ADD, code=3, commit=True),
]


async def reviews(counter: TopUpShop) -> list[str]:
    """The subjects of the mails that the operator got."""
    return [letter.subject for letter in await counter.world.letters() if letter.to == "help@fjord.test"]


async def lost(counter: TopUpShop, order: str, fault: NetworkFault, plan: str = "nordic") -> str:
    """A top-up whose answer does not come."""
    top_up = await counter.top_up(order, plan)
    counter.trouble(fault)
    await counter.worker.step()
    counter.world.sandbox.faults.clear()
    assert (await counter.end(top_up))[:2] == ("needs_review", "OUTCOME_UNKNOWN")
    return top_up


@pytest.mark.cases
@pytest.mark.parametrize("fault", LOST, ids=lambda fault: "-".join(fault.kinds))
async def test_an_answer_that_was_lost_after_its_effect_is_found_on_the_line(counter: TopUpShop, fault: NetworkFault) -> None:
    order = await counter.buy()
    top_up = await lost(counter, order, fault)
    assert await reviews(counter) == [f"{REVIEW}{top_up}"]
    await counter.live_on(31)
    await counter.live_on(31)
    row = await counter.row(top_up)
    assert await counter.end(top_up) == ("ready", None, None)
    assert [package.id for package in (await counter.packages(order))[1:]] == [row.package_id]
    assert (counter.added(), counter.refunded(), await reviews(counter)) == (1, 0, [f"{REVIEW}{top_up}"])


@pytest.mark.long
async def test_one_that_was_lost_before_its_effect_is_refunded_after_a_quarter_of_an_hour(counter: TopUpShop) -> None:
    order = await counter.buy()
    top_up = await lost(counter, order, LOST_BEFORE)
    for _ in range(29):
        await counter.live_on(30)
        assert (await counter.end(top_up))[0] == "needs_review"
    await counter.live_on(60)
    assert await counter.end(top_up) == ("failed", "package_not_added", "done")
    assert (counter.added(), counter.refunded(), len(await counter.packages(order))) == (1, 1000, 1)
    outcomes = [(note.surface, note.operation, note.outcome) for note in await counter.notes() if note.surface == "worker"]
    assert ("worker", "add_top_up", "reconciled_failed") in outcomes


@pytest.mark.long
async def test_a_list_that_trouble_has_emptied_proves_nothing(counter: TopUpShop) -> None:
    order = await counter.buy()
    top_up = await lost(counter, order, LOST_AFTER)
    counter.trouble(NetworkFault(LIST, null_lists=True, times=None))
    for _ in range(40):
        await counter.live_on(60)
    assert await counter.end(top_up) == ("needs_review", "OUTCOME_UNKNOWN", None)
    counter.world.sandbox.faults.clear()
    await counter.live_on(301)
    await counter.live_on(301)
    assert await counter.end(top_up) == ("ready", None, None)


@pytest.mark.long
async def test_a_package_that_the_operator_put_there_is_not_taken_for_the_top_up(counter: TopUpShop) -> None:
    order = await counter.buy()
    top_up = await lost(counter, order, LOST_BEFORE)
    iccid = (await counter.row(order)).iccid
    async with counter.world.client(counter.me.secret) as http:
        answer = await http.post(f"/v1/subscribers/{iccid}/packages", json={"packageTemplateId": NORDIC})
        assert answer.status_code == 201, answer.text
    for _ in range(32):
        await counter.live_on(30)
    assert await counter.end(top_up) == ("failed", "package_not_added", "done")


@pytest.mark.long
async def test_a_package_is_only_believed_when_nothing_explains_it_half_a_minute_later(counter: TopUpShop) -> None:
    """The operator's call has put a package there, and its answer is still on the way when the line is looked at."""
    order = await counter.buy()
    top_up = await lost(counter, order, LOST_BEFORE)
    iccid = (await counter.row(order)).iccid
    gate = counter.road.gates[ADD] = RoadGate(back=True)
    async with counter.world.client(counter.me.secret) as http, anyio.create_task_group() as group:
        group.start_soon(lambda: http.post(f"/v1/subscribers/{iccid}/packages", json={"packageTemplateId": NORDIC}))
        await gate.entered.wait()
        await counter.live_on(30)
        assert (await counter.end(top_up))[0] == "needs_review"
        gate.open.set()
    for _ in range(32):
        await counter.live_on(30)
    assert await counter.end(top_up) == ("failed", "package_not_added", "done")


async def test_another_top_up_that_was_answered_explains_its_package(counter: TopUpShop) -> None:
    order = await counter.buy()
    first = await lost(counter, order, LOST_AFTER)
    second = await counter.top_up(order)
    await counter.work(1)
    assert (await counter.end(second))[0] == "ready"
    await counter.live_on(31)
    await counter.live_on(31)
    assert await counter.end(first) == ("ready", None, None)
    assert {(await counter.row(one)).package_id for one in (first, second)} == {
        package.id for package in (await counter.packages(order))[1:]
    }


@pytest.mark.long
async def test_of_two_unknown_rivals_of_one_template_a_person_decides(counter: TopUpShop) -> None:
    """One of them was added, both were sent while the line was as before: which it is nobody can see."""
    order = await counter.buy()
    rivals = [await counter.top_up(order) for _ in range(2)]
    gate = counter.road.gates[ADD] = RoadGate()
    async with anyio.create_task_group() as group:
        for worker in (counter.worker, Fulfilment(counter.deps, counter.reports.append)):
            group.start_soon(worker.step)
        while {(await counter.end(rival))[0] for rival in rivals} != {"provisioning"}:
            await anyio.lowlevel.checkpoint()
        counter.trouble(LOST_AFTER, LOST_BEFORE)
        gate.open.set()
    for _ in range(48):
        await counter.live_on(1801)
    assert [await counter.end(rival) for rival in rivals] == [("needs_review", "MANUAL_RECONCILIATION_REQUIRED", None)] * 2
    assert [(await counter.row(rival)).due_ms for rival in rivals] == [None, None]
    assert (counter.added(), counter.refunded()) == (2, 0)


@pytest.mark.long
async def test_what_a_later_rival_saw_before_it_was_sent_tells_them_apart(counter: TopUpShop) -> None:
    order = await counter.buy()
    added, not_added = await lost(counter, order, LOST_AFTER), await lost(counter, order, LOST_BEFORE)
    for _ in range(36):
        await counter.live_on(30)
    assert await counter.end(added) == ("ready", None, None)
    assert await counter.end(not_added) == ("failed", "package_not_added", "done")


@pytest.mark.long
async def test_two_unknown_ones_of_different_templates_are_told_apart(counter: TopUpShop) -> None:
    order = await counter.buy()
    added, not_added = await lost(counter, order, LOST_AFTER), await lost(counter, order, LOST_BEFORE, "nordic-big")
    for _ in range(32):
        await counter.live_on(30)
    assert await counter.end(added) == ("ready", None, None)
    assert await counter.end(not_added) == ("failed", "package_not_added", "done")


@pytest.mark.long
async def test_an_esim_does_not_go_back_to_stock_while_a_top_up_may_still_come(counter: TopUpShop) -> None:
    order = await counter.buy()
    top_up = await lost(counter, order, LOST_BEFORE)
    answer = await counter.roll_back(order)
    assert (answer.status_code, answer.json()["code"]) == (409, "top_up_under_way")
    for _ in range(32):
        await counter.live_on(30)
    assert (await counter.end(top_up))[0] == "failed"
    assert (await counter.roll_back(order)).json()["status"] == "rolled_back"


async def taken(counter: TopUpShop, top_up: str, worker: str) -> OrderRow:
    """The row under the lease of a worker."""
    now_ms = int(counter.world.clock.now() * 1000)
    row = await counter.world.store.write(claim_order, organisation=counter.me.organisation, token=worker, now_ms=now_ms)
    assert row is not None and row.id == top_up
    return row


async def test_a_worker_that_dies_with_the_row_leaves_it_paid_and_another_delivers(counter: TopUpShop) -> None:
    _, top_up = await counter.buy_both()
    await taken(counter, top_up, "lse_dead")
    await counter.work()
    assert (await counter.end(top_up))[0] == "paid"
    await counter.live_on(121)
    assert await counter.end(top_up) == ("ready", None, None)
    assert counter.added() == 1


@pytest.mark.long
@pytest.mark.parametrize("sent", [False, True])
async def test_a_process_that_dies_after_the_commit_leaves_it_unknown(counter: TopUpShop, *, sent: bool) -> None:
    order, top_up = await counter.buy_both()
    row = await taken(counter, top_up, "lse_dead")
    dead = replace(counter.deps, replica="rpl_dead")
    target = await prepare_top_up(dead, row)
    await counter.world.store.write(TopUpSending(dead, row, target).begin, now=counter.world.clock.now())
    if sent:
        await target.upstream.ocs.packages.affect_to_subscriber(row.template_id, target.line.subscriber_id)
    await counter.work()
    assert (await counter.end(top_up))[0] == "provisioning"  # it may be alive
    await counter.live_on(31)
    assert (await counter.end(top_up))[0] == "needs_review"
    for _ in range(32):
        await counter.live_on(30)
    assert await counter.end(top_up) == (("ready", None, None) if sent else ("failed", "package_not_added", "done"))
    assert (counter.added(), len(await counter.packages(order))) == (int(sent), 1 + sent)
    assert await reviews(counter) == [f"{REVIEW}{top_up}"]


async def test_a_living_process_that_takes_long_keeps_its_row(counter: TopUpShop) -> None:
    _, top_up = await counter.buy_both()
    gate = counter.road.gates[ADD] = RoadGate()
    async with anyio.create_task_group() as group:
        group.start_soon(counter.worker.step)
        await gate.entered.wait()
        counter.world.clock.advance(29)
        await review_all_lost_orders(counter.deps)
        assert (await counter.end(top_up))[0] == "provisioning"
        gate.open.set()
    assert await counter.end(top_up) == ("ready", None, None)


async def given_up(counter: TopUpShop, top_up: str) -> None:
    """Another process finds that nothing was added, and has not begun the refund yet."""
    other = counter.another_process()
    for _ in range(34):
        counter.world.clock.advance(30)
        await review_all_lost_orders(other)
        if (await counter.end(top_up))[0] == "needs_review":
            await look_into_top_up(other, await taken(counter, top_up, counter.world.ids.new("lse_")))
    assert await counter.end(top_up) == ("failed", "package_not_added", "owed")


@pytest.mark.long
@pytest.mark.parametrize("refunded", [False, True])
async def test_an_answer_that_comes_after_all_stands_while_no_refund_was_begun(counter: TopUpShop, *, refunded: bool) -> None:
    """Its process stood still and was taken for dead, and the top-up for not added; then the call went through."""
    order, top_up = await counter.buy_both()
    gate = counter.road.gates[ADD] = RoadGate()
    async with anyio.create_task_group() as group:
        group.start_soon(counter.worker.step)
        await gate.entered.wait()
        await given_up(counter, top_up)
        if refunded:
            await Fulfilment(counter.another_process(), counter.reports.append).step()
        gate.open.set()
    await counter.work()
    assert await counter.end(top_up) == (("failed", "package_not_added", "done") if refunded else ("ready", None, None))
    assert (await counter.row(top_up)).package_id == (await counter.packages(order))[-1].id
    assert counter.refunded() == (1000 if refunded else 0)
