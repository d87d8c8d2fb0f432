"""Plans with `adapt`: what a buyer pays for is on the eSIM before it is theirs, whatever comes between."""

import pytest

from operations.ledger.adaptation import PackageAdaptations
from operations.plans import BYTES_PER_MB
from operations.storefronts.sales.order_fulfilment import fulfil_by_decision
from simulators.network.faults import NetworkFault
from storage.package_adaptations import set_adapted
from tests.fulfilment.floor import Floor
from tests.issuance.test_adaptation import SET_EXPIRY, SET_LIMITS
from tests.network_facts import HOUR

SOLD = (1000 * BYTES_PER_MB, 30)
"""Of the plan; its template has 1073 MB."""
OPERATOR = "help@fjord.test"


async def adapting(floor: Floor) -> Floor:
    await floor.shop.world.store.write(set_adapted, offer=floor.shop.plans["nordic"].id, adapt=True)
    return floor


async def terms(floor: Floor, order: str) -> list[tuple[int | None, int]]:
    """Data and days of the packages on the eSIM of an order, oldest first."""
    return [(package.data_limit, package.period_days) for package in await floor.shop.packages(order)]


async def adapt(floor: Floor, seconds: float = 0) -> None:
    floor.shop.world.clock.advance(seconds)
    await floor.work()
    await PackageAdaptations(floor.deps, floor.shop.reports.append).step()


def sent(floor: Floor, method: str) -> int:
    return sum(call.method == method for call in floor.shop.world.sandbox.calls)


async def test_an_order_gets_what_was_sold_and_its_buyer_is_told_no_more(floor: Floor) -> None:
    order = await (await adapting(floor)).paid()
    await floor.work()
    assert await floor.end(order) == ("ready", None, None) and await terms(floor, order) == [SOLD]
    shown = (await floor.shop.http.get(f"/api/orders/{order}")).json()
    assert sorted(shown["plan"]) == ["countries", "data_mb", "name", "slug", "validity_days"]
    assert (sent(floor, SET_LIMITS), sent(floor, SET_EXPIRY), len(await floor.letters())) == (1, 1, 1)


@pytest.mark.parametrize("fault", [NetworkFault(SET_LIMITS, drop_after=True), NetworkFault(SET_EXPIRY, drop_before=True)])
async def test_an_order_stays_in_provisioning_until_its_package_is_as_it_was_sold(floor: Floor, fault: NetworkFault) -> None:
    order = await (await adapting(floor)).paid()
    floor.shop.trouble(fault)
    await floor.work()
    assert (await floor.end(order))[0] == "provisioning" and await floor.letters() == [] == await floor.told()
    await adapt(floor, 6)
    assert await floor.end(order) == ("ready", None, None) and await terms(floor, order) == [SOLD]
    assert (floor.draws(), len(await floor.letters()), len(await floor.told())) == (1, 1, 1)


async def test_an_order_whose_package_is_refused_its_terms_is_its_operators_to_look_at(floor: Floor) -> None:
    order = await (await adapting(floor)).paid()
    floor.shop.trouble(NetworkFault(SET_LIMITS, code=14, times=None))
    await floor.work()
    assert await floor.end(order) == ("needs_review", "package_not_adapted", None)
    [letter] = await floor.letters()
    assert (letter.to, letter.subject) == (OPERATOR, f"An order needs review: {order}") and "modify_package_limits" in letter.text
    for _ in range(3):
        await adapt(floor, HOUR)
    assert len(await floor.letters()) == 1
    floor.shop.world.sandbox.faults.clear()
    await adapt(floor, 6 * HOUR)
    assert await floor.end(order) == ("ready", None, None) and await terms(floor, order) == [SOLD]


async def test_an_order_that_is_taken_back_unadapted_can_be_refunded(floor: Floor) -> None:
    order = await (await adapting(floor)).paid()
    floor.shop.trouble(NetworkFault(SET_LIMITS, code=14, times=None))
    await floor.work()
    path = f"/v1/subscribers/issue-from-inventory/{order}"
    async with floor.shop.world.client(floor.shop.me.secret) as http:
        token = (await http.delete(path)).json()["confirm_token"]
        said = await http.delete(path, headers={"X-Confirm-Token": token})
    assert (said.status_code, said.json()["data"]["status"]) == (200, "rolled_back")
    decided = {"order": order, "decision": "refund", "by": "ada", "now": floor.shop.world.clock.now()}
    await floor.shop.world.store.write(fulfil_by_decision, deps=floor.deps, **decided)  # pyright: ignore[reportArgumentType]
    await floor.work(2)
    assert await floor.end(order) == ("failed", "settled_by_operator", "done") and floor.refunds() == [1000]


async def test_a_top_up_gets_what_was_sold(floor: Floor) -> None:
    order = await floor.shop.buy()
    await adapting(floor)
    top_up = await floor.shop.top_up(order)
    await floor.work()
    assert await floor.end(top_up) == ("ready", None, None) and (await terms(floor, order))[1:] == [SOLD]


@pytest.mark.parametrize("fault", [NetworkFault(SET_LIMITS, drop_after=True), NetworkFault(SET_EXPIRY, drop_before=True)])
async def test_a_top_up_is_ready_once_its_package_is_as_it_was_sold(floor: Floor, fault: NetworkFault) -> None:
    order = await floor.shop.buy()
    await adapting(floor)
    top_up = await floor.shop.top_up(order)
    floor.shop.trouble(fault)
    letters = len(await floor.letters())
    await floor.work()
    assert (await floor.end(top_up))[:2] == ("needs_review", "package_adapting") and len(await floor.letters()) == letters
    await floor.work(every=6)
    assert await floor.end(top_up) == ("ready", None, None) and (await terms(floor, order))[1:] == [SOLD]
    assert floor.shop.added() == 1 and len(await floor.letters()) == letters + 1


@pytest.mark.long
async def test_a_top_up_that_is_refused_its_terms_waits_and_its_operator_is_told_once(floor: Floor) -> None:
    order = await floor.shop.buy()
    await adapting(floor)
    top_up = await floor.shop.top_up(order)
    floor.shop.trouble(NetworkFault(SET_LIMITS, code=14, times=None))
    for _ in range(5):
        await floor.work(every=600)
    assert (await floor.end(top_up))[:2] == ("needs_review", "package_not_adapted")
    assert [letter.subject for letter in await floor.letters(OPERATOR)] == [f"A top-up needs review: {top_up}"]
    floor.shop.world.sandbox.faults.clear()
    await floor.work(every=600)
    assert await floor.end(top_up) == ("ready", None, None) and (await terms(floor, order))[1:] == [SOLD]
    assert floor.shop.added() == 1


async def test_a_top_up_whose_own_answer_was_lost_is_adapted_once_it_is_found(floor: Floor) -> None:
    order = await floor.shop.buy()
    await adapting(floor)
    top_up = await floor.shop.top_up(order)
    floor.shop.trouble(NetworkFault("affectPackageToSubscriber", drop_after=True))
    await floor.work()
    assert (await floor.end(top_up))[:2] == ("needs_review", "OUTCOME_UNKNOWN") and sent(floor, SET_LIMITS) == 0
    await floor.work(2, every=31)
    assert await floor.end(top_up) == ("ready", None, None) and (await terms(floor, order))[1:] == [SOLD]
    assert floor.shop.added() == 1 == sent(floor, SET_LIMITS)
