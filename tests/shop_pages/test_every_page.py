"""What holds for all pages of a shop: headers, no script, nothing from elsewhere, words for screen readers, and texts that stay texts."""

import re

import pytest

from simulators.network.faults import NetworkFault
from tests.pages.browser import Browser, Seen
from tests.pages.closed_page import check_closed_page, style_of
from tests.shop_pages.market import SHOP_PATH, PagesMarket

HOSTILE = "<img src=x onerror=alert(1)>\"'&amp;{{7*7}}</title></style><script>alert(2)</script>"
HIDING = "pay\u202eevil\u202c\u200b\u0007\ufeff\u2028now"
LOGO = "data:image/png;base64,iVBORw0KGgo="


def check_shop_page(name: str, seen: Seen, language: str = "en") -> None:
    """Everything that a page must be."""
    check_closed_page(name, seen, posts_to=" https://reseller.test")
    page = seen.page
    assert "set-cookie" not in seen.answer.headers
    assert next(tag for tag in page.tags if tag.name == "html").attributes["lang"] == language
    for tag in page.tags:
        given = tag.attributes
        assert "http-equiv" not in given, (name, tag)
        assert re.match(r"/shop/|#|mailto:|https://esimsetup\.(apple|android)\.com/esim_qrcode", given.get("href", "#")), (name, tag)
        assert "src" not in given or (tag.name == "img" and given["src"].startswith("data:image/png;base64,") and "alt" in given)
    for form in page.forms:
        assert form.action.startswith("/shop/"), name
        assert form.method == "get" or set(form.fields) <= {"plan"}
    assert "url(" not in style_of(seen).replace('url("data:image/svg+xml,', ""), "nothing is loaded by the style sheet"


async def every(market: PagesMarket, browser: Browser) -> dict[str, Seen]:
    """Each page in each of its states."""
    pages = {"shop": await browser.get(SHOP_PATH), "one country": await browser.get(f"{SHOP_PATH}?country=NO")}
    pages["no plan there"] = await browser.get(f"{SHOP_PATH}?country=zz")
    checkout = await market.to_checkout(browser)
    waiting = await market.pay(browser, checkout, told=False)
    pages["waiting"] = waiting
    await market.counter.told()
    pages["working"] = await browser.get(waiting.path)
    await market.counter.work()
    ready = pages["ready"] = await browser.get(waiting.path)
    more = await browser.send(ready.page.form("/top-up", plan="nordic"))
    pages["not confirmed"] = await browser.get(ready.path)
    await market.pay(browser, more)
    pages["added"] = await browser.get(ready.path)
    pages["no such plan"] = await browser.post(f"{ready.path}/top-up", {"plan": "x"})
    pages["closed"] = await browser.send(pages["added"].page.form("/cancel"))
    market.counter.trouble(NetworkFault("affectPackageToSubscriber", drop_after=True))
    pages["in doubt"] = await market.bought(browser)
    await market.counter.roll_back(ready.path.rsplit("/", 1)[1])
    pages["taken back"] = await browser.get(ready.path)
    again = await market.to_checkout(browser)
    await market.sell_out()
    pages["failed"] = await market.pay(browser, again)
    pages["sold out"] = await browser.get(SHOP_PATH)
    pages["not sold"] = await browser.post(f"{SHOP_PATH}/checkout", {"plan": "nordic"})
    pages["unknown"] = await browser.get("/shop/nobodys")
    pages["no way"] = Seen(await browser.http.put(SHOP_PATH), [])
    pages["no form"] = await browser.post(f"{SHOP_PATH}/checkout", {"plan": "nordic"}, Origin="https://evil.example")
    pages["bad query"] = await browser.get(f"{SHOP_PATH}?country=%ff")
    return pages


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "de"])
async def test_every_page_is_closed_and_readable(market: PagesMarket, language: str) -> None:
    await market.sell("nordic-big", countries='["NO"]')
    await market.sell("europe", countries='["AT","BE","CH","DE","FR","IT","NL","NO"]')
    async with market.browser(language=language) as browser:
        pages = await every(market, browser)
    for name, seen in pages.items():
        check_shop_page(name, seen, language)
        assert seen.status < 500, name
    assert {name: pages[name].status for name in ("unknown", "no way", "no form", "bad query", "not sold", "no such plan")} == {
        "unknown": 404,
        "no way": 405,
        "no form": 403,
        "bad query": 400,
        "not sold": 409,
        "no such plan": 409,
    }


