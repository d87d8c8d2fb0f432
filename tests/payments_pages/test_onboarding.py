"""The page behind an account link, and the one that lets a platform in."""

import pytest

from registry.errors import PaymentsRefused
from tests.pages.browser import query_of
from tests.payments_pages.shop import AGAIN, BACK, PAGES, PagesShop
from tests.world import HOST

CALLBACK = f"https://{HOST}/v1/operator-billing/connect/return"


async def test_an_owner_reads_what_is_asked_answers_it_and_goes_back_with_an_active_account(shop: PagesShop) -> None:
    account = await shop.new_account("new@example.com")
    path = await shop.link(account)
    seen = await shop.browser.get(path)
    assert "the bank account that payouts go to" in seen.page.text and account in seen.page.text
    assert "Simulated payment processor: no real money" in seen.page.text
    done = await shop.browser.send(seen.page.form(path), "Complete onboarding")
    assert (done.status, done.way) == (303, [BACK])
    found = await shop.processor.find_account(account)
    assert (found.charges_enabled, found.payouts_enabled, found.details_submitted, found.currently_due) == (True, True, True, ())
    assert await shop.told() == ["account.updated"]


async def test_an_owner_who_comes_back_later_has_told_nothing(shop: PagesShop) -> None:
    account = await shop.new_account("later@example.com")
    path = await shop.link(account)
    seen = await shop.browser.get(path)
    assert (await shop.browser.send(seen.page.form(path), "Come back later")).way == [BACK]
    found = await shop.processor.find_account(account)
    assert (found.charges_enabled, found.details_submitted) == (False, False)
    assert await shop.told() == []
    again = await shop.browser.get(await shop.link(account))
    assert again.page.form(PAGES + again.path.removeprefix(PAGES))


async def test_a_link_that_was_used_or_is_too_old_leads_to_where_there_are_new_ones(shop: PagesShop) -> None:
    account = await shop.new_account("slow@example.com")
    used, old = await shop.link(account), await shop.link(account)
    seen = await shop.browser.get(used)
    await shop.browser.send(seen.page.form(used), "Come back later")
    assert (await shop.browser.get(used)).way == [AGAIN]
    assert (await shop.browser.send(seen.page.form(used), "Complete onboarding")).way == [AGAIN]
    shop.clock.advance(299)
    seen = await shop.browser.get(old)
    assert seen.status == 200
    shop.clock.advance(1)
    assert (await shop.browser.get(old)).way == [AGAIN]
    assert (await shop.browser.send(seen.page.form(old), "Complete onboarding")).way == [AGAIN]
    assert (await shop.processor.find_account(account)).charges_enabled is False


async def test_an_account_that_knows_all_is_told_that_nothing_is_missing(shop: PagesShop) -> None:
    seen = await shop.browser.get(await shop.link(shop.account))
    assert "Nothing is missing any more" in seen.page.text


async def test_the_dashboard_shows_balance_payments_and_payouts_to_whoever_has_the_link_once(shop: PagesShop) -> None:
    paid = {"account": shop.account, "amount": 5000, "currency": "USD", "fee": 50, "outcome": "available", "description": "Europe 1 GB"}
    await shop.ask("POST", "charges", paid)
    await shop.processor.pay_out(shop.account, amount=1000, currency="USD", key="out-1", metadata={})
    link = await shop.processor.dashboard_link(shop.account)
    path = link.url.removeprefix(f"https://{HOST}")
    text = (await shop.browser.get(path)).page.text
    for part in ("37.75 USD", "Europe 1 GB", "50.00 USD", "10.00 USD", "pending"):
        assert part in text, part
    assert (await shop.browser.get(path)).status == 404


async def test_an_owner_who_allows_it_comes_back_with_a_code_that_is_good_once(shop: PagesShop) -> None:
    address = shop.processor.authorize_url(state="st &1", return_url=CALLBACK)
    assert address is not None
    seen = await shop.browser.get(address.removeprefix(f"https://{HOST}"))
    back = await shop.browser.send(seen.page.forms[0], "Allow")
    target, query = back.way[0].split("?")[0], query_of(back.way[0])
    assert (target, query["state"], query["scope"]) == (CALLBACK, "st &1", "read_write")
    account = await shop.processor.attach(query["code"])
    found = await shop.processor.find_account(account)
    assert (found.kind, found.charges_enabled) == ("standard", True)
    with pytest.raises(PaymentsRefused):
        await shop.processor.attach(query["code"])


async def test_an_owner_who_denies_comes_back_with_an_error(shop: PagesShop) -> None:
    address = shop.processor.authorize_url(state="st-1", return_url=CALLBACK)
    assert address is not None
    seen = await shop.browser.get(address.removeprefix(f"https://{HOST}"))
    back = await shop.browser.send(seen.page.forms[0], "Deny")
    said = {"error": "access_denied", "error_description": "The user denied your request", "state": "st-1"}
    assert query_of(back.way[0]) == said


@pytest.mark.parametrize(
    "query",
    [
        "response_type=code&client_id=ca_simulated_processor&redirect_uri=https://evil.example/x",
        "response_type=code&client_id=ca_simulated_processor&redirect_uri=javascript:alert(1)",
        f"response_type=code&client_id=ca_other&redirect_uri={CALLBACK}",
        f"response_type=token&client_id=ca_simulated_processor&redirect_uri={CALLBACK}",
        "",
    ],
)
async def test_nobody_is_led_to_an_address_that_is_not_the_platforms(shop: PagesShop, query: str) -> None:
    path = f"{PAGES}/oauth/authorize?{query}"
    assert ((await shop.browser.get(path)).status, (await shop.browser.post(path, {"do": "deny"})).status) == (400, 400)


async def test_a_line_break_in_an_address_stays_in_it(shop: PagesShop) -> None:
    query = f"response_type=code&client_id=ca_simulated_processor&redirect_uri={CALLBACK}%0d%0aset-cookie:a=b"
    answer = await shop.browser.http.post(f"{PAGES}/oauth/authorize?{query}", content=b"do=deny")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{CALLBACK}%0D%0Aset-cookie:a=b?error=access_denied")
    assert "set-cookie" not in answer.headers


async def test_an_account_that_is_not_offered_is_not_let_in(shop: PagesShop) -> None:
    path = f"{PAGES}/oauth/authorize?response_type=code&client_id=ca_simulated_processor&redirect_uri={CALLBACK}"
    seen = await shop.browser.post(path, {"do": "allow", "account": shop.account})
    assert (seen.status, "Choose an account" in seen.page.text) == (400, True)
