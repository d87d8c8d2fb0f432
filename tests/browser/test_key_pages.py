"""The pages of API keys and of approvals in a real browser: what axe-core finds on them, by day and by night, on a phone and on a desk."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS, in_each_size
from tests.browser.test_shop import found_by_axe
from tests.harness.processes import Running

DEMO_ADMIN = "admin@demo.invalid"
MAILED_CODE = re.compile(r"^([0-9]{6}|[0-9A-Z]{4}-[0-9A-Z]{4})$", re.MULTILINE)
HOOKS = "/v1/connectivity/webhook_endpoints"

pytestmark = [*NEEDS_CHROMIUM, pytest.mark.long]


@pytest.fixture(scope="module")
def admin(server: Running, browser: Browser, data: Path) -> Iterator[Page]:
    """The admin of the demo, signed in. Our pages have no script; the browser runs some for axe-core alone."""
    context = browser.new_context(base_url=server.base_url)
    page, mails = context.new_page(), data.with_name(f"{data.name}.log")
    before = len(MAILED_CODE.findall(mails.read_text()))
    page.goto("/auth/sign-in")
    page.get_by_label("E-mail address").fill(DEMO_ADMIN)
    press(page, "Mail me a code")
    page.get_by_label("Code from the mail").fill(new_code(mails, before))
    press(page, "Continue")
    yield page
    context.close()


def new_code(mails: Path, before: int) -> str:
    """The code that comes after so many others, on the console: there is no mail server."""
    for _ in range(200):
        found = MAILED_CODE.findall(mails.read_text())
        if len(found) > before:
            return str(found[-1])
        time.sleep(0.05)
    raise AssertionError("no mail came")


def press(page: Page, label: str) -> None:
    page.get_by_role("button", name=label, exact=True).first.click()


def inspect_page(page: Page, name: str) -> None:
    """What everybody needs of a page, on a desk by day and on a phone by night; and a picture of it, where somebody wants one."""
    assert page.locator("h1").count() == 1
    for size in in_each_size(page):
        page.emulate_media(color_scheme="dark" if size == "phone" else "light")
        assert found_by_axe(page) == []
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(SHOTS) / f"{name}-{size}.png", full_page=True)


def asking_key(server: Running) -> httpx.Client:
    """A program whose key has to ask before every change."""
    owner = {"Authorization": f"Bearer {server.api_key}"}
    body = {"name": "support agent", "restrictions": {"approval": "every_write", "spend_per_day": {"amount": 4000, "currency": "EUR"}}}
    made = httpx.post(f"{server.base_url}/v1/api-keys", json=body, headers=owner).json()
    return httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {made['secret']}"})


def test_axe_has_nothing_against_the_page_of_approvals(server: Running, admin: Page) -> None:
    admin.goto("/auth/approvals")
    admin.get_by_text("Nothing waits.").wait_for()
    inspect_page(admin, "approvals-empty")
    with asking_key(server) as program:
        for number, headers in enumerate(({}, {"X-Approval-Reason": "The customer asked for it, and the old address is gone."}, {})):
            asked = program.post(HOOKS, json={"url": f"https://hooks{number}.example.com/{'esim' * 30}"}, headers=headers)
            assert asked.status_code == 202, asked.text
    admin.goto("/auth/approvals")
    assert admin.get_by_role("button", name="Approve").count() == 3
    inspect_page(admin, "approvals-open")
    for label in ("Approve", "Decline"):
        admin.get_by_role("button", name=label).first.click()
        admin.get_by_role("heading", name="Lately").wait_for()
    inspect_page(admin, "approvals-decided")
    admin.get_by_role("button", name="Decline").first.click()
    admin.get_by_text("Nothing waits.").wait_for()
    inspect_page(admin, "approvals-all-decided")


def test_axe_has_nothing_against_the_page_of_keys(admin: Page) -> None:
    admin.goto("/auth/api-keys")
    inspect_page(admin, "keys")
    admin.get_by_label("What it is for").fill("booking agent")
    admin.get_by_label("How often a day it may call an operation").fill("create_connectivity_intent")
    press(admin, "Make the key")
    assert admin.get_by_label("How often a day it may call an operation").get_attribute("aria-invalid") == "true"
    inspect_page(admin, "keys-wrong")
    admin.get_by_label("How often a day it may call an operation").fill("create_connectivity_intent=12")
    admin.get_by_label("Only lines with these tags").fill("berlin, vans")
    admin.get_by_label("Above this amount a call waits for a person").fill("5.00 EUR")
    admin.get_by_label("somebody else has to").check()
    press(admin, "Make the key")
    admin.get_by_role("heading", name="The most that it can do").wait_for()
    assert admin.get_by_label("somebody else has to").is_checked()
    inspect_page(admin, "keys-worst-case")
    press(admin, "Make the key with these limits")
    admin.get_by_role("heading", name="“booking agent” is ready").wait_for()
    inspect_page(admin, "keys-made")
