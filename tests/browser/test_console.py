"""The console of a demo with its life, in a real browser: every page before axe-core, and an array of widths, grounds and script."""

import re
import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState

from operations.demo import DEMO_EMAIL
from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS
from tests.browser.test_key_pages import MAILED_CODE, new_code
from tests.browser.test_shop import found_by_axe
from tests.harness.processes import Running, running
from transports.web.console.app import CONSOLE_ROUTES

WIDTHS = (390, 820, 1280)
COMBINATIONS = tuple(product(WIDTHS, ("light", "dark"), (True, False)))
"""Width, ground, and whether scripts run."""
FEWEST_PAGES = 6
"""That each combination is seen on."""
PATIENCE = 120.0
LIFE_IS_WHOLE, LEDGER_IS_JUDGED = "more to look at now", "equal_keys 2"
"""What the server's log says once the demo's story is told, and once the worker has found that two issuances are for a person to settle."""
SHOWN = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path, route in CONSOLE_ROUTES.items() if route.show and route.private}
STREAM = "/events/stream"
"""No page: it never ends."""
LINK = re.compile(r'href="(/console[^"#]*)')

pytestmark = [*NEEDS_CHROMIUM, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[Running]:
    with running(data, {"SERVICE_BURST_LIMIT": "false", "SERVICE_DEMO_LIFE": "true"}) as server:
        headers = {"Authorization": f"Bearer {server.api_key}"}
        with httpx.Client(base_url=server.base_url, headers=headers) as api:
            wait_for_life(api, data.with_name(f"{data.name}.log"))
        yield server


def wait_for_life(api: httpx.Client, log: Path) -> None:
    """Until the demo has something on every page, and each of its lines was read."""
    assert api.get("/health").status_code == 200  # the life begins after the first answer
    began = time.monotonic()
    while True:
        said, status = log.read_text(), api.get("/v1/fleet/sync-status").json()
        read = status.get("lines") and not status["waiting"]["never_read"]
        if read and LIFE_IS_WHOLE in said and LEDGER_IS_JUDGED in said:
            return
        assert time.monotonic() - began < PATIENCE, (status, said[-2000:])
        time.sleep(0.1)


@pytest.fixture(scope="module")
def signed_in(server: Running, browser: Browser, data: Path) -> StorageState:
    """The cookies of the demo's admin, who has signed in once for every context of this file."""
    context, mails = browser.new_context(java_script_enabled=False, base_url=server.base_url), data.with_name(f"{data.name}.log")
    page, before = context.new_page(), len(MAILED_CODE.findall(mails.read_text()))
    page.goto("/console")
    page.get_by_label("E-mail address").fill(DEMO_EMAIL)
    page.keyboard.press("Enter")
    page.get_by_label("Code from the mail").fill(new_code(mails, before))
    page.keyboard.press("Enter")
    page.wait_for_url("**/console")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture(scope="module")
def pages(server: Running, signed_in: StorageState) -> Mapping[str, str]:
    """An address of each route that a page shows: found by the menu and the links of the pages, and two that only forms lead to."""
    cookies = {str(cookie.get("name")): str(cookie.get("value")) for cookie in signed_in.get("cookies", ())}
    found, waiting = dict[str, str](), ["/console"]
    with httpx.Client(base_url=server.base_url, cookies=cookies, headers={"Accept-Language": "en"}) as http:
        while waiting:
            link = waiting.pop(0)
            route = route_of(link)
            if route in found or route == STREAM or "csv" in link:
                continue
            answer = http.get(link)
            assert answer.status_code == 200, link
            found[route] = link
            waiting += [each.replace("&amp;", "&") for each in LINK.findall(answer.text) if "/assets/" not in each]
    iccid = found["/lines/{iccid}"].rsplit("/", 1)[-1]
    found |= {"/changes/new": f"/console/changes/new?pick={iccid}", "/find": f"/console/find?q={iccid[:10]}"}
    assert SHOWN.keys() - found.keys() == {STREAM}, "a page that no link leads to"
    return found


def route_of(link: str) -> str:
    path = link.split("?", maxsplit=1)[0].removeprefix("/console").rstrip("/")
    return path if path in SHOWN else next(route for route, pattern in SHOWN.items() if pattern.fullmatch(path))


def take_picture(page: Page, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS) / f"console-{name}.png", full_page=True)


def file_name(link: str) -> str:
    return re.sub(r"\W+", "-", route_of(link)).strip("-") or "today"


def test_every_page_has_no_axe_finding(server: Running, browser: Browser, signed_in: StorageState, pages: Mapping[str, str]) -> None:
    """One context for all; its policy lets axe-core in, which is no script of ours."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, base_url=server.base_url, storage_state=signed_in, bypass_csp=True
    )
    page, findings = context.new_page(), dict[str, object]()
    for route, link in pages.items():
        answer = page.goto(link)
        assert answer is not None and answer.status == 200, link
        if found := found_by_axe(page):
            findings[route] = found
    context.close()
    assert findings == {}


class Combination(NamedTuple):
    """One of the twelve ways to look at the console."""

    width: int
    ground: str
    script: bool

    @property
    def opposite(self) -> "Combination":
        """The next width, the other ground, and the other answer to whether scripts run: with it a page is seen by all but one width."""
        following = WIDTHS[(WIDTHS.index(self.width) + 1) % len(WIDTHS)]
        return Combination(following, "light" if self.ground == "dark" else "dark", not self.script)

    def __str__(self) -> str:
        return f"{self.width}-{self.ground}-{'script' if self.script else 'plain'}"


def covering_array(links: list[str]) -> Mapping[Combination, list[str]]:
    """Each page in two opposite combinations; each combination has as many pages as any other, give or take one."""
    shared = {Combination(*each): list[str]() for each in COMBINATIONS}
    for number, link in enumerate(links):
        first = Combination(*COMBINATIONS[number % len(COMBINATIONS)])
        shared[first].append(link)
        shared[first.opposite].append(link)
    return shared


def test_each_combination_of_width_ground_and_script_shows_its_pages_whole(
    server: Running, browser: Browser, signed_in: StorageState, pages: Mapping[str, str]
) -> None:
    awkward = list[tuple[str, str, object]]()
    for combination, links in covering_array(list(pages.values())).items():
        assert len(set(links)) >= FEWEST_PAGES
        context = in_browser(browser, server, signed_in, combination)
        page = context.new_page()
        page.on("console", lambda message, at=str(combination): awkward.append((at, message.location["url"], message.text)))
        page.on("pageerror", lambda error, at=str(combination): awkward.append((at, "script", error.message)))
        for link in links:
            answer = page.goto(link)
            assert answer is not None
            seen = (answer.status, page.locator("h1").count(), page.locator("h1").is_visible(), too_wide(page))
            if seen != (200, 1, True, []):
                awkward.append((str(combination), link, seen))
            take_picture(page, f"{file_name(link)}-{combination}")
        context.close()
    assert awkward == []


def in_browser(browser: Browser, server: Running, signed_in: StorageState, combination: Combination) -> BrowserContext:
    return browser.new_context(
        viewport={"width": combination.width, "height": 900},
        color_scheme="dark" if combination.ground == "dark" else "light",
        java_script_enabled=combination.script,
        base_url=server.base_url,
        storage_state=signed_in,
    )


def too_wide(page: Page) -> object:
    """What stands out of a document that is wider than the window; nothing where it is not."""
    return page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll > *, .menu a"))
        .slice(0, 4).map(e => e.outerHTML.slice(0, 200))"""
    )
