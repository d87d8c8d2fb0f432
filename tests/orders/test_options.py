"""get_storefront_order_top_up_options: what goes on the order's eSIM, and nothing when nothing does."""

import orjson
import pytest
from inline_snapshot import snapshot

from simulators.network.faults import NetworkFault
from storage.engine.sql import Command, Connection
from storage.storefronts import StorefrontTable
from tests.orders.stage import OrdersShop

NORDIC_5GB, M2M, DELETED, OF_ANOTHER_RESELLER = 55011, 55038, 55041, 55042
TEMPLATES = "listPrepaidPackageTemplate"
SHOP = StorefrontTable.table
UNPUBLISH = Command(SHOP.update().values(status="draft"))


async def options(shop: OrdersShop, id: str) -> list[dict[str, object]]:
    said = await shop.server.get(f"/api/orders/{id}/top-up-options")
    assert said.status_code == 200, said.text
    return said.json()


@pytest.mark.rule("4.6.14")
async def test_plans_that_fit_the_esim_are_listed_as_the_shop_displays_them(shop: OrdersShop) -> None:
    id = await shop.ready()
    first = await shop.sell("nordic-5gb", template=NORDIC_5GB, place=-1)
    for slug, template in {"m2m": M2M, "old": DELETED, "alps": OF_ANOTHER_RESELLER}.items():
        await shop.sell(slug, template=template)
    await shop.sell("hidden", on_sale=False)
    found = await options(shop, id)
    shown, usual = found
    assert (shown.pop("id"), usual.pop("id")) == (first.id, shop.plan.id)
    assert shown == snapshot(
        {
            "slug": "nordic-5gb",
            "name": "Nordic 1 GB",
            "data_mb": 1000,
            "validity_days": 30,
            "countries": ["DK", "NO", "SE"],
            "price_cents": 900,
            "currency": "EUR",
            "position": -1,
        }
    )
    assert usual == {**shown, "slug": "nordic-1gb", "position": 0}


@pytest.mark.cases
@pytest.mark.rule("4.6.14")
@pytest.mark.parametrize("state", ["pending_payment", "paid", "failed", "cancelled", "rolled back", "moved away", "unpublished"])
async def test_nothing_can_be_added_to_an_esim_that_is_not_the_buyer_s_to_top_up(shop: OrdersShop, state: str) -> None:
    makers = {"pending_payment": shop.order, "paid": shop.paid, "failed": shop.failed}
    id = await makers.get(state, shop.ready)()
    if state == "cancelled":
        await shop.server.post(f"/api/orders/{id}/cancel", json={})
    elif state == "rolled back":
        await shop.take_back(id)
    elif state == "moved away":
        (await shop.line((await shop.stored(id)).iccid or "")).account_id = 8102
    elif state == "unpublished":
        await shop.world.store.write(unpublish)
    assert await options(shop, id) == []


def unpublish(connection: Connection) -> None:
    connection.run(UNPUBLISH)


async def test_when_the_first_template_is_gone_nothing_else_is_sure_to_fit(shop: OrdersShop) -> None:
    id = await shop.ready()
    await shop.sell("nordic-5gb", template=NORDIC_5GB)
    (await shop.world.network()).templates[shop.plan.template_id].deleted = True
    assert await options(shop, id) == []


@pytest.mark.parametrize("method", ["getSingleSubscriber", TEMPLATES])
async def test_a_failure_upstream_is_no_empty_list(shop: OrdersShop, method: str) -> None:
    id = await shop.ready()
    shop.world.clock.advance(120)
    shop.trouble(NetworkFault(method, status=500, times=None))
    said = await shop.server.get(f"/api/orders/{id}/top-up-options")
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")


async def test_where_the_charging_system_says_that_a_template_recurs_it_is_no_top_up(shop: OrdersShop) -> None:
    id = await shop.ready()
    shop.world.clock.advance(120)
    row = {"prepaidpackagetemplateid": shop.plan.template_id, "resellerid": 7001, "sponsors": {"sponsorid": 31}}
    for recurring, found in ((False, 1), (True, 0)):
        told = {"status": {"code": 0, "msg": "OK"}, TEMPLATES: {"template": [{**row, "recurring": recurring}]}}
        shop.road.answers[TEMPLATES] = orjson.dumps(told)
        assert len(await options(shop, id)) == found
        shop.world.clock.advance(120)
