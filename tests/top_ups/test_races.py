"""Several at once, on either database: a top-up goes once, and never onto an eSIM that goes back."""

import anyio
import anyio.lowlevel
import httpx
import pytest

from operations.storefronts.sales.order_fulfilment import Fulfilment
from simulators.network.faults import NetworkFault
from storage.replicas import renew_replica
from tests.issuance.road import RoadGate
from tests.stage import opened_on_both
from tests.top_ups.counter import ADD, TopUpShop, open_counter

counter = opened_on_both(open_counter)


@pytest.mark.long
async def test_the_workers_of_two_processes_add_each_top_up_once(counter: TopUpShop) -> None:
    order = await counter.buy()
    top_ups = [await counter.top_up(order) for _ in range(6)]
    other = counter.another_process()
    await counter.world.store.write(renew_replica, replica=other.replica, now=counter.world.clock.now())
    async with anyio.create_task_group() as group:
        for deps in (counter.deps, other) * 3:
            group.start_soon(Fulfilment(deps, counter.reports.append).step)
    await counter.work()
    assert {await counter.end(top_up) for top_up in top_ups} == {("ready", None, None)}
    assert (counter.added(), len(await counter.packages(order)), counter.reports) == (6, 7, [])


@pytest.mark.long
@pytest.mark.parametrize("attempt", range(3))
async def test_an_esim_goes_back_or_takes_the_top_up_and_never_both(counter: TopUpShop, attempt: int) -> None:
    del attempt
    order, top_up = await counter.buy_both()
    answers: list[httpx.Response] = []

    async def returns() -> None:
        answers.append(await counter.roll_back(order))

    async with anyio.create_task_group() as group:
        group.start_soon(returns)
        group.start_soon(counter.worker.step)
    await counter.work()
    went_back = answers[0].status_code == 200
    assert went_back or answers[0].json()["code"] in ("top_up_under_way", "line_has_packages"), answers[0].text
    refunded = [("failed", code, "done") for code in ("order_closed", "line_not_found")]
    assert await counter.end(top_up) in (refunded if went_back else [("ready", None, None)])
    assert len(await counter.packages(order)) == (0 if went_back else 2)


async def test_a_roll_back_that_has_looked_at_the_line_before_a_top_up_went_is_refused(counter: TopUpShop) -> None:
    order, top_up = await counter.buy_both()
    look = counter.road.gates["listSubscriberPrepaidPackages"] = RoadGate(back=True)
    answers: list[httpx.Response] = []

    async def returns() -> None:
        answers.append(await counter.roll_back(order))

    async with anyio.create_task_group() as group:
        group.start_soon(returns)
        await look.entered.wait()
        del counter.road.gates["listSubscriberPrepaidPackages"]
        sending = counter.road.gates[ADD] = RoadGate()
        group.start_soon(counter.worker.step)
        await sending.entered.wait()
        look.open.set()
        while not answers:
            await anyio.lowlevel.checkpoint()
        sending.open.set()
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "top_up_under_way")
    assert await counter.end(top_up) == ("ready", None, None)


@pytest.mark.long
async def test_what_was_lost_is_found_on_either_database(counter: TopUpShop) -> None:
    _, top_up = await counter.buy_both()
    counter.trouble(NetworkFault(ADD, drop_after=True))
    await counter.worker.step()
    for _ in range(3):
        await counter.live_on(31)
    assert await counter.end(top_up) == ("ready", None, None)
