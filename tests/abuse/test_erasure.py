"""Erasing a buyer is confirmed for one buyer of one shop, by whoever asked, once."""

import httpx

from registry.caller import Tier
from tests.orders.stage import ADA_MAIL, OrdersShop, open_orders_shop
from tests.stage import opened

BO = "bo@example.com"


shop = opened(open_orders_shop)


async def ask(http: httpx.AsyncClient, storefront: str, email: str, token: str | None = None) -> httpx.Response:
    headers = {} if token is None else {"X-Confirm-Token": token}
    return await http.post(f"/v1/storefronts/{storefront}/erase-buyer", json={"email": email}, headers=headers)


async def test_a_confirm_token_erases_one_buyer_of_one_shop_for_whoever_asked_and_once(shop: OrdersShop) -> None:
    other = await shop.open_another("fjell-travel")
    orders = [await shop.paid(), await shop.paid(email=BO), await shop.paid(shop=other)]
    token = (await ask(shop.http, shop.row.id, ADA_MAIL)).json()["confirm_token"]
    colleague = await shop.world.caller(organisation=shop.me.organisation)
    stranger = await shop.world.caller(Tier.ENTERPRISE)
    for secret, storefront, email in [
        (shop.me.secret, shop.row.id, BO),
        (shop.me.secret, other.id, ADA_MAIL),
        (colleague.secret, shop.row.id, ADA_MAIL),
        (stranger.secret, shop.row.id, ADA_MAIL),
    ]:
        async with shop.world.client(secret) as http:
            said = await ask(http, storefront, email, token)
        refused = (404, "not_found") if secret == stranger.secret else (400, "confirm_token_invalid")
        assert (said.status_code, said.json()["code"]) == refused and "confirm_token" not in said.json()
    assert [(await shop.stored(id)).email for id in orders] == [ADA_MAIL, BO, ADA_MAIL]
    assert (await ask(shop.http, shop.row.id, ADA_MAIL, token)).json()["erased"] == 1
    assert [(await shop.stored(id)).email for id in orders] == [None, BO, ADA_MAIL]
    assert (await ask(shop.http, shop.row.id, ADA_MAIL, token)).json()["code"] == "confirm_token_invalid"
