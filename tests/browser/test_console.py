"""The console of a demo with its life, in a real browser: axe-core, an array of widths, grounds and script, a morning without a mouse."""

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, StorageState

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
PATIENCE = 240.0
LIFE_IS_WHOLE = "more to look at now"
"""What the server's log says once the demo's story is told."""
SHOWN = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path, route in CONSOLE_ROUTES.items() if route.show and route.private}
STREAM = "/events/stream"
"""No page: it never ends."""
LINK = re.compile(r'href="(/console[^"#]*)')

pytestmark = [*NEEDS_CHROMIUM, pytest.mark.timeout(480)]


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
        if read and LIFE_IS_WHOLE in said:
            return
        assert time.monotonic() - began < PATIENCE, (status, said[-2000:])
        time.sleep(0.25)


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


class Operator:
    """The admin on a morning, who has no mouse: the keys of a keyboard are all that they press."""

    MOST_STOPS = 600

    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, target: Locator) -> None:
        """Tab after Tab, back where `target` stands before the focus, until it is there. A new page begins with the way past its menu."""
        target.wait_for()
        if target.evaluate("e => document.activeElement === document.body && !!document.querySelector('a.skip') && !!e.closest('main')"):
            self.page.keyboard.press("Tab")
            self.page.keyboard.press("Enter")
        before = "e => e.compareDocumentPosition(document.activeElement) === Node.DOCUMENT_POSITION_FOLLOWING"
        key = "Shift+Tab" if target.evaluate(before) else "Tab"
        for _ in range(self.MOST_STOPS):
            self.page.keyboard.press(key)
            if target.evaluate("e => e === document.activeElement"):
                return
        raise AssertionError(f"no Tab leads to {target}")

    def follow(self, name: str | re.Pattern[str], within: Locator | None = None) -> None:
        """Follows a link; the first one of that name."""
        self._enter((within or self.page).get_by_role("link", name=name).first)

    def press(self, name: str | re.Pattern[str]) -> None:
        """Presses a button, with a new page as its answer; the first one of that name."""
        self._enter(self.page.get_by_role("button", name=name).first)

    def _enter(self, target: Locator) -> None:
        self.reach(target)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def type(self, label: str, text: str, within: Locator | None = None) -> None:
        """Types into a field, or chooses what begins so."""
        self.reach((within or self.page.locator("main")).get_by_label(label, exact=True).first)
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.type(text)

    def go(self, name: str) -> None:
        """To a page of the menu."""
        self.follow(name, self.page.locator(".menu"))

    def open(self, name: str, within: Locator | None = None) -> None:
        self.reach((within or self.page.locator("main")).locator("summary", has_text=name).first)
        self.page.keyboard.press("Enter")

    def read(self, text: str | re.Pattern[str], picture: str) -> None:
        """What the page says in the end."""
        self.page.get_by_text(text).first.wait_for()
        take_picture(self.page, f"morning-{picture}")


@pytest.fixture(scope="module")
def operator(server: Running, browser: Browser, signed_in: StorageState) -> Iterator[Operator]:
    context = in_browser(browser, server, signed_in, Combination(1280, "light", script=True))
    page = context.new_page()
    page.goto("/console")
    yield Operator(page)
    context.close()


def test_a_line_without_data_is_found_by_its_problem_and_allowed_again(operator: Operator) -> None:
    operator.go("Today")
    operator.follow(re.compile(r"^Suspended \d"))
    operator.follow(re.compile(r"^89\d+$"))
    operator.read("No data: the status of this line is “Suspended”", "1-why-no-data")
    operator.press("Allow the line again")
    operator.read("The line is allowed again.", "1-allowed-again")


def test_unused_lines_are_suspended_by_a_change_set_and_two_of_them_are_taken_back(operator: Operator) -> None:
    page = operator.page
    operator.go("Fleet")
    operator.type("Status", "Active")
    operator.type("Order", "Longest unused")
    operator.press("Show lines")
    operator.follow("Choose all on this page")
    operator.press("Change the chosen lines")
    operator.type("What shall happen to them?", "Set the status")
    operator.press("Continue")
    operator.type("Status", "Suspended")
    operator.press("Make the plan")
    operator.read("Make this change?", "2-plan")
    operator.press(re.compile(r"Change \d+ rows? now"))
    operator.read(re.compile(r"rows were changed; you can take them back"), "2-suspended")
    for box in page.get_by_role("checkbox").all()[:2]:
        operator.reach(box)
        page.keyboard.press("Space")
    operator.press("Take the chosen back")
    operator.read("Make this change?", "2-plan-of-the-way-back")
    operator.press("Change 2 rows now")
    operator.read("2 of 2 rows were changed", "2-taken-back")


