"""The simulated payment processor's pages in a real browser, without script, on a phone and a desk, as `reseller serve` shows them."""

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser, Page

from clients.payments.port import Processor
from clients.payments.records import InvoiceLine, NewCheckout, NewInvoice, ProcessorInvoice
from registry.clock import SystemClock
from simulators.processor.simulated_processor import SimulatedProcessor
from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS, SIZES, in_each_size
from tests.harness.processes import Running
from transports.payments import PAYMENT_PAGES_PATH, SIMULATED_PROCESSOR_KEY, simulated_processor

T = TypeVar("T")

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """A loop of its own: the browser's is in this thread."""
    with start_blocking_portal() as portal:
        yield portal


class Platform:
    """The server's processor, shared through its file."""

    def __init__(self, data: Path, base_url: str, portal: BlockingPortal) -> None:
        self.portal = portal
        self.sandbox = SimulatedProcessor(
            wall=SystemClock().now,
            pages_url=base_url + PAYMENT_PAGES_PATH,
            key=SIMULATED_PROCESSOR_KEY,
            webhook_secret="whsec_bm90IG5lZWRlZA==",
            state_file=data / "payments-sandbox.json",
        )

    def ask(self, call: Callable[[Processor], Awaitable[T]]) -> T:
        async def asked() -> T:
            processor = simulated_processor(self.sandbox)
            try:
                return await call(processor)
            finally:
                await processor.aclose()

        return self.portal.call(asked)

    def told(self, type: str) -> list[object]:
        """What the server answered to events of that type, once it was told."""
        for _ in range(400):
            found = cast("dict[str, list[dict[str, object]]]", self.portal.call(self.sandbox.control, "GET", "hooks"))
            answers = [one["status"] for one in found["told"] if one["type"] == type]
            if answers:
                return answers
            time.sleep(0.05)
        raise AssertionError("nobody was told")


def look(page: Page, name: str) -> None:
    """The page fits the screen and says what it is."""
    assert page.locator("h1").count() == 1
    assert page.get_by_text("Simulated payment processor: no real money").is_visible()
    for size in in_each_size(page):
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(SHOTS) / f"payments-{name}-{size}.png", full_page=True)


async def sent_invoice(processor: Processor, account: str, number: str) -> ProcessorInvoice:
    lines = tuple(InvoiceLine(f"Data of 898830300000091234{place}, January 2027, 1.25 GB at 3.00 USD", 375) for place in range(8))
    due = int(SystemClock().now()) + 14 * 86_400
    wanted = NewInvoice(number, number, "USD", lines, 30, due, "Fjord Travel Æ/S with a rather long name", "pay@fjord.example")
    made = await processor.draft_invoice(account, wanted)
    return await processor.send_invoice(account, made.id, key=f"send-{number}")


@pytest.mark.long
def test_an_owner_sets_up_payments_and_a_recipient_and_a_buyer_pay(
    server: Running, browser: Browser, data: Path, portal: BlockingPortal
) -> None:
    platform, complaints, asked = Platform(data, server.base_url, portal), list[str](), list[str]()
    context = browser.new_context(java_script_enabled=False, viewport=SIZES["phone"], base_url=server.base_url)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    docs = f"{server.base_url}/docs"

    account = platform.ask(lambda to: to.create_account(key="owner", email="owner@fjord.example", country="NO", metadata={})).id
    page.goto(platform.ask(lambda to: to.onboarding_link(account, return_url=docs, refresh_url=docs)).url)
    look(page, "onboarding")
    page.get_by_role("button", name="Complete onboarding").click()
    page.wait_for_url(docs)
    assert platform.ask(lambda to: to.find_account(account)).charges_enabled

    invoice = platform.ask(lambda to: sent_invoice(to, account, "INV-1"))
    assert invoice.pay_url is not None
    page.goto(invoice.pay_url)
    look(page, "invoice")
    page.get_by_label("Test card").select_option("declined")
    page.get_by_role("button", name="Pay 30.00 USD").click()
    assert page.get_by_role("alert").get_by_text("Your card was declined").is_visible()
    look(page, "invoice-declined")
    page.get_by_label("Test card").select_option("pays")
    page.get_by_role("button", name="Pay 30.00 USD").click()
    assert page.get_by_text("Thank you.").is_visible()
    look(page, "invoice-paid")
    assert set(platform.told("invoice.paid")) == {200}

    wanted = NewCheckout("buy-1", "Europe 1 GB", 1000, "USD", 10, docs, docs, promotions=True)
    session = platform.ask(lambda to: to.create_checkout(account, wanted))
    assert session.url is not None
    page.goto(session.url)
    look(page, "checkout")
    page.get_by_label("E-mail").fill("buyer@fjord.example")
    page.get_by_role("button", name="Pay", exact=True).click()
    page.wait_for_url(docs)
    assert platform.ask(lambda to: to.find_checkout(account, session.id)).status == "complete"

    page.goto(platform.ask(lambda to: to.dashboard_link(account)).url)
    look(page, "dashboard")
    assert page.get_by_text("30.00 USD").first.is_visible()
    page.goto(platform.sandbox.pages_url + "/oauth/authorize?response_type=code&client_id=ca_simulated_processor&redirect_uri=" + docs)
    look(page, "authorize")
    page.get_by_role("button", name="Deny").click()
    page.wait_for_url(f"{docs}?error=access_denied*")
    assert [text for text in complaints if "favicon" not in text and "402" not in text] == []
    assert all(url.startswith(server.base_url) for url in asked)
    context.close()
