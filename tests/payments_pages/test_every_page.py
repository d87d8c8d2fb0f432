"""What holds for all pages of the simulated processor: headers, no script, nothing from elsewhere, and texts that stay texts."""

import pytest

from registry.errors import PaymentsRefused
from tests.pages.browser import Seen
from tests.pages.closed_page import check_closed_page
from tests.payments_pages.shop import PAGES, PagesShop, path_of

HOSTILE = "<img src=x onerror=alert(1)>\"'&amp;{{7*7}}</title></style><script>alert(2)</script>"


async def every(shop: PagesShop) -> dict[str, tuple[Seen, str]]:
    """Each page, and where its form may lead besides here."""
    away = " https://shop.example"
    browser, processor = shop.browser, shop.processor
    query = "response_type=code&client_id=ca_simulated_processor&redirect_uri=https://reseller.test/x%22%3E%3Cscript%3E&state=%22%3E%3Cscript%3E"
    await shop.ask("POST", "accounts", {"name": HOSTILE, "connected": False})
    account = await shop.new_account()
    paid = {"account": shop.account, "amount": 500, "currency": "JPY", "description": HOSTILE, "metadata": {HOSTILE[:40]: HOSTILE}}
    await shop.ask("POST", "charges", paid)
    invoice = path_of((await shop.invoice(name=HOSTILE, text=HOSTILE)).pay_url)
    checkout = path_of((await shop.checkout(promotions=True)).url)
    login = (await processor.dashboard_link(shop.account)).url.removeprefix("https://reseller.test")
    wrong = {"card": "declined", "email": HOSTILE, "promotion": HOSTILE, "do": "pay"}
    return {
        "onboarding": (await browser.get(await shop.link(account)), away),
        "dashboard": (await browser.get(login), ""),
        "authorize": (await browser.get(f"{PAGES}/oauth/authorize?{query}"), " https://reseller.test"),
        "invoice": (await browser.get(invoice), ""),
        "invoice declined": (await browser.post(invoice, {"card": "declined"}), ""),
        "checkout": (await browser.get(checkout), away),
        "checkout wrong": (await browser.post(checkout, wrong), away),
        "nothing": (await browser.get(f"{PAGES}/nowhere"), ""),
        "nobody": (await browser.get(f"{PAGES}/onboarding/%3Cscript%3E"), ""),
        "no way": (Seen(await browser.http.put(invoice), []), ""),
    }


async def test_every_page_is_closed_readable_and_says_that_it_is_simulated(shop: PagesShop) -> None:
    for name, (seen, leads_to) in (await every(shop)).items():
        check(name, seen, leads_to)
        assert "<img" not in seen.answer.text and "<script" not in seen.answer.text, name


def check(name: str, seen: Seen, leads_to: str) -> None:
    check_closed_page(name, seen, posts_to=leads_to)
    page = seen.page
    assert not {"img", "a"} & {tag.name for tag in page.tags}, name
    assert not any("src" in tag.attributes for tag in page.tags), name
    assert "no real money" in page.text, name
    assert all(form.action.startswith(f"{PAGES}/") for form in page.forms), name


async def test_a_form_of_another_site_is_not_taken(shop: PagesShop) -> None:
    invoice = await shop.invoice()
    path = path_of(invoice.pay_url)
    for origin in ("https://evil.example", "null", "https://reseller.test.evil.example"):
        assert (await shop.browser.post(path, {"card": "pays"}, Origin=origin)).status == 403
    assert (await shop.processor.find_invoice(shop.account, invoice.id)).status == "open"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "", 404),
        ("GET", "/", 404),
        ("GET", "/invoices", 404),
        ("GET", "/invoices/", 404),
        ("GET", "/invoices/a/pdf", 404),
        ("GET", "/checkout/cs_none", 404),
        ("POST", "/checkout/cs_none", 404),
        ("GET", "/dashboard/visit_none", 404),
        ("POST", "/dashboard/visit_none", 405),
        ("POST", "/onboarding/visit_none", 404),
        ("POST", "/invoices/none", 404),
        ("GET", "/oauth/token", 404),
        ("DELETE", "/invoices/none", 405),
        ("GET", "/control/state", 404),
        ("GET", "/v1/balance", 404),
    ],
)
async def test_what_no_page_answers_is_a_page_too(shop: PagesShop, method: str, path: str, status: int) -> None:
    answer = await shop.browser.http.request(method, PAGES + path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"card=pays&card=pays", 400), (b"card=%ff", 400), (b"card=\xff", 400), (b"x=1&" * 21, 400), (b"x" * 70_000, 413), (b"", 400)],
)
async def test_a_form_that_cannot_be_read_in_one_way_pays_nothing(shop: PagesShop, body: bytes, status: int) -> None:
    invoice = await shop.invoice()
    assert (await shop.browser.http.post(path_of(invoice.pay_url), content=body)).status_code == status
    assert (await shop.processor.find_invoice(shop.account, invoice.id)).status == "open"


async def test_a_head_request_gets_the_headers_alone(shop: PagesShop) -> None:
    path = path_of((await shop.invoice()).pay_url)
    got, head = await shop.browser.http.get(path), await shop.browser.http.head(path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", got.headers["content-length"])


@pytest.mark.parametrize(
    "address",
    [
        "https://[",
        "https://[::1",
        "https://\u2100reseller.test/",
        "https://reseller.test;script-src/",
        "javascript:alert(1)",
        "//reseller.test/",
    ],
)
async def test_an_address_to_come_back_to_that_can_be_none_is_a_page_that_says_so(shop: PagesShop, address: str) -> None:
    asked = {"response_type": "code", "client_id": "ca_simulated_processor", "state": "x", "redirect_uri": address}
    for method, form in (("GET", None), ("POST", {"do": "deny"})):
        answer = await shop.browser.http.request(method, f"{PAGES}/oauth/authorize", params=asked, data=form)
        assert (answer.status_code, answer.headers.get("location")) == (400, None)


@pytest.mark.parametrize(
    ("address", "leads_to"),
    [
        ("https://shop.example;script-src/", ""),
        ("https://b\u00fccher.example/x", " https://xn--bcher-kva.example"),
        ("https://shop.example:8443/x", " https://shop.example:8443"),
    ],
)
async def test_an_address_says_nothing_in_the_policy_but_where_a_form_leads(shop: PagesShop, address: str, leads_to: str) -> None:
    link = (await shop.processor.onboarding_link(shop.account, return_url=address, refresh_url=address)).url
    check("onboarding", await shop.browser.get(path_of(link)), leads_to)


async def test_an_address_without_a_host_makes_no_link(shop: PagesShop) -> None:
    with pytest.raises(PaymentsRefused, match="an address is not valid"):
        await shop.processor.onboarding_link(shop.account, return_url="https://[::1", refresh_url="https://[::1")