@pytest.mark.long
async def test_hostile_names_stay_texts_on_every_page(market: PagesMarket, browser: Browser) -> None:
    hostile = {"name": HOSTILE, "tagline": HOSTILE, "logo": f'{LOGO}" onload="x', "accent": "#fff;} body{", "support_email": HOSTILE}
    await market.change(**hostile)
    for slug in market.counter.plans:
        await market.sell(slug, name=HOSTILE, countries='["NO"]')
    for name, seen in (await every(market, browser)).items():
        check_shop_page(name, seen)
        assert "<img src=x" not in seen.answer.text and "<script" not in seen.answer.text, name
        assert "onload" not in seen.answer.text and "body{" not in seen.answer.text, name
        assert "49" not in re.sub(r"<style>.*?</style>|data:[^\"]*|[0-9.]+0\b|ord_\w+|[0-9]{19}", "", seen.answer.text, flags=re.DOTALL)
    assert HOSTILE in (await browser.get(SHOP_PATH)).page.text


@pytest.mark.long
async def test_characters_that_hide_or_turn_a_text_are_left_out(market: PagesMarket, browser: Browser) -> None:
    await market.change(name=HIDING, tagline=HIDING, support_email=f"a{HIDING}@b.test")
    for slug in market.counter.plans:
        await market.sell(slug, name=HIDING)
    for name, seen in (await every(market, browser)).items():
        check_shop_page(name, seen)
        assert not set("\u202e\u202c\u200b\u0007\ufeff\u2028") & set(seen.answer.text), name
    assert "payevil now" in (await browser.get(SHOP_PATH)).page.text


async def test_a_long_name_does_not_flood_the_page(market: PagesMarket, browser: Browser) -> None:
    await market.sell("nordic", name="x" * 10_000)
    assert "x" * 199 + "…" in (await browser.get(SHOP_PATH)).page.text


async def test_a_shop_has_its_operators_name_words_logo_and_address(market: PagesMarket, browser: Browser) -> None:
    await market.change(name="Fjord Travel", tagline="Data for the north", logo=LOGO, accent="#ff6600", support_email="help@fjord.test")
    page = (await browser.get(SHOP_PATH)).page
    assert "<title>eSIM plans · Fjord Travel</title>" in page.html
    assert "Fjord Travel Data for the north eSIM plans" in page.text
    assert f'<img src="{LOGO}" alt="">' in page.html
    assert 'href="mailto:help@fjord.test"' in page.html
    assert "--accent: #ff6600; --on-accent: #000000;" in page.html


async def test_a_head_request_gets_the_headers_alone(market: PagesMarket, browser: Browser) -> None:
    bought = await market.bought(browser)
    for path in (SHOP_PATH, bought.path, "/shop/nobodys"):
        got, head = await browser.http.get(path), await browser.http.head(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        for name in ("content-type", "content-security-policy", "content-length"):
            assert head.headers[name] == got.headers[name]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("POST", SHOP_PATH, 405, "GET, HEAD"),
        ("GET", f"{SHOP_PATH}/checkout", 405, "POST"),
        ("DELETE", f"{SHOP_PATH}/orders/ord_x", 405, "GET, HEAD"),
        ("GET", f"{SHOP_PATH}/orders/ord_x/cancel", 405, "POST"),
        ("GET", f"{SHOP_PATH}/orders/ord_x/top-up", 405, "POST"),
        ("GET", f"{SHOP_PATH}/orders", 404, None),
        ("POST", f"{SHOP_PATH}/cancel", 404, None),
        ("GET", "/shop/Fjord", 404, None),
        ("GET", "/shop/..%2Ffjord", 404, None),
        ("GET", "/shop/fjord%0a", 404, None),
        ("GET", f"{SHOP_PATH}?country=NO&country=SE", 400, None),
    ],
)
async def test_what_no_page_answers_is_a_page_too(browser: Browser, method: str, path: str, status: int, allow: str | None) -> None:
    answer = await browser.http.request(method, path, headers={"Origin": browser.origin})
    assert (answer.status_code, answer.headers.get("allow")) == (status, allow)
    check_shop_page(path, Seen(answer, []))


@pytest.mark.long
@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}])
async def test_a_form_of_another_site_changes_nothing(market: PagesMarket, browser: Browser, headers: dict[str, str]) -> None:
    bought = await market.bought(browser)
    for path in (f"{bought.path}/cancel", f"{bought.path}/top-up", f"{SHOP_PATH}/checkout"):
        assert (await browser.post(path, {"plan": "nordic"}, **headers)).status == 403
    assert len(market.counter.sessions()) == 1
    assert (await market.counter.row(bought.path.rsplit("/", 1)[1])).cancelled_at is None
