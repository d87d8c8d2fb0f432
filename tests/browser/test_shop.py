"""A buyer before a real browser, without script: from a plan to an eSIM, more data for it, and its end; each page on a phone and a desk."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Frame, Locator, Page, ViewportSize

from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS, SIZES, in_each_size
from tests.browser.conftest import STOREFRONT_KEY
from tests.harness.processes import ROOT, Running
from tests.shop_pages.qr_reader import read_qr

AXE = ROOT / "tools" / "node" / "node_modules" / "axe-core" / "axe.min.js"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15"
ANDROID = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36"
MOST_LOOKS = 400
ASK_AXE = """rules => axe.run(document, {runOnly: rules, resultTypes: ["violations"], selectors: false})
  .then(r => r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html)]))"""
"""Ways to what passes are not worked out: that takes half of the time."""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

pytestmark = NEEDS_CHROMIUM


class Device(TypedDict):
    viewport: ViewportSize
    user_agent: NotRequired[str]
    color_scheme: str
    locale: str


PHONE, DESK = SIZES["phone"], SIZES["desk"]
DEVICES: dict[str, Device] = {
    "phone": {"viewport": PHONE, "user_agent": IPHONE, "color_scheme": "light", "locale": "en-GB"},
    "phone-dark": {"viewport": PHONE, "user_agent": ANDROID, "color_scheme": "dark", "locale": "de-DE"},
    "desk-dark": {"viewport": DESK, "color_scheme": "dark", "locale": "en-GB"},
}


class Buyer:
    """Somebody before the shop; everything they look at must fit the screen, come from us, and be for everybody."""

    def __init__(self, context: BrowserContext, judge: BrowserContext, name: str) -> None:
        self.page, self.judge, self.name = context.new_page(), judge.new_page(), name
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def look(self, what: str) -> None:
        page = self.page
        assert page.locator("h1").count() == 1
        for size in in_each_size(page):
            small = page.evaluate(
                "[...document.querySelectorAll('button, .button, select')].filter(e => e.offsetHeight && e.offsetHeight < 44).length"
            )
            assert small == 0, "what is tapped is at least 44 pixels high"
            if SHOTS:
                Path(SHOTS).mkdir(parents=True, exist_ok=True)
                page.screenshot(path=Path(SHOTS) / f"shop-{self.name}-{what}-{size}.png", full_page=True)
        # Not shown by its address: a page that renews itself would go away under whoever judges it.
        shown = self.judge.request.get(page.url, headers={"Accept-Language": page.evaluate("navigator.language")})
        self.judge.set_content(shown.text())
        assert found_by_axe(self.judge) == []

    def press(self, label: str) -> None:
        self.page.get_by_role("button", name=label, exact=True).first.click()

    def wait_for(self, heading: str) -> None:
        """The page renews itself until it has this heading."""
        self.page.get_by_role("heading", name=heading, level=1).wait_for(timeout=60_000)

    def reload_until(self, shown: Locator) -> None:
        """Looks again and again, sooner than the page renews itself."""
        for _ in range(MOST_LOOKS):
            if shown.is_visible():
                return
            self.page.reload()
        raise AssertionError(f"{self.page.url} never shows {shown}")


def found_by_axe(page: Page | Frame) -> list[object]:
    """What axe-core has against a page, where it is installed (npm ci in tools/node). It is a script, so its browser runs scripts."""
    if not AXE.exists():
        return []
    if page.evaluate("!window.axe"):
        page.evaluate(AXE.read_text())
    return cast("list[object]", page.evaluate(ASK_AXE, RULES))


@contextmanager
def buying(browser: Browser, server: Running, device: str) -> Generator[Buyer]:
    """A buyer without script, and beside them somebody who judges what they see."""
    options = cast("dict[str, Any]", DEVICES[device])
    contexts = [browser.new_context(java_script_enabled=script, base_url=server.base_url, **options) for script in (False, True)]
    yield Buyer(contexts[0], contexts[1], device)
    for context in contexts:
        context.close()


WORDS = {
    "en-GB": {
        "buy": r"Buy for €7\.90",
        "find": "Show plans",
        "ready": "Your eSIM is ready",
        "add": r"Add for €7\.90",
        "added": "added",
        "close": "Close this order",
        "closed": "You closed this order",
        "hand": "Type it in",
    },
    "de-DE": {
        "buy": r"Für 7,90\s€ kaufen",
        "find": "Tarife zeigen",
        "ready": "Ihre eSIM ist bereit",
        "add": r"Für 7,90\s€ hinzufügen",
        "added": "hinzugefügt",
        "close": "Bestellung schließen",
        "closed": "Sie haben diese Bestellung",
        "hand": "Von Hand eingeben",
    },
}


@pytest.mark.long
@pytest.mark.parametrize("device", ["phone", "phone-dark"])
def test_a_buyer_gets_an_esim_adds_data_and_closes_the_order(server: Running, browser: Browser, device: str) -> None:
    with buying(browser, server, device) as buyer:
        whole_way(server, buyer, WORDS[DEVICES[device]["locale"]])
        assert [text for text in buyer.complaints if "favicon" not in text and "404" not in text] == []
        assert all(url.startswith((server.base_url, "data:image/png", "data:image/svg+xml")) for url in buyer.asked)


def whole_way(server: Running, buyer: Buyer, words: dict[str, str]) -> None:
    """From the shop to an order that is closed."""
    page = buyer.page
    page.goto("/shop/demo")
    buyer.look("plans")
    page.locator("select").select_option("NO")
    buyer.press(words["find"])
    page.wait_for_url("**/shop/demo?country=NO")
    buyer.look("country")
    page.get_by_role("button", name=re.compile(words["buy"])).click()
    pay(page)
    buyer.look("waiting")
    if buyer.name == "phone":
        buyer.wait_for(words["ready"])
    else:
        buyer.reload_until(page.get_by_role("heading", name=words["ready"], level=1))
    buyer.look("ready")
    address = page.url

    code = scan(page)
    if not page.locator("#code").is_visible():
        page.get_by_text(words["hand"], exact=True).click()
    assert page.locator("#code").input_value() == code
    assert code.split("$")[1:] == [page.locator("#smdp").input_value(), page.locator("#matching").input_value()]
    assert told_of(server, address)["esim"]["activation_code"] == code
    assert page.locator("a[href*='esim_qrcode_provisioning']").count() == 2

    page.get_by_role("button", name=re.compile(words["add"])).click()
    pay(page)
    page.wait_for_url(address)
    buyer.reload_until(page.locator(".badge", has_text=re.compile(f"^{words['added']}$")))
    buyer.look("added")
    page.get_by_text(words["close"], exact=True).first.click()
    buyer.look("closing")
    page.locator("form[action$='/cancel'] button").click()
    page.get_by_text(words["closed"]).wait_for()
    buyer.look("closed")
    assert scan(page) == code


SIGNED = {"Authorization": f"Bearer {STOREFRONT_KEY}"}


class Esim(TypedDict):
    """What is compared of it."""

    activation_code: str


class Told(TypedDict):
    """What is compared of an order."""

    esim: Esim


def api(server: Running, address: str) -> str:
    """Where programs find the order of a page."""
    return f"{server.base_url}/api/orders/{address.rsplit('/', 1)[1]}"


def told_of(server: Running, address: str) -> Told:
    return cast(Told, httpx.get(api(server, address), headers=SIGNED).json())


def pay(page: Page) -> None:
    page.get_by_label("E-mail").fill("buyer@fjord.example")
    page.get_by_role("button", name="Pay", exact=True).click()
    page.wait_for_url("**/orders/*")


def scan(page: Page) -> str:
    shot = Image.open(BytesIO(page.locator(".code img").screenshot()))
    margin, seen = shot.width // 20, BytesIO()
    shot.crop((margin, margin, shot.width - margin, shot.height - margin)).save(seen, "png")
    return read_qr(seen.getvalue())


@pytest.mark.long
def test_a_plan_is_bought_without_a_mouse(server: Running, browser: Browser) -> None:
    with buying(browser, server, "desk-dark") as buyer:
        page = buyer.page
        page.goto("/shop/demo?country=JP")
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to the content"
        for _ in range(20):
            page.keyboard.press("Tab")
            if "Buy" in page.locator(":focus").inner_text():
                break
        assert page.locator(":focus").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url("**/sandbox/payments/checkout/*")


@pytest.mark.long
def test_an_esim_that_the_operator_takes_back_is_not_shown_any_more(server: Running, browser: Browser) -> None:
    with buying(browser, server, "desk-dark") as buyer:
        page = buyer.page
        page.goto("/shop/demo")
        page.get_by_role("button", name=re.compile(r"Buy for €17\.90")).click()
        pay(page)
        buyer.reload_until(page.get_by_role("heading", name="Your eSIM is ready", level=1))
        buyer.look("ready")
        answer = httpx.delete(api(server, page.url), headers=SIGNED, timeout=60)
        assert answer.status_code == 200, answer.text
        page.reload()
        buyer.wait_for("Your eSIM was taken back")
        buyer.look("back")
        assert page.locator("img[alt^=QR]").count() == 0


@pytest.mark.long
def test_what_is_not_there_is_a_page_for_everybody(server: Running, browser: Browser) -> None:
    with buying(browser, server, "desk-dark") as buyer:
        for what, path in (
            ("no-shop", "/shop/nobodys"),
            ("no-order", f"/shop/demo/orders/ord_{'0' * 26}"),
            ("no-plan", "/shop/demo?country=AQ"),
        ):
            buyer.page.goto(path)
            buyer.look(what)
