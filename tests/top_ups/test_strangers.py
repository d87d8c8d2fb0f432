"""A top-up goes on its buyer's eSIM or back to the buyer: never on a SIM that was sold again, never to two at once, never to nobody."""

import anyio
import anyio.lowlevel
import pytest

from operations.storefronts.sales.order_fulfilment import fulfil_by_decision
from operations.storefronts.sales.top_up_sender import record_late_top_up
from simulators.network.faults import NetworkFault
from storage.order_queue import fail_order
from tests.issuance.road import RoadGate, held
from tests.top_ups.counter import ADD, TopUpShop

OPERATOR = "help@fjord.test"
LIST = "listSubscriberPrepaidPackages"


async def test_a_sim_that_was_freed_past_us_and_sold_again_gets_nothing(counter: TopUpShop) -> None:
    order, top_up = await counter.buy_both()
    line = await counter.line(order)
    line.packages[0].id += 500_000  # a stranger's, of the very same template
    await counter.work()
    assert await counter.end(top_up) == ("failed", "line_not_found", "done")
    assert (counter.added(), counter.refunded(), len(line.packages)) == (0, 1000, 1)


async def test_a_line_that_has_only_what_top_ups_added_is_the_buyers_still(counter: TopUpShop) -> None:
    order = await counter.buy()
    first = await counter.top_up(order)
    await counter.work()
    del (await counter.line(order)).packages[0]
    second = await counter.top_up(order)
    await counter.work()
    assert [await counter.end(top_up) for top_up in (first, second)] == [("ready", None, None)] * 2


async def test_a_list_that_trouble_has_emptied_sends_nothing_and_fails_nothing(counter: TopUpShop) -> None:
    _, top_up = await counter.buy_both()
    counter.trouble(NetworkFault(LIST, null_lists=True))
    await counter.work(1)
    assert (await counter.end(top_up), counter.added()) == (("paid", None, None), 0)
    await counter.live_on(60)
    assert (await counter.end(top_up), counter.added()) == (("ready", None, None), 1)


@pytest.mark.long
async def test_a_package_that_a_person_gave_to_one_top_up_is_not_found_for_its_rival(counter: TopUpShop) -> None:
    order = await counter.buy()
    rivals = [await counter.top_up(order) for _ in range(2)]
    gate = counter.road.gates[ADD] = RoadGate()
    async with anyio.create_task_group() as group:
        group.start_soon(counter.worker.step)
        while {(await counter.end(rival))[0] for rival in rivals} != {"provisioning"}:
            await anyio.lowlevel.checkpoint()
        counter.trouble(NetworkFault(ADD, drop_after=True), NetworkFault(ADD, drop_before=True))
        gate.open.set()
    await counter.live_on(31)
    now = counter.world.clock.now()
    await counter.world.store.write(fulfil_by_decision, deps=counter.deps, order=rivals[0], decision="added", by="ann", now=now)
    for _ in range(32):
        await counter.live_on(31)
    assert [await counter.end(rival) for rival in rivals] == [("ready", None, None), ("failed", "package_not_added", "done")]


@pytest.mark.parametrize("begun", [False, True])
async def test_an_answer_that_comes_after_the_end_is_told_to_the_operator(counter: TopUpShop, begun: bool) -> None:
    order = await counter.buy()
    first = await counter.top_up(order)
    await counter.work()
    late, store, package = await counter.top_up(order), counter.world.store, (await counter.row(first)).package_id or 0
    await store.write(fail_order, order=late, code="package_not_added", now=counter.world.clock.now())
    if begun:
        await counter.work()
        package += 1
    row, now = await counter.row(late), counter.world.clock.now()
    await counter.world.letters()
    await store.write(record_late_top_up, deps=counter.deps, row=row, package=package, now=now)
    assert [letter.to for letter in await counter.world.letters()][-1] == OPERATOR
    assert (await counter.end(late))[0] == ("failed" if begun else "needs_review")


async def test_a_roll_back_that_looked_before_a_top_up_came_is_refused_after_it_came(counter: TopUpShop) -> None:
    order, top_up = await counter.buy_both()
    look = counter.road.gates[LIST] = RoadGate(back=True)
    async with held(look, lambda: counter.roll_back(order)) as answers:
        del counter.road.gates[LIST]
        await counter.work()
        assert await counter.end(top_up) == ("ready", None, None)
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "top_up_under_way")
    assert len(await counter.packages(order)) == 2
    again = await counter.roll_back(order)
    assert (again.status_code, again.json()["code"]) == (409, "line_has_packages")
