"""From a plan to an eSIM, and what is done with it later, by somebody who presses the buttons of the pages."""

import pytest

from simulators.processor.checkout import session_total
from tests.pages.browser import Browser
from tests.shop_pages.market import SHOP_PATH, PagesMarket, field_of, heading, order_of, scanned, token_of


@pytest.mark.long
async def test_a_buyer_pays_and_gets_an_esim_in_every_way_it_can_be_installed(market: PagesMarket, browser: Browser) -> None:
    checkout = await market.to_checkout(browser)
    assert checkout.way and checkout.way[0].startswith("https://reseller.test/sandbox/payments/checkout/")
    waiting = await market.pay(browser, checkout, told=False)
    assert heading(waiting.page) == "Waiting for your payment"
    assert waiting.answer.headers["refresh"] == "4"
    await market.counter.told()
    assert heading((await browser.get(waiting.path)).page) == "Your eSIM is being made"
    await market.counter.work()

    seen = await browser.get(waiting.path)
    row = await market.counter.row(order_of(seen))
    code = f"LPA:1$smdp.spx-roaming.test${(await market.counter.line(row.id)).sim.activation_code}"
    assert heading(seen.page) == "Your eSIM is ready"
    assert "refresh" not in seen.answer.headers
    assert scanned(seen.page) == code
    assert code.split("$") == ["LPA:1", field_of(seen.page, "smdp"), field_of(seen.page, "matching")]
    assert f">{code}</textarea>" in seen.answer.text
    links = [tag.attributes["href"] for tag in seen.page.tags if "esim_qrcode" in tag.attributes.get("href", "")]
    assert links == [f"https://esimsetup.{maker}.com/esim_qrcode_provisioning?carddata={code}" for maker in ("apple", "android")]
    assert row.iccid is not None and row.iccid in seen.page.text
    assert (row.amount, row.currency, row.email, row.language) == (1000, "EUR", "buyer@home.test", "en")


@pytest.mark.long
async def test_the_link_works_again_later_and_on_another_device(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    market.counter.world.clock.advance(40 * 86_400)
    async with market.browser("2001:db8::7", "de", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)") as phone:
        seen = await phone.get(f"{SHOP_PATH}/orders/{token_of(browser)}")
    assert heading(seen.page) == "Ihre eSIM ist bereit"
    assert "Auf diesem iPhone installieren" in seen.page.text
    assert scanned(seen.page) == scanned(bought.page)


async def test_what_is_left_is_shown_as_the_network_counts_it(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    assert "1.07 GB of 1.07 GB left" in bought.page.text
    package = (await market.counter.packages(order_of(bought)))[0]
    package.data_used = (package.data_limit or 0) // 2
    seen = await browser.get(bought.path)
    assert "536.9 MB of 1.07 GB left" in seen.page.text
    assert 'aria-label="50 % of the data is left"' in seen.answer.text


@pytest.mark.long
async def test_data_is_added_with_one_button_and_a_payment(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    order = order_of(bought)
    checkout = await browser.send(bought.page.form("/top-up", plan="nordic-big"))
    seen = await browser.get(bought.path)
    assert "A payment that you began is not confirmed yet" in seen.page.text
    assert seen.answer.headers["refresh"] == "4"
    back = await browser.send(checkout.page.form(checkout.path), "Pay", email="buyer@home.test")
    assert back.path == bought.path
    await market.counter.told()
    assert "is being added" in (await browser.get(bought.path)).page.text
    await market.counter.work()
    seen = await browser.get(bought.path)
    assert "Added so far Nordic-Big" in seen.page.text and "€19.90 added" in seen.page.text
    assert len(await market.counter.packages(order)) == 2
    assert market.counter.added() == 1


@pytest.mark.long
async def test_a_closed_order_says_so_once_and_for_ever_and_takes_no_more_data(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    form, more = bought.page.form("/cancel"), bought.page.form("/top-up", plan="nordic")
    closed = await browser.send(form)
    assert closed.path == bought.path
    assert "You closed this order on 15 January 2027, 12:00 UTC" in closed.page.text
    assert scanned(closed.page) == scanned(bought.page), "the eSIM works on"
    assert not [form for form in closed.page.forms if form.method == "post"]
    market.counter.world.clock.advance(3600)
    assert "12:00 UTC" in (await browser.send(form)).page.text
    refused = await browser.send(more)
    assert refused.status == 409
    assert "This plan cannot be added now" in refused.page.text
    assert len(await market.counter.top_ups(order_of(bought))) == 0


async def test_what_an_order_costs_is_what_the_shop_says_whatever_the_form_says(market: PagesMarket, browser: Browser) -> None:
    for extra in ({"price_cents": "1"}, {"amount": "1", "currency": "USD"}, {"account_id": "8101", "package_template_id": "55014"}):
        seen = await browser.post(f"{SHOP_PATH}/checkout", {"plan": "nordic", **extra})
        assert seen.status == 200
    assert [(session_total(one), one.currency) for one in market.counter.sessions()] == [(1000, "eur")] * 3
    assert {row.template_id for row in [await market.counter.row(one.metadata["order"]) for one in market.counter.sessions()]} == {55010}


@pytest.mark.parametrize("plan", ["", "nordic ' OR 1=1", "elsewhere", "x" * 5000])
async def test_a_plan_that_the_shop_does_not_have_is_not_sold(market: PagesMarket, browser: Browser, plan: str) -> None:
    seen = await browser.post(f"{SHOP_PATH}/checkout", {"plan": plan})
    assert seen.status == 404
    assert "This plan is not on sale" in seen.page.text
    assert market.counter.sessions() == []


async def test_a_plan_that_went_off_sale_or_sold_out_meanwhile_is_not_sold(market: PagesMarket, browser: Browser) -> None:
    page = (await browser.get(SHOP_PATH)).page
    await market.sell("nordic", on_sale=0)
    seen = await browser.send(page.form("/checkout", plan="nordic"))
    assert (seen.status, market.counter.sessions()) == (409, [])
    assert "This plan is not on sale" in seen.page.text
    await market.sell_out()
    market.counter.world.clock.advance(60)
    seen = await browser.send(page.form("/checkout", plan="nordic-big"))
    assert (seen.status, market.counter.sessions()) == (409, [])
    assert "That plan has just sold out" in seen.page.text
    assert "Everything is sold out at the moment" in seen.page.text
    assert not [form for form in seen.page.forms if form.method == "post"]


async def test_a_processor_that_fails_charges_nothing_and_says_so(market: PagesMarket, browser: Browser) -> None:
    page = (await browser.get(SHOP_PATH)).page
    await market.counter.world.ask_payments("POST", "faults", {"trouble": "error", "times": 20})
    seen = await browser.send(page.form("/checkout", plan="nordic"))
    assert seen.status == 502
    assert "The payment page did not open" in seen.page.text
