"""What opens an order, and what is shown of it to everybody else: the number is seen by many, and opens nothing."""

import re
from dataclasses import asdict

import pytest
from inline_snapshot import snapshot

from operations.storefronts.buyers import renew_order_access
from registry.caller import Role
from registry.limits import Limits
from registry.ports import SharedSecrets
from tests.abuse.test_order_guesses import faceless
from tests.pages.browser import Browser
from tests.shop_pages.market import SHOP_PATH, PagesMarket, heading, order_of, scanned, token_of
from tests.top_ups.counter import BUYER, TOP_UPS_KEY

TOKEN = re.compile(r"ord_[0-9a-z]{26}")
OPENS = [("GET", ""), ("GET", "/usage"), ("GET", "/top-up-options"), ("POST", "/cancel"), ("POST", "/top-up-checkouts/tuc_x/cancel")]


@pytest.fixture
async def open_market_of(market: PagesMarket) -> PagesMarket:
    """Without a storefront key: what its reader names is all that opens an order."""
    market.counter.world.pipeline.secrets = SharedSecrets()
    return market


async def mailed_link(market: PagesMarket) -> str:
    """The path of the link in the newest mail to the buyer."""
    letters = [letter for letter in await market.counter.world.letters() if letter.to == BUYER]
    found = re.search(r"https://reseller\.test(/shop/\S+)", letters[-1].text)
    assert found is not None
    return found[1]


async def operator_sees(market: PagesMarket) -> str:
    """All that the organisation is shown of its orders: lists, events, charges."""
    paths = ("/v1/storefronts/orders", "/v1/connectivity/events", "/v1/operator-billing/charges", "/v1/audit-log")
    async with market.counter.world.client(market.counter.me.secret) as http:
        answers = [await http.get(path) for path in paths]
    assert [answer.status_code for answer in answers] == [200] * len(paths), [answer.text for answer in answers]
    return "\n".join(answer.text for answer in answers)


@pytest.mark.long
async def test_what_the_organisation_and_the_processor_see_of_an_order_is_its_number(market: PagesMarket, browser: Browser) -> None:
    number = order_of(await market.bought(browser))
    seen = await operator_sees(market)
    assert TOKEN.findall(seen) == []
    assert {f'"id":"{number}"', f'"order":"{number}"', f'"idempotency_key":"{number}"'} <= set(re.findall(r'"\w+":"onr_\w+"', seen))
    processor = str(asdict(market.counter.world.payments.state))
    assert TOKEN.findall(processor) == [] and number in processor
    asked = [call.key for call in market.counter.world.payments.calls]
    assert number in asked and not any(TOKEN.search(key) for key in asked)


async def test_a_number_opens_nothing_and_looks_like_an_order_that_never_was(open_market_of: PagesMarket, browser: Browser) -> None:
    market = open_market_of
    number = order_of(await market.bought(browser))
    async with market.browser() as stranger:
        for method, way in OPENS:
            answers = [
                await stranger.http.request(method, f"/api/orders/{id}{way}") for id in (number, "onr_" + "0" * 26, "ord_" + "0" * 26)
            ]
            assert len({faceless(answer) for answer in answers}) == 1, way
            assert (answers[0].status_code, answers[0].json()["code"]) == (404, "not_found")
        pages = [(await stranger.get(f"{SHOP_PATH}/orders/{id}")).answer for id in (number, "ord_" + "0" * 26)]
        assert len({faceless(page) for page in pages}) == 1 and pages[0].status_code == 404
        for act in ("cancel", "top-up"):
            assert (await stranger.post(f"{SHOP_PATH}/orders/{number}/{act}", {"plan": "nordic"})).status == 404
    assert (await market.counter.row(number)).cancelled_at is None


async def test_guessing_by_numbers_is_counted_as_guessing(open_market_of: PagesMarket, browser: Browser) -> None:
    market = open_market_of
    number = order_of(await market.bought(browser))
    market.counter.world.pipeline.rate_limiter.limits = Limits()
    async with market.browser("203.0.113.9") as stranger:
        said = [(await stranger.http.get(f"/api/orders/{number}")).status_code for _ in range(11)]
    assert said == [404] * 10 + [429]


