"""What a buyer reads when it did not go as it should: sold out, failed, in doubt, taken back, or not to be told now."""

from registry.limits import Limits
from simulators.network.faults import NetworkFault
from tests.pages.browser import Browser
from tests.shop_pages.market import SHOP_PATH, PagesMarket, heading, order_of, scanned

DRAW = "affectPackageToSubscriber"


async def test_a_failed_order_says_what_goes_back_and_then_that_it_went(market: PagesMarket, browser: Browser) -> None:
    checkout = await market.to_checkout(browser)
    await market.sell_out()
    waiting = await market.pay(browser, checkout, told=False)
    await market.counter.told()
    await market.counter.work(1)
    seen = await browser.get(waiting.path)
    assert heading(seen.page) == "We could not deliver your eSIM"
    assert "€10.00 goes back to the card" in seen.page.text or "€10.00 went back to the card" in seen.page.text
    await market.counter.work(5)
    seen = await browser.get(waiting.path)
    assert "€10.00 went back to the card that you paid with" in seen.page.text
    assert market.counter.refunded() == 1000
    assert not [form for form in seen.page.forms if form.method == "post"]
    assert "esim_qrcode" not in seen.answer.text


async def test_an_order_in_doubt_says_that_somebody_looks_and_shows_no_esim(market: PagesMarket, browser: Browser) -> None:
    market.counter.trouble(NetworkFault(DRAW, drop_after=True))
    seen = await market.bought(browser)
    assert heading(seen.page) == "We are looking into your order"
    assert "you will not be charged twice" in seen.page.text
    assert "esim_qrcode" not in seen.answer.text and "<img" not in seen.answer.text


async def test_an_esim_that_was_taken_back_is_not_shown_any_more(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    code = scanned(bought.page)
    assert (await market.counter.roll_back(order_of(bought))).status_code == 200
    seen = await browser.get(bought.path)
    assert heading(seen.page) == "Your eSIM was taken back"
    assert code not in seen.answer.text and code.split("$")[2] not in seen.answer.text
    assert not seen.page.forms


async def test_a_charging_system_that_fails_is_never_shown_as_no_data_left(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    market.counter.trouble(NetworkFault("*", code=100, times=None))
    market.counter.world.clock.advance(120)
    seen = await browser.get(bought.path)
    assert seen.status == 200
    assert "How much is left cannot be told at the moment" in seen.page.text
    assert "What can be added cannot be told at the moment" in seen.page.text
    assert " left" not in seen.page.text.split("Your data")[1].removeprefix(" How much is left") and "are used up" not in seen.page.text
    assert "meter" not in {tag.attributes.get("class") for tag in seen.page.tags}
    assert scanned(seen.page) == scanned(bought.page)


async def test_an_order_that_nobody_paid_is_looked_at_less_and_less_often(market: PagesMarket, browser: Browser) -> None:
    checkout = await market.to_checkout(browser)
    order = market.counter.sessions()[0].metadata["order"]
    assert "sandbox" in checkout.path
    waits: list[str | None] = []
    for seconds in (0, 119, 2, 478, 2, 2990, 60):
        market.counter.world.clock.advance(seconds)
        waits.append((await browser.get(f"{SHOP_PATH}/orders/{order}")).answer.headers.get("refresh"))
    assert waits == ["4", "4", "10", "10", "30", "30", None]
    assert "No payment has arrived" in (await browser.get(f"{SHOP_PATH}/orders/{order}")).page.text


async def test_a_shop_that_is_sold_out_says_so_before_anybody_tries(market: PagesMarket, browser: Browser) -> None:
    await market.sell_out()
    page = (await browser.get(SHOP_PATH)).page
    assert page.text.count("Sold out") == 3
    assert "Everything is sold out at the moment" in page.text
    assert [form.method for form in page.forms] == ["get"]


async def test_a_shop_whose_owner_is_not_paid_sells_nothing(market: PagesMarket, browser: Browser) -> None:
    page = (await browser.get(SHOP_PATH)).page
    await market.counter.world.ask_payments("POST", f"accounts/{market.counter.payee}", {"do": "restrict"})
    await market.counter.told()
    market.counter.world.clock.advance(60)
    assert (await browser.get(SHOP_PATH)).page.text.count("Cannot be bought at the moment") == 3
    seen = await browser.send(page.form("/checkout", plan="nordic"))
    assert (seen.status, market.counter.sessions()) == (409, [])
    assert "Nothing was charged" in seen.page.text


async def test_a_shop_without_plans_says_so_and_a_draft_is_not_there(market: PagesMarket, browser: Browser) -> None:
    for slug in list(market.counter.plans):
        await market.sell(slug, on_sale=0)
    assert "There is nothing on sale at the moment" in (await browser.get(SHOP_PATH)).page.text
    await market.change(status="draft")
    draft, unknown = await browser.get(SHOP_PATH), await browser.get("/shop/nobodys")
    assert (draft.status, draft.answer.content) == (404, unknown.answer.content)
    assert (await browser.post(f"{SHOP_PATH}/checkout", {"plan": "nordic"})).status == 404


async def test_what_was_bought_is_shown_after_the_shop_closed_or_was_renamed(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    await market.change(status="draft", slug="fjord-travel")
    seen = await browser.get(bought.path)
    assert seen.path == f"/shop/fjord-travel/orders/{order_of(bought)}"
    assert scanned(seen.page) == scanned(bought.page)


async def test_unknown_orders_and_those_of_other_shops_are_answered_alike(market: PagesMarket, browser: Browser) -> None:
    async with market.browser("203.0.113.8") as buyer:
        order = order_of(await market.bought(buyer))
    paths = [
        f"{SHOP_PATH}/orders/{order}",
        f"/shop/other/orders/{order}",
        f"{SHOP_PATH}/orders/ord_{'a' * 26}",
        f"{SHOP_PATH}/orders/x",
        "/shop/nobodys/orders/x",
        "/shop",
        "/shop/",
    ]
    found = [(await browser.get(path)).answer for path in paths]
    assert {(answer.status_code, answer.content) for answer in found} == {(404, found[0].content)}
    for act in ("cancel", "top-up"):
        assert (await browser.post(f"/shop/other/orders/{order}/{act}", {"plan": "nordic"})).status == 404
    assert (await market.counter.row(order)).cancelled_at is None


async def test_somebody_who_begins_many_orders_is_slowed_down(market: PagesMarket, browser: Browser) -> None:
    market.counter.world.pipeline.rate_limiter.limits = Limits()
    page = (await browser.get(SHOP_PATH)).page
    found = [await browser.send(page.form("/checkout", plan="nordic")) for _ in range(11)]
    assert [seen.status for seen in found] == [200] * 10 + [429]
    assert heading(found[-1].page) == "That was a little fast"
    assert found[-1].answer.headers["retry-after"].isdigit()
    assert len(market.counter.sessions()) == 10


async def test_no_line_of_the_log_has_an_order(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    await browser.send(bought.page.form("/cancel"))
    assert {line.path for line in market.lines if line.surface == "inner"} == {"/shop", "/sandbox/payments"}
    assert not [line for line in market.lines if "ord_" in line.path or "onr_" in line.path]