def test_what_an_agent_asked_for_is_approved(operator: Operator) -> None:
    operator.go("Approvals")
    operator.read("The customer says that the phone was stolen", "3-waits")
    operator.press(re.compile("^Approve"))
    operator.read("Approved and carried out", "3-approved")


def test_failed_deliveries_are_sent_again(operator: Operator) -> None:
    operator.go("Webhooks")
    operator.follow(re.compile("delivery to it has failed|deliveries to it have failed"))
    operator.press("Send all again that failed or waits")
    operator.read(re.compile("on (its|their) way again"), "4-replayed")


def test_an_unknown_outcome_is_settled(operator: Operator, data: Path) -> None:
    with closing(sqlite3.connect(data / "service.db")) as database, database:  # the worker has looked for its 24 hours
        database.execute("update issuance set dispatched = dispatched - 90000, updated = updated - 90000 where state = 'outcome_unknown'")
    operator.go("Issue")
    operator.follow("Ledger")
    row = operator.page.get_by_role("region", name="demo-lost-answer")
    operator.open("Settle it", row)
    operator.type("Why you know", "The account was looked through: no second line", row)
    operator.press("Settle, after a question")
    operator.press("Settle it")
    operator.read("It is settled.", "5-settled")


def test_an_invoice_is_sent(operator: Operator) -> None:
    operator.go("Money")
    operator.follow("Invoices", operator.page.locator("main"))
    operator.follow("DEMO-2026-000003")
    operator.press("Send it")
    operator.press("Send it")
    operator.read("It is sent.", "6-sent")


def test_a_dispute_is_answered(operator: Operator) -> None:
    operator.go("Money")
    operator.follow("Disputes", operator.page.locator("main"))
    operator.follow(re.compile("^Answer"))
    operator.type("Use of the eSIM", "The line was used in Oslo on the day after it was bought.")
    operator.press("Send to the bank")
    operator.press("Send it for good")
    operator.read("The answer is sent.", "7-answered")


def test_a_shop_is_opened_and_sells(operator: Operator) -> None:
    page = operator.page
    operator.go("Shops")
    operator.open("Create a shop")
    operator.type("Name", "Morning Mobile")
    operator.type("Address of the shop", "morning-mobile")
    operator.press("Create shop")
    operator.follow("Put a plan into the shop")
    operator.follow("Choose Nordic 1GB 30d")
    operator.type("Short name", "nordic-1gb")
    operator.type("Name of the plan", "Nordic 1 GB")
    operator.type("Data in MB", "1000")
    operator.type("Countries, by their codes", "NO, SE")
    operator.type("Price in EUR", "7.90")
    operator.press("Put the plan into the shop")
    operator.follow("Morning Mobile")
    operator.press("Publish the shop")
    operator.read("Buyers find the shop at", "8-published")
    operator.follow("/shop/morning-mobile")
    operator.press(re.compile(r"Buy for €7\.90"))
    operator.type("E-mail", "buyer@morning.example")
    operator.press("Pay")
    page.get_by_role("heading", name="Your eSIM is ready", level=1).wait_for(timeout=60_000)
    take_picture(page, "morning-8-bought")
    page.goto("/console")


def test_a_key_is_revoked_and_its_last_calls_are_seen(operator: Operator) -> None:
    operator.go("Organisation")
    operator.follow("support agent")
    operator.read("Modify subscriber status", "9-last-calls")
    operator.press("Revoke")
    operator.read("From the next call on it is refused", "9-question")
    operator.press("Revoke")
    operator.read(re.compile("^Revoked$"), "9-revoked")
    assert operator.page.get_by_role("button", name="Revoke").count() == 0


def test_losses_and_their_reasons_are_read(operator: Operator) -> None:
    operator.go("Money")
    operator.follow("Economics")
    operator.follow("7 days")
    operator.read("What loses most", "10-losses")
    row = operator.page.get_by_role("region", name="Lines that lose money").get_by_role("row").nth(1)
    assert len(row.get_by_role("cell").all()[-1].inner_text()) > 10  # what helps
    operator.follow(re.compile(r"^89\d+$"))
    operator.read("What was seen", "10-why")
