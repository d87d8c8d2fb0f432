"""Pages of other origins in a real browser: a listed one logs in at /mcp and calls the API, and any other one is told nothing."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browser.chromium import NEEDS_CHROMIUM
from tests.browser.conftest import StrangeSites
from tests.browser.test_people import BrowserPerson
from tests.conformance.test_conformance import MODULES, NODE
from tests.harness.processes import Running

pytestmark = [
    *NEEDS_CHROMIUM,
    pytest.mark.skipif(not NODE.exists(), reason="the Node tools are not installed: npm ci in tools/node"),
    pytest.mark.long,
]
CLIENT = MODULES / "@modelcontextprotocol" / "client" / "dist" / "index.mjs"
FETCH = """async ([url, options]) => {
    const answer = await fetch(url, options);
    return { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
}"""


@dataclass
class Stage:
    """The service, its log, a browser, and two sites with the same page, of which the service knows one."""

    server: Running
    mails: Path
    browser: Browser
    listed: str
    unlisted: str

    def open(self, origin: str) -> Page:
        page = self.browser.new_context().new_page()
        page.goto(f"{origin}/empty.html")
        return page

    def ask(self, page: Page, path: str, **options: Any) -> dict[str, Any]:
        """What a page's script gets for a call of the service."""
        return page.evaluate(FETCH, [self.server.base_url + path, options])

    def is_kept_from(self, page: Page, path: str, **options: Any) -> bool:
        """Whether the browser lets the script have nothing."""
        try:
            self.ask(page, path, **options)
        except Error as error:
            return "TypeError: Failed to fetch" in str(error)
        return False


@pytest.fixture(scope="module")
def stage(strange_sites: StrangeSites, server: Running, data: Path, browser: Browser) -> Stage:
    (strange_sites.folder / "entry.js").write_text(f'export {{ Client, StreamableHTTPClientTransport }} from "{CLIENT}";')
    bundling = [
        NODE,
        MODULES / "rolldown" / "bin" / "cli.mjs",
        "entry.js",
        "--file",
        "client.js",
        "--format",
        "esm",
        "--platform",
        "browser",
    ]
    subprocess.run(bundling, cwd=strange_sites.folder, check=True, capture_output=True, timeout=60)
    return Stage(server, data.with_name(f"{data.name}.log"), browser, strange_sites.listed, strange_sites.unlisted)


def test_an_mcp_client_in_a_listed_page_logs_its_user_in_and_calls_a_tool(stage: Stage) -> None:
    page = stage.browser.new_context().new_page()
    person = BrowserPerson(page, "page", stage.mails)
    page.goto(f"{stage.server.base_url}/auth/sign-up")
    page.get_by_label("E-mail address").fill("page@fjord.example")
    page.get_by_label("Name of the organisation").fill("Fjord page")
    person.press("Mail me a code")
    page.get_by_label("Code from the mail").fill(person.code())
    person.press("Continue")
    page.wait_for_url("**/auth/onboarding")

    page.goto(f"{stage.listed}/index.html?server={stage.server.mcp_url}")
    page.wait_for_url("**/auth/consent**")
    person.press("Allow")
    page.wait_for_url(f"{stage.listed}/**")
    page.wait_for_function("document.getElementById('said')?.textContent")
    said = json.loads(page.locator("#said").inner_text())
    assert said["tools"] > 10 and said["plans"] > 1, said


def test_an_mcp_client_in_any_other_page_gets_no_answer_at_all(stage: Stage) -> None:
    page = stage.browser.new_context().new_page()
    page.goto(f"{stage.unlisted}/index.html?server={stage.server.mcp_url}")
    page.wait_for_function("document.getElementById('said')?.textContent")
    assert "Failed to fetch" in page.locator("#said").inner_text()
    assert page.url.startswith(stage.unlisted)


def test_a_listed_page_calls_the_api_and_reads_what_it_needs(stage: Stage) -> None:
    page = stage.open(stage.listed)
    headers = {"Authorization": f"Bearer {stage.server.api_key}", "Content-Type": "application/json", "Idempotency-Key": '"page-1"'}
    call = {"method": "POST", "headers": headers, "body": json.dumps({"plan": "test_eu_1gb"})}
    made, again = (stage.ask(page, "/v1/connectivity/intents", **call) for _ in range(2))
    assert (made["status"], again["status"], again["body"]) == (201, 201, made["body"])
    assert (again["headers"]["idempotent-replayed"], made["headers"]["request-id"][:4]) == ("true", "req_")
    assert "ratelimit" in made["headers"]
    listed = stage.ask(page, "/v1/connectivity/intents?limit=1", headers={"Authorization": headers["Authorization"]})
    assert listed["status"] == 200
    refused = stage.ask(page, "/mcp", method="POST", headers={"Content-Type": "application/json"}, body="{}")
    assert (refused["status"], "resource_metadata=" in refused["headers"]["www-authenticate"]) == (401, True)
    for path in ("/openapi.json", "/.well-known/oauth-authorization-server/auth", "/auth/jwks", "/v1/nothing"):
        assert stage.ask(page, path)["status"] == (404 if path == "/v1/nothing" else 200)


def test_a_listed_page_never_uses_its_visitor_s_cookies_nor_reads_our_pages(stage: Stage) -> None:
    page = stage.open(stage.listed)
    assert stage.is_kept_from(page, "/v1/connectivity/plans", credentials="include")
    for path in ("/auth/sign-in", "/auth/account", "/docs", "/auth/authorize", "/llms.txt"):
        assert stage.is_kept_from(page, path), path


def test_any_other_page_is_kept_from_every_answer(stage: Stage) -> None:
    page = stage.open(stage.unlisted)
    for path in ("/health", "/openapi.json", "/v1/connectivity/plans", "/mcp", "/.well-known/oauth-protected-resource/mcp", "/auth/jwks"):
        assert stage.is_kept_from(page, path), path
    call = {"method": "POST", "headers": {"Authorization": f"Bearer {stage.server.api_key}", "Idempotency-Key": "stolen"}}
    assert stage.is_kept_from(page, "/v1/connectivity/intents", **call)