async def test_the_browser_that_began_an_order_opens_it_by_its_number_and_no_other_does(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    number = order_of(bought)
    assert bought.path == f"{SHOP_PATH}/orders/{number}" and heading(bought.page) == "Your eSIM is ready"
    [cookie] = [one for one in browser.http.cookies.jar if one.name.startswith("__Secure-order_")]
    assert (cookie.name, cookie.path, cookie.secure, cookie.get_nonstandard_attr("SameSite")) == (
        f"__Secure-order_{number[4:]}",
        "/shop",
        True,
        "Lax",
    )
    assert cookie.has_nonstandard_attr("HttpOnly") and cookie.expires is not None
    assert TOKEN.fullmatch(cookie.value or "") and TOKEN.findall(bought.answer.text) == []
    assert "The link in the mail of your order leads back to this page" in bought.page.text
    async with market.browser() as other:
        assert (await other.get(bought.path)).status == 404


async def test_the_link_in_the_mail_opens_it_in_every_browser(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    link = await mailed_link(market)
    assert TOKEN.search(link) and token_of(browser) not in link
    async with market.browser() as other:
        seen = await other.get(link)
        assert scanned(seen.page) == scanned(bought.page)
        assert order_of(bought) in seen.page.text
        assert "Keep the address of this page" in seen.page.text
        checkout = await other.send(seen.page.form("/top-up", plan="nordic"))
        back = await other.send(checkout.page.form(checkout.path), "Pay", email=BUYER)
        assert (back.status, back.path) == (200, bought.path)
        closed = await other.send((await other.get(link)).page.form("/cancel"))
        assert "You closed this order" in closed.page.text


@pytest.mark.long
async def test_a_browser_keeps_the_cookies_of_its_ten_newest_orders(market: PagesMarket, browser: Browser) -> None:
    for _ in range(12):
        market.counter.world.clock.advance(60)
        await market.to_checkout(browser)
    kept = sorted(one.name.removeprefix("__Secure-order_") for one in browser.http.cookies.jar)
    begun = sorted(session.metadata["order"][4:] for session in market.counter.sessions())
    assert kept == begun[-10:]


async def test_the_answer_of_the_api_shows_the_id_that_was_used(open_market_of: PagesMarket, browser: Browser) -> None:
    market = open_market_of
    number, token = order_of(await market.bought(browser)), token_of(browser)
    async with market.browser() as buyer:
        told = (await buyer.http.get(f"/api/orders/{token}")).json()
    assert (told["id"], told["number"]) == (token, number)
    market.counter.world.pipeline.secrets = SharedSecrets(storefront=TOP_UPS_KEY)
    http = market.counter.http
    by = {id: (await http.get(f"/api/orders/{id}")).json() for id in (number, token)}
    assert {id: (shown["id"], shown["number"], shown["esim"]) for id, shown in by.items()} == {
        id: (id, number, told["esim"]) for id in (number, token)
    }
    listed = (await http.get("/api/orders", params={"storefront": "fjord", "email": BUYER})).json()["data"]
    assert [(shown["id"], shown["number"]) for shown in listed] == [(number, number)]


@pytest.mark.long
async def test_renewed_access_ends_every_link_and_mails_a_new_one(open_market_of: PagesMarket, browser: Browser) -> None:
    market = open_market_of
    bought = await market.bought(browser)
    number, old = order_of(bought), await mailed_link(market)
    async with market.counter.world.client(market.counter.me.secret) as admin:
        said = await admin.post(f"/v1/storefronts/orders/{number}/renew-access")
    assert (said.status_code, said.json()) == (200, {"object": "storefront.access_renewal", "order": number})
    new = await mailed_link(market)
    assert new != old
    async with market.browser() as stranger:
        assert [(await stranger.get(path)).status for path in (old, new)] == [404, 200]
        assert (await stranger.http.get(f"/api/orders/{token_of(browser)}")).status_code == 404
    assert (await browser.get(bought.path)).status == 404
    letter = (await market.counter.world.letters())[-1]
    assert (letter.to, letter.subject) == (BUYER, "Your new link from Fjord")
    assert letter.text.replace(new, "/shop/...").replace(number, "onr_...") == snapshot("""\
Your order at Fjord: Nordic.

The page of your order has a new address. The links in earlier mails no longer open it:

https://reseller.test/shop/...

Whoever has this link can see your eSIM, so keep this mail to yourself.

Questions? Write to help@fjord.test, and name the order onr_....
""")


async def test_an_ended_token_still_names_the_order_to_whoever_shows_a_credential(market: PagesMarket, browser: Browser) -> None:
    number, token = order_of(await market.bought(browser)), token_of(browser)
    world = market.counter.world
    await world.store.write(renew_order_access, deps=market.counter.deps, order=number, organisation=None, now=world.clock.now())
    assert (await market.counter.http.get(f"/api/orders/{token}")).json()["number"] == number
    async with world.client(market.counter.me.secret) as operator:
        asked = await operator.delete(f"/v1/subscribers/issue-from-inventory/{token}")
        done = await operator.delete(
            f"/v1/subscribers/issue-from-inventory/{token}", headers={"X-Confirm-Token": asked.json()["confirm_token"]}
        )
    assert (done.status_code, done.json()["data"]["idempotency_key"], done.json()["data"]["status"]) == (200, number, "rolled_back")


@pytest.mark.long
async def test_only_an_admin_of_the_shops_organisation_renews_access_and_only_where_there_is_an_address(
    market: PagesMarket, browser: Browser
) -> None:
    number = order_of(await market.bought(browser))
    world = market.counter.world
    stranger = await world.caller()
    member = await world.caller(role=Role.MEMBER, organisation=market.counter.me.organisation)
    begun = await market.counter.begin()
    async with world.client(stranger.secret) as other, world.client(market.counter.me.secret) as admin, world.client(member.secret) as one:
        refused = [
            await one.post(f"/v1/storefronts/orders/{number}/renew-access"),
            await other.post(f"/v1/storefronts/orders/{number}/renew-access"),
            await admin.post("/v1/storefronts/orders/onr_00000000000000000000000000/renew-access"),
            await admin.post(f"/v1/storefronts/orders/{begun.order}/renew-access"),
        ]
    assert [(said.status_code, said.json()["code"]) for said in refused] == [
        (403, "role_required"),
        (404, "not_found"),
        (404, "not_found"),
        (409, "order_without_address"),
    ]
    assert "because it was not paid for" in refused[-1].json()["error"]
    assert (await browser.get(f"{SHOP_PATH}/orders/{number}")).status == 200


async def test_an_order_is_found_whatever_shop_its_link_names(market: PagesMarket, browser: Browser) -> None:
    await market.bought(browser)
    link = await mailed_link(market)
    other = market.counter.shop._replace(id=market.counter.world.ids.new("sf_"), slug="alpine", name="Alpine")
    await market.add_shop(other)
    for slug in ("alpine", "nobodys"):
        seen = await browser.get(link.replace("/shop/fjord/", f"/shop/{slug}/"))
        assert (seen.status, seen.path) == (200, link)


async def test_a_shop_that_was_renamed_is_found_at_its_former_address(market: PagesMarket, browser: Browser) -> None:
    await market.bought(browser)
    async with market.counter.world.client(market.counter.me.secret) as http:
        said = await http.patch(f"/v1/storefronts/{market.counter.shop.id}", json={"slug": "fjord-travel"})
    assert said.status_code == 200, said.text
    assert (await browser.get(SHOP_PATH)).path == "/shop/fjord-travel"
    seen = await browser.get(f"{SHOP_PATH}/orders/{token_of(browser)}")
    assert (seen.status, seen.path) == (200, f"/shop/fjord-travel/orders/{token_of(browser)}")
    listed = await market.counter.http.get("/api/orders", params={"storefront": "fjord", "email": BUYER})
    assert [order["storefront"] for order in listed.json()["data"]] == ["fjord-travel"]


@pytest.mark.long
async def test_a_cookie_that_opens_another_order_opens_none(market: PagesMarket, browser: Browser) -> None:
    first = order_of(await market.bought(browser))
    market.counter.world.clock.advance(1)
    second, token = order_of(await market.bought(browser)), token_of(browser)
    assert first != second
    async with market.browser() as other:
        said = [
            (await other.http.get(f"{SHOP_PATH}/orders/{number}", headers={"Cookie": f"__Secure-order_{number[4:]}={token}"})).status_code
            for number in (first, second)
        ]
    assert said == [404, 200]


async def test_no_line_of_the_log_holds_a_token(market: PagesMarket, browser: Browser) -> None:
    await market.bought(browser)
    token = token_of(browser)
    await browser.get(f"{SHOP_PATH}/orders/{token}")
    await browser.http.get(f"/api/orders/{token}")
    assert market.lines and token not in str(market.lines)
