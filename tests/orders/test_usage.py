"""get_storefront_order_usage: of the order's own line, while it is the buyer's, and never a guess."""

from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from simulators.network.entities import Package
from simulators.network.faults import NetworkFault
from tests.network_facts import TEMPLATE
from tests.orders.stage import OrdersShop

LINE, PACKAGES = "getSingleSubscriber", "listSubscriberPrepaidPackages"
GB, MB, TELENOR = 2**30, 2**20, 1
FAULTS: dict[str, Callable[[str], NetworkFault]] = {
    "dropped": lambda method: NetworkFault(method, drop_before=True, times=None),
    "malformed": lambda method: NetworkFault(method, malformed=True, times=None),
    "empty": lambda method: NetworkFault(method, empty=True, times=None),
    "status 500": lambda method: NetworkFault(method, status=500, times=None),
    "code 3": lambda method: NetworkFault(method, code=3, times=None),
    "code 14": lambda method: NetworkFault(method, code=14, times=None),
}


async def use(shop: OrdersShop, id: str, quantity: int) -> None:
    iccid = (await shop.stored(id)).iccid
    await shop.control("usage", orjson.dumps({"iccid": iccid, "usageType": 33, "quantity": quantity, "networkId": TELENOR}))


async def packages(shop: OrdersShop, id: str) -> list[Package]:
    return (await shop.line((await shop.stored(id)).iccid or "")).packages


async def usage(shop: OrdersShop, id: str) -> dict[str, object]:
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert said.status_code == 200, said.text
    return said.json()


@pytest.mark.rule("4.6.15")
async def test_before_the_first_use_all_is_left_and_nothing_ends(shop: OrdersShop) -> None:
    id = await shop.ready()
    assert await usage(shop, id) == {"usedBytes": 0, "totalBytes": GB, "remainingBytes": GB, "expiresAt": None}


@pytest.mark.long
@pytest.mark.rule("4.6.15")
async def test_usage_is_all_that_was_used_since_the_order(shop: OrdersShop) -> None:
    id = await shop.ready()
    await use(shop, id, 300 * MB)
    used = {"usedBytes": 300 * MB, "totalBytes": GB, "remainingBytes": GB - 300 * MB, "expiresAt": "2027-02-14T12:00:00Z"}
    assert await usage(shop, id) == used
    iccid = (await shop.stored(id)).iccid
    await shop.http.post(f"/v1/subscribers/{iccid}/packages", json={"packageTemplateId": TEMPLATE}, headers={"Idempotency-Key": "more"})
    assert await usage(shop, id) == {**used, "totalBytes": 2 * GB, "remainingBytes": 2 * GB - 300 * MB}
    shop.world.clock.advance(31 * 86_400)
    assert await usage(shop, id) == {**used, "totalBytes": 2 * GB, "remainingBytes": GB, "expiresAt": None}
    await use(shop, id, 200 * MB)  # of the second package, now that the first one is over
    both = await usage(shop, id)
    assert (both["usedBytes"], both["totalBytes"], both["remainingBytes"]) == (500 * MB, 2 * GB, GB - 200 * MB)


async def test_a_package_of_whoever_had_the_sim_before_does_not_count(shop: OrdersShop) -> None:
    id = await shop.ready()
    (own,) = await packages(shop, id)
    held = await packages(shop, id)
    before = replace(own, id=own.id + 1000)
    before.assigned, before.data_used = own.assigned - 86_400, 7 * MB
    held.append(before)
    assert (await usage(shop, id))["usedBytes"] == 0
    before.assigned = own.assigned + 1
    assert (await usage(shop, id))["usedBytes"] == 7 * MB


async def test_what_is_blocked_is_not_left(shop: OrdersShop) -> None:
    id = await shop.ready()
    (own,) = await packages(shop, id)
    own.active = False
    assert await usage(shop, id) == {"usedBytes": 0, "totalBytes": GB, "remainingBytes": 0, "expiresAt": None}


@pytest.mark.cases
@pytest.mark.rule("4.6.15")
@pytest.mark.rule("7.15")
@pytest.mark.parametrize("method", [LINE, PACKAGES])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_failure_upstream_is_502_and_never_a_zero(shop: OrdersShop, method: str, fault: str) -> None:
    id = await shop.ready()
    shop.trouble(FAULTS[fault](method))
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert (said.status_code, "usedBytes" in said.text) == (502, False)


@pytest.mark.cases
@pytest.mark.parametrize("answer", [{}, {"packages": []}, {"packages": None}])
async def test_an_answer_without_the_order_s_package_is_no_zero(shop: OrdersShop, answer: dict[str, object]) -> None:
    id = await shop.ready()
    shop.road.answers[PACKAGES] = orjson.dumps({"status": {"code": 0, "msg": "OK"}, PACKAGES: answer})
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert said.status_code in (409, 502) and "usedBytes" not in said.text


@pytest.mark.parametrize("missing", ["useddatabyte", "tsassigned"])
async def test_a_package_that_is_not_told_whole_is_no_zero(shop: OrdersShop, missing: str) -> None:
    id = await shop.ready()
    own = (await shop.stored(id)).package_id
    row = {"pckdatabyte": GB, "useddatabyte": 5, "tsassigned": "2027-01-15T12:00:00"}
    told = [{**row, "subscriberprepaidpackageid": own}, {**row, "subscriberprepaidpackageid": 1}]
    del told[1][missing]
    shop.road.answers[PACKAGES] = orjson.dumps({"status": {"code": 0, "msg": "OK"}, PACKAGES: {"packages": told}})
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")


@pytest.mark.cases
@pytest.mark.parametrize("state", ["pending_payment", "paid", "failed"])
async def test_an_order_without_an_esim_has_no_usage(shop: OrdersShop, state: str) -> None:
    id = await {"pending_payment": shop.order, "paid": shop.paid, "failed": shop.failed}[state]()
    asked = len(shop.world.sandbox.calls)
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert (said.status_code, said.json()["code"], state in said.json()["error"]) == (409, "order_not_ready", True)
    assert shop.methods(asked) == []


async def test_another_buyer_s_use_is_never_shown(shop: OrdersShop) -> None:
    id = await shop.ready()
    await shop.take_back(id)
    shop.world.clock.advance(61)
    other = await shop.ready(email="bo@example.com")
    assert (await shop.stored(other)).iccid == (await shop.stored(id)).iccid
    await use(shop, other, 5 * MB)
    assert (await usage(shop, other))["usedBytes"] == 5 * MB
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert (said.status_code, said.json()["code"]) == (409, "order_not_ready")


async def test_a_sim_that_was_freed_past_us_and_sold_again_shows_nothing(shop: OrdersShop) -> None:
    id = await shop.ready()
    (own,) = await packages(shop, id)
    (await packages(shop, id))[0] = replace(own, id=own.id + 1000)
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert (said.status_code, said.json()["code"]) == (409, "order_not_ready")


async def test_a_line_that_was_moved_away_shows_nothing(shop: OrdersShop) -> None:
    id = await shop.ready()
    (await shop.line((await shop.stored(id)).iccid or "")).account_id = 8102
    said = await shop.server.get(f"/api/orders/{id}/usage")
    assert (said.status_code, said.json()["code"]) == (409, "order_not_ready")


@pytest.mark.rule("4.6.15")
async def test_an_iccid_in_the_request_is_refused(shop: OrdersShop) -> None:
    id, other = await shop.ready(), await shop.ready()
    iccid = (await shop.stored(other)).iccid
    said = await shop.server.get(f"/api/orders/{id}/usage?iccid={iccid}")
    assert (said.status_code, said.json()["code"]) == (400, "unknown_field")
