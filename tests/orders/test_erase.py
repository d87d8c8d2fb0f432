"""erase_buyer: the address goes from everywhere, what was sold stays."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx

from clients.mail.letter import Letter
from operations.letters import queue_letter, seal_letter
from registry.caller import Role, Tier
from storage.engine.sql import Connection
from tests.orders.stage import ADA_MAIL, OrdersShop


async def ask(
    shop: OrdersShop, email: str = ADA_MAIL, *, http: httpx.AsyncClient | None = None, shop_id: str | None = None
) -> httpx.Response:
    return await (http or shop.http).post(f"/v1/storefronts/{shop_id or shop.row.id}/erase-buyer", json={"email": email})


async def erase(shop: OrdersShop, email: str = ADA_MAIL) -> httpx.Response:
    challenge = await ask(shop, email)
    assert challenge.status_code == 202, challenge.text
    headers = {"X-Confirm-Token": challenge.json()["confirm_token"]}
    return await shop.http.post(f"/v1/storefronts/{shop.row.id}/erase-buyer", json={"email": email}, headers=headers)


async def test_the_address_goes_and_the_rest_stays(shop: OrdersShop) -> None:
    id, bo, failed = await shop.ready(), await shop.ready(email="bo@example.com"), await shop.failed()
    top_up = await shop.paid(top_up_of=id)
    before, rows = await shop.read(id), [await shop.stored(each) for each in (id, failed, top_up)]
    said = await erase(shop, "Ada@Example.COM")
    assert (said.status_code, said.json()) == (200, {"object": "storefront.erasure", "storefront": shop.row.id, "erased": 3})
    assert await shop.read(id) == before
    assert [await shop.stored(each) for each in (id, failed, top_up)] == [row._replace(email=None) for row in rows]
    assert (await shop.stored(bo)).email == "bo@example.com"
    query = {"storefront": shop.row.slug, "email": ADA_MAIL}
    assert (await shop.server.get("/api/orders", params=query)).json()["data"] == []
    assert (await erase(shop)).json()["erased"] == 0


async def test_mails_that_wait_are_not_sent_any_more_and_those_of_others_are(shop: OrdersShop) -> None:
    id = await shop.ready()
    await shop.ready(email="bo@example.com")
    deps = shop.world.pipeline.deps
    code = seal_letter(Letter(ADA_MAIL, "Your code", "123456"), ids=deps.ids, keyring=deps.keyring, expires_at=deps.clock.now() + 600)

    def post(connection: Connection) -> None:
        queue_letter(connection, code, deps.clock)

    await shop.world.store.write(post)
    assert (await erase(shop)).json()["erased"] == 1
    letters = await shop.world.letters()
    assert [letter.subject for letter in letters if letter.to == ADA_MAIL] == ["Your code"]
    assert "bo@example.com" in {letter.to for letter in letters}
    assert [letter for letter in letters if id in letter.text] == []


async def test_an_order_on_its_way_is_fulfilled_without_a_mail(shop: OrdersShop) -> None:
    id = await shop.paid()
    await erase(shop)
    await shop.fulfil(id)
    assert (await shop.read(id))["esim"] is not None
    assert await shop.world.letters() == []


async def test_the_database_and_the_log_hold_the_address_nowhere(shop: OrdersShop, tmp_path: Path) -> None:
    await shop.ready()
    await shop.failed()
    await shop.server.get("/api/orders", params={"storefront": shop.row.slug, "email": ADA_MAIL})
    await shop.http.get("/v1/storefronts/orders", params={"email": ADA_MAIL})
    assert ADA_MAIL in dumped(tmp_path)
    await erase(shop)
    await shop.world.journal.flush()
    assert ADA_MAIL not in dumped(tmp_path)
    assert ADA_MAIL not in str(shop.world.lines) and len(shop.world.lines) > 3


def dumped(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "service.db")) as database:
        return "\n".join(database.iterdump())


async def test_it_is_asked_twice_and_only_of_admins(shop: OrdersShop) -> None:
    challenge = await ask(shop)
    assert challenge.json()["route"] == "POST /v1/storefronts/{id}/erase-buyer"
    member = await shop.world.caller(role=Role.MEMBER, organisation=shop.me.organisation)
    async with shop.world.client(member.secret) as http:
        assert ((said := await ask(shop, http=http)).status_code, said.json()["code"]) == (403, "role_required")


async def test_an_admin_of_any_tier_may(shop: OrdersShop) -> None:
    await shop.paid()
    await shop.world.move_to(Tier.FREE, shop.me.organisation)
    assert (await erase(shop)).json()["erased"] == 1


async def test_another_shop_of_the_organisation_keeps_it(shop: OrdersShop) -> None:
    there = await shop.paid(shop=await shop.open_another("fjell-travel"))
    await erase(shop)
    assert (await shop.stored(there)).email == ADA_MAIL
