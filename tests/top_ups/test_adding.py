"""A paid top-up comes onto its order's own line, once, or the money goes back."""

from collections.abc import Awaitable, Callable, Mapping

import anyio
import pytest

from simulators.network.faults import NetworkFault
from storage.placed_packages import placed_packages_among
from tests.top_ups.counter import ADD, NORDIC, NORDIC_BIG, TopUpShop
from transports.upstream import deliver_in_process

FIND_LINE, LIST = "getSingleSubscriber", "listSubscriberPrepaidPackages"
Happening = Callable[[TopUpShop, str], Awaitable[None]]
UNSENT = ("refused before it was sent", "the traffic limit")


async def test_a_paid_top_up_adds_one_package_to_the_orders_own_line(counter: TopUpShop) -> None:
    order = await counter.buy()
    before = await counter.packages(order)
    top_up = await counter.top_up(order, "nordic-big")
    await counter.work()
    row = await counter.row(top_up)
    new = (await counter.packages(order))[len(before) :]
    assert (row.status, row.code, row.refund, row.lease, row.due_ms) == ("ready", None, None, None, None)
    assert [(package.id, package.template_id) for package in new] == [(row.package_id, NORDIC_BIG)]
    assert row.ready_at == counter.world.clock.now()
    assert row.package_id is not None
    assert await counter.world.store.read(placed_packages_among, packages=[row.package_id]) == {row.package_id}
    assert [letter.to for letter in await counter.world.letters()] == ["buyer@home.test"] * 2


async def test_two_top_ups_of_one_order_at_once_are_both_added_each_once(counter: TopUpShop) -> None:
    order = await counter.buy()
    top_ups = [(await counter.begin_top_up(order)).order for _ in range(2)]
    for top_up in top_ups:
        await counter.pay(top_up)
    await counter.told()
    await counter.work()
    assert [(await counter.end(top_up))[0] for top_up in top_ups] == ["ready", "ready"]
    assert {(await counter.row(top_up)).package_id for top_up in top_ups} == {package.id for package in (await counter.packages(order))[1:]}


@pytest.mark.long
async def test_thirty_two_tellings_of_one_payment_add_one_package(counter: TopUpShop) -> None:
    order = await counter.buy()
    begun = await counter.begin_top_up(order)
    await counter.pay(begun.order)
    posts: list[tuple[str, bytes, Mapping[str, str]]] = []

    async def catch(url: str, body: bytes, headers: Mapping[str, str]) -> int:
        posts.append((url, body, headers))
        return 200

    await counter.world.payments.deliver(catch)
    answers: list[int] = []

    async def tell(post: tuple[str, bytes, Mapping[str, str]]) -> None:
        answers.append(await deliver_in_process(counter.world.door, *post))
        await counter.work(1)

    async with anyio.create_task_group() as group:
        for _ in range(32):
            for post in posts:
                group.start_soon(tell, post)
    await counter.work()
    assert len(answers) >= 32 and set(answers) == {200}
    assert await counter.end(begun.order) == ("ready", None, None)
    assert (counter.added(), len(await counter.packages(order))) == (1, 2)


@pytest.mark.rule("3.6.9")
async def test_a_top_up_that_is_paid_after_a_cancel_is_refunded(counter: TopUpShop) -> None:
    order = await counter.buy()
    begun = await counter.begin_top_up(order)
    await counter.cancel(order)
    counter.world.clock.advance(1)
    await counter.pay(begun.order)
    await counter.told()
    await counter.work()
    assert await counter.end(begun.order) == ("failed", "order_closed", "done")
    assert (counter.added(), counter.refunded()) == (0, 1000)


@pytest.mark.long
async def test_a_top_up_that_was_paid_before_the_cancel_is_delivered(counter: TopUpShop) -> None:
    order, top_up = await counter.buy_both()
    counter.world.clock.advance(1)
    await counter.cancel(order)
    await counter.work()
    assert await counter.end(top_up) == ("ready", None, None)


async def test_a_top_up_of_an_esim_that_was_given_back_meanwhile_is_refunded(counter: TopUpShop) -> None:
    order, top_up = await counter.buy_both()
    assert (await counter.roll_back(order)).json()["status"] == "rolled_back"
    await counter.work()
    assert await counter.end(top_up) == ("failed", "order_closed", "done")
    assert (counter.added(), counter.refunded()) == (0, 1000)


