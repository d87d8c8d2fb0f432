"""The documentation in a browser: readable on a phone, without script, and without a request to anybody else."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import NEEDS_CHROMIUM
from tests.harness.processes import Running

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 375, "height": 667})
    yield page
    page.close()


@pytest.mark.long
def test_a_page_fits_a_phone_and_asks_nobody_else(server: Running, phone: Page) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    phone.on("request", lambda request: asked.append(request.url))
    phone.on("console", lambda message: complaints.append(message.text))
    for path in ("/docs", "/docs/connectivity", "/docs/connectivity/create_connectivity_intent"):
        answer = phone.goto(server.base_url + path)
        assert answer is not None and answer.status == 200
        assert phone.locator("h1").count() == 1
        assert phone.evaluate("document.documentElement.scrollWidth") <= 375, path
        assert phone.locator("script").count() == 0
    assert all(url.startswith(server.base_url) for url in asked)
    assert [text for text in complaints if "favicon" not in text] == []


@pytest.mark.long
def test_every_operation_is_reached_by_links_and_the_keyboard(server: Running, phone: Page) -> None:
    phone.goto(server.base_url)
    assert phone.url == server.base_url + "/docs"
    phone.get_by_role("link", name="connectivity", exact=True).first.click()
    phone.get_by_role("link", name="Issue an eSIM").first.focus()
    phone.keyboard.press("Enter")
    phone.wait_for_url("**/docs/connectivity/create_connectivity_intent")
    assert "test_eu_1gb" in phone.content()
