"""The console of a demo with its life, in a real browser: axe-core, an array of widths, grounds and script, a morning without a mouse."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState

from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS
from tests.browser.console_gallery import (
    COMBINATIONS,
    LIFE_SETTINGS,
    STREAM_ROUTE,
    Combination,
    ConsoleTour,
    ConsoleWindows,
    file_name,
    in_browser,
    sign_in_to_demo,
    wait_for_life,
)
from tests.harness.processes import Running, running

FEWEST_PAGES = 6
"""That each combination is seen on."""

pytestmark = [*NEEDS_CHROMIUM, pytest.mark.timeout(480), pytest.mark.long]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("life") / "data"


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[Running]:
    with running(data, LIFE_SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def signed_in(server: Running, browser: Browser, data: Path) -> StorageState:
    """The cookies of the demo's admin, who has signed in once for every context of this file; and the demo's life is whole."""
    log = data.with_name(f"{data.name}.log")
    state = sign_in_to_demo(browser, server, log)
    wait_for_life(server, log)
    return state


def take_picture(page: Page, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS) / f"console-{name}.png", full_page=True)


def test_the_admin_of_the_demo_signs_in_by_a_mailed_code_without_scripts(signed_in: StorageState) -> None:
    """Apart from the next one, since the demo takes its time to fill itself."""
    assert [cookie.get("name") for cookie in signed_in.get("cookies", ()) if cookie.get("httpOnly")] != []


def test_every_page_is_whole_and_without_an_axe_finding_in_two_opposite_combinations(
    server: Running, browser: Browser, signed_in: StorageState
) -> None:
    """A covering array: each page with scripts and without them, each combination as often as any other, give or take one."""
    tour, windows, pages, awkward = (
        ConsoleTour(),
        ConsoleWindows(browser, server, signed_in),
        Counter[Combination](),
        dict[str, list[str]](),
    )
    for number, link in enumerate(tour.links()):
        first = COMBINATIONS[number % len(COMBINATIONS)]
        for combination in (first, first.opposite):
            html, findings = windows.look(link, combination)
            pages[combination] += 1
            if findings:
                awkward[f"{link} {combination}"] = findings
            take_picture(windows.page(combination), f"{file_name(link)}-{combination}")
            tour.learn(html)
    windows.close()
    assert awkward == {}
    assert min(pages[each] for each in COMBINATIONS) >= FEWEST_PAGES


TABS = 8
"""More than the six connections that a browser opens to one host: a stream for each would let the seventh page hang."""


def test_eight_tabs_share_one_stream_and_the_next_tab_goes_on_with_it_behind_what_was_told(
    server: Running, browser: Browser, signed_in: StorageState
) -> None:
    context = in_browser(browser, server, signed_in, Combination(1280, "light", script=True))
    listening: list[Page] = []
    context.on("request", lambda asked: listening.append(asked.frame.page) if STREAM_ROUTE in asked.url else None)
    tabs = [context.new_page() for _ in range(TABS)]
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}, timeout=60) as api:
        with context.expect_event("response", lambda answer: STREAM_ROUTE in answer.url):
            tabs[0].goto("/console/events?types=esim")
        for tab in tabs[1:]:
            tab.goto("/console/events?types=esim")
        issue_and_wait(api, tabs, 1)
        assert listening == tabs[:1]

        tabs[0].close()
        issue_and_wait(api, tabs[1:], 2)  # issued before another tab has asked: it asks for what came meanwhile
        assert len(listening) == 2
    context.close()


def issue_and_wait(api: httpx.Client, tabs: Sequence[Page], fresh: int) -> None:
    """One more eSIM is issued; each page says so."""
    made = api.post("/v1/connectivity/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": f"tabs-{fresh}"})
    assert made.status_code == 201, made.text
    for tab in tabs:
        tab.locator(f"a[data-stream][data-fresh='{fresh}']").wait_for()


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
        self.page.get_by_text(text).filter(visible=True).first.wait_for()
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
    operator.type("Tag", "travel")  # a page of fifty lines is many Tabs
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
