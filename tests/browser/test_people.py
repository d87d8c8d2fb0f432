"""A new person in a real browser, without script: from signing up to an eSIM; each page on a phone and on a desk."""

import re
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS, SIZES, in_each_size
from tests.harness.processes import Running
from tests.harness.thread_servers import serving_in_thread

MAILED_CODE = re.compile(r"^(\d{6}|[0-9A-Z]{4}-[0-9A-Z]{4})$", re.MULTILINE)

pytestmark = NEEDS_CHROMIUM


class BrowserPerson:
    """Somebody before a page; everything they look at must fit the screen and come from us."""

    def __init__(self, page: Page, name: str, mails: Path) -> None:
        self.page, self.name, self.mails = page, name, mails
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.read = len(MAILED_CODE.findall(mails.read_text()))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("request", lambda request: self.asked.append(request.url))

    def look(self, what: str) -> None:
        assert self.page.locator("h1").count() == 1
        for size in in_each_size(self.page):
            if SHOTS:
                Path(SHOTS).mkdir(parents=True, exist_ok=True)
                self.page.screenshot(path=Path(SHOTS) / f"{self.name}-{what}-{size}.png", full_page=True)

    def code(self) -> str:
        """The code of the newest mail, which is shown on the console where no mail server is."""
        for _ in range(200):
            found = MAILED_CODE.findall(self.mails.read_text())
            if len(found) > self.read:
                self.read = len(found)
                return str(found[-1])
            time.sleep(0.05)
        raise AssertionError("no mail came")

    def press(self, label: str) -> None:
        self.page.get_by_role("button", name=label, exact=True).click()


@pytest.mark.long
def test_a_new_person_gets_from_signing_up_to_an_esim(server: Running, browser: Browser, data: Path) -> None:
    context = browser.new_context(java_script_enabled=False, viewport=SIZES["phone"], base_url=server.base_url)
    person = BrowserPerson(context.new_page(), "new", data.with_name(f"{data.name}.log"))
    page, address = person.page, "new@fjord.example"

    page.goto("/auth")
    person.look("sign-in")
    page.get_by_role("link", name="Sign up your organisation").click()
    page.get_by_label("E-mail address").fill(address)
    page.get_by_label("Name of the organisation").fill("Fjord new")
    person.look("sign-up")
    person.press("Mail me a code")
    person.look("code")
    page.get_by_label("Code from the mail").fill("000000")
    person.press("Continue")
    person.look("code-wrong")
    page.get_by_label("Code from the mail").fill(person.code())
    person.press("Continue")

    page.wait_for_url("**/auth/onboarding")
    person.look("onboarding")
    person.press("Sign out")
    page.goto("/auth/onboarding")
    page.get_by_label("E-mail address").fill(address)
    person.press("Mail me a code")
    page.get_by_label("Code from the mail").fill(person.code())
    person.press("Continue")

    page.wait_for_url("**/auth/onboarding")
    page.get_by_label("Country").select_option("Norway")
    page.get_by_label("What you are").select_option("travel_esim")
    page.locator("section", has=page.locator("#org")).get_by_role("button").click()
    person.press("Connect a managed account")
    assert page.get_by_text("Connected to your managed account").is_visible()
    person.look("onboarding-connected")
    page.get_by_label("What buyers read").fill("Nordic starter")
    page.locator("section", has=page.locator("#plan")).get_by_role("button", name="Save").click()
    person.press("Show one")
    person.press("Finish")
    assert page.get_by_role("heading", name="All set up").is_visible()
    person.look("onboarding-done")

    page.get_by_role("link", name="API keys").first.click()
    page.get_by_label("What it is for").fill("order service")
    person.press("Make the key")
    secret = page.locator("code.secret").inner_text()
    person.look("api-key")

    for path in ("account", "members", "audit", "affiliates", "upgrade", "session-token", "nowhere"):
        page.goto(f"/auth/{path}")
        person.look(path)

    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}"}) as http:
        made = http.post("/v1/connectivity/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": "first-new"})
        assert made.status_code == 201, made.text
        assert made.json()["status"] == "succeeded"
        assert made.json()["esim"]["iccid"].startswith("8999")
    assert [text for text in person.complaints if "favicon" not in text and "404" not in text and "400" not in text] == []
    assert all(url.startswith(server.base_url) for url in person.asked)
    context.close()


class Program(BaseHTTPRequestHandler):
    """A program on somebody's own computer that waits for its code."""

    def do_GET(self) -> None:
        cast(CameBack, self.server).paths.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"thank you")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing of it is logged."""


class CameBack(HTTPServer):
    """Listens on a free port, and keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Program)
        self.paths: list[str] = []


@pytest.fixture
def program() -> Iterator[CameBack]:
    with serving_in_thread(CameBack()) as server:
        yield server


@pytest.mark.long
def test_a_program_asks_and_gets_its_code_through_the_policy(server: Running, browser: Browser, data: Path, program: CameBack) -> None:
    """Browsers check a redirect after a form against the page's form-action, so this is what shows that it is right."""
    mails, callback = data.with_name(f"{data.name}.log"), f"http://127.0.0.1:{program.server_port}/callback"
    with httpx.Client(base_url=server.base_url) as http:
        metadata = {"client_name": "Chart maker", "redirect_uris": [callback], "token_endpoint_auth_method": "none"}
        registered = http.post("/auth/register", json=metadata)
        assert registered.status_code == 201, registered.text
    asked = {
        "response_type": "code",
        "client_id": registered.json()["client_id"],
        "redirect_uri": callback,
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "scope": "read write admin",
        "resource": server.mcp_url,
        "state": "st-1",
    }
    context = browser.new_context(java_script_enabled=False, viewport=SIZES["phone"], base_url=server.base_url, color_scheme="dark")
    person = BrowserPerson(context.new_page(), "dark", mails)
    page = person.page
    page.goto("/auth/sign-up")
    page.get_by_label("E-mail address").fill("dark@fjord.example")
    page.get_by_label("Name of the organisation").fill("Fjord dark")
    person.press("Mail me a code")
    page.get_by_label("Code from the mail").fill(person.code())
    person.press("Continue")
    person.look("onboarding")
    page.goto(f"/auth/authorize?{urlencode(asked)}")
    person.look("consent")
    allow, deny = (page.get_by_role("button", name=name, exact=True).bounding_box() for name in ("Allow", "Deny"))
    assert allow is not None and deny is not None
    assert (round(allow["width"]), round(allow["height"])) == (round(deny["width"]), round(deny["height"]))
    person.press("Allow")
    page.wait_for_url(f"{callback}**")
    assert "state=st-1" in program.paths[0] and "code=ac_" in program.paths[0]
    page.goto("/auth/account")
    assert page.get_by_text("Chart maker").first.is_visible()
    person.look("account")
    context.close()


@pytest.mark.long
def test_signing_in_needs_no_mouse(server: Running, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False, viewport=SIZES["desk"], base_url=server.base_url)
    page = context.new_page()
    page.goto("/auth/sign-in")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("keys@fjord.example")
    page.keyboard.press("Enter")
    page.wait_for_url("**/auth/sign-in/code")
    context.close()