async def moved(counter: TopUpShop, order: str) -> None:
    """Somebody moves the line to another account."""
    (await counter.line(order)).account_id = 8102


async def freed(counter: TopUpShop, order: str) -> None:
    """Somebody puts the SIM back in stock."""
    (await counter.line(order)).sim.status = "FREE"


async def untold(counter: TopUpShop, order: str) -> None:
    del order
    network = await counter.world.network()
    network.templates[NORDIC].deleted = True
    counter.world.clock.advance(61)  # what is known of templates is a minute old at most


@pytest.mark.cases
@pytest.mark.parametrize(
    ("happens", "code"),
    [(moved, "line_not_found"), (freed, "line_not_found"), (untold, "template_not_visible")],
    ids=["moved", "freed", "no template"],
)
async def test_what_surely_cannot_be_added_is_refunded_unsent(counter: TopUpShop, happens: Happening, code: str) -> None:
    order, top_up = await counter.buy_both()
    await happens(counter, order)
    await counter.work()
    assert await counter.end(top_up) == ("failed", code, "done")
    assert (counter.added(), counter.refunded()) == (0, 1000)
    assert [letter.to for letter in await counter.world.letters()] == ["buyer@home.test"] * 2


@pytest.mark.cases
@pytest.mark.parametrize("code", [2, 14, 17])
async def test_what_the_charging_system_surely_refuses_is_refunded(counter: TopUpShop, code: int) -> None:
    order, top_up = await counter.buy_both()
    counter.trouble(NetworkFault(ADD, code=code))
    await counter.work()
    assert await counter.end(top_up) == ("failed", "package_refused", "done")
    assert (counter.added(), counter.refunded(), len(await counter.packages(order))) == (1, 1000, 1)


@pytest.mark.parametrize("how", UNSENT)
async def test_what_surely_never_left_is_tried_again(counter: TopUpShop, how: str) -> None:
    order, top_up = await counter.buy_both()
    stop(counter, how)
    await counter.work()
    row = await counter.row(top_up)
    assert (row.status, row.tries, row.before, row.owner) == ("paid", 1, None, None)
    start(counter)
    await counter.live_on(6)
    assert await counter.end(top_up) == ("ready", None, None)
    assert len(await counter.packages(order)) == 2


@pytest.mark.long
@pytest.mark.parametrize("how", [*UNSENT, "the line cannot be read"])
async def test_after_an_hour_of_that_the_money_goes_back(counter: TopUpShop, how: str) -> None:
    order, top_up = await counter.buy_both()
    stop(counter, how)
    for seconds in [5, 10, 20, 40, 80, 160] + [300] * 12:
        await counter.live_on(seconds)
    assert await counter.end(top_up) == ("failed", "provider_unreachable", "done")
    assert (counter.refunded(), len(await counter.packages(order))) == (1000, 1)


def stop(counter: TopUpShop, how: str) -> None:
    if how == UNSENT[0]:
        counter.road.refused.add(ADD)
    elif how == UNSENT[1]:
        counter.trouble(NetworkFault(ADD, code=100, times=None))
    else:
        counter.trouble(NetworkFault(FIND_LINE, status=503, times=None))


def start(counter: TopUpShop) -> None:
    counter.road.refused.clear()
    counter.world.sandbox.faults.clear()


@pytest.mark.long
async def test_an_organisation_without_a_token_left_waits_and_nothing_fails(counter: TopUpShop) -> None:
    order = await counter.buy()
    top_ups = [(await counter.begin_top_up(order)).order for _ in range(12)]
    for top_up in top_ups:
        await counter.pay(top_up)
    await counter.told()
    await counter.work()
    states = [(await counter.end(top_up))[0] for top_up in top_ups]
    assert states.count("paid") >= 2 and set(states) == {"ready", "paid"}
    assert {row.tries for row in await counter.top_ups(order)} == {0}
    await counter.live_on(1)
    assert {(await counter.end(top_up))[0] for top_up in top_ups} == {"ready"}
    assert (counter.added(), len(await counter.packages(order))) == (12, 13)
