"""The pages of the demo's console in a browser: the ways to look at them, how all are found by their links, and what is wrong with one."""

import re
import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, StorageState

from operations.demo import DEMO_EMAIL
from tests.browser.test_key_pages import MAILED_CODE, new_code
from tests.browser.test_shop import found_by_axe
from tests.harness.processes import Running
from transports.web.console.app import CONSOLE_ROUTES

WIDTHS = (390, 820, 1280)
HEIGHT = 900
LIFE_SETTINGS = {"SERVICE_BURST_LIMIT": "false", "SERVICE_DEMO_LIFE": "true"}
"""Settings of a server whose pages are looked at."""
PATIENCE = 240.0
LIFE_IS_WHOLE = "more to look at now"
"""What the server's log says once the demo's story is told."""
SHOWN = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path, route in CONSOLE_ROUTES.items() if route.show and route.private}
STREAM_ROUTE = "/events/stream"
"""No page: it never ends."""
LINK = re.compile(r'(?:href|<iframe [^>]*src)="(/console[^"#]*)')
LOCALES = {"en": "en-GB", "de": "de-DE"}


class Combination(NamedTuple):
    """One of the ways to look at the console: width, ground, whether scripts run, and the reader's language."""

    width: int
    ground: str
    script: bool
    language: str = "en"

    @property
    def opposite(self) -> "Combination":
        """The next width, the other ground, and the other answer to whether scripts run."""
        following = WIDTHS[(WIDTHS.index(self.width) + 1) % len(WIDTHS)]
        return Combination(following, "light" if self.ground == "dark" else "dark", not self.script, self.language)

    def __str__(self) -> str:
        return f"{self.width}-{self.ground}-{'script' if self.script else 'plain'}-{self.language}"


COMBINATIONS = tuple(Combination(*each) for each in product(WIDTHS, ("light", "dark"), (True, False)))


class Sight(NamedTuple):
    """What was seen of one page: its HTML, and what is wrong with it."""

    html: str
    findings: list[str]


def wait_for_life(server: Running, log: Path) -> None:
    """Until the demo has something on every page, and each of its lines was read."""
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}, timeout=PATIENCE) as api:
        assert api.get("/health").status_code == 200  # the life begins after the first answer
        began = time.monotonic()
        while True:
            said, status = log.read_text(), api.get("/v1/fleet/sync-status").json()
            read = status.get("lines") and not status["waiting"]["never_read"]
            if read and LIFE_IS_WHOLE in said:
                return
            assert time.monotonic() - began < PATIENCE, (status, said[-2000:])
            time.sleep(0.25)


def sign_in_to_demo(browser: Browser, server: Running, log: Path) -> StorageState:
    """The cookies of the demo's admin, who signs in by the code that the server prints."""
    context = browser.new_context(java_script_enabled=False, base_url=server.base_url)
    page, before = context.new_page(), len(MAILED_CODE.findall(log.read_text()))
    page.goto("/console")
    page.get_by_label("E-mail address").fill(DEMO_EMAIL)
    page.keyboard.press("Enter")
    page.get_by_label("Code from the mail").fill(new_code(log, before))
    page.keyboard.press("Enter")
    page.wait_for_url("**/console")
    state = context.storage_state()
    context.close()
    return state


def route_of(link: str) -> str:
    path = link.split("?", maxsplit=1)[0].removeprefix("/console").rstrip("/")
    return path if path in SHOWN else next(route for route, pattern in SHOWN.items() if pattern.fullmatch(path))


def file_name(link: str) -> str:
    return re.sub(r"\W+", "-", route_of(link)).strip("-") or "today"


class ConsoleTour:
    """A way through every page: by the links of what was seen, the first of each route, and two that only forms lead to."""

    def __init__(self) -> None:
        self.found = dict[str, str]()
        self._waiting = ["/console"]

    def links(self) -> Iterator[str]:
        while self._waiting:
            link = self._waiting.pop(0)
            route = route_of(link)
            if route not in self.found and route != STREAM_ROUTE and "csv" not in link:
                self.found[route] = link
                yield link
        assert self.unseen() == set(), "pages that no link leads to"

    def learn(self, html: str) -> None:
        """Takes the links of a page for later."""
        self._waiting += [each.replace("&amp;", "&") for each in LINK.findall(html) if "/assets/" not in each]
        if (line := self.found.get("/lines/{iccid}")) and "/find" not in self.found:
            iccid = line.rsplit("/", 1)[-1]
            self._waiting += [f"/console/changes/new?pick={iccid}", f"/console/find?q={iccid[:10]}"]

    def unseen(self) -> set[str]:
        return SHOWN.keys() - self.found.keys() - {STREAM_ROUTE}


class ConsoleWindows:
    """Windows of the signed-in admin, one for each language and answer to whether scripts run; width and ground change in it."""

    def __init__(self, browser: Browser, server: Running, state: StorageState) -> None:
        self._browser, self._server, self._state = browser, server, state
        self._pages = dict[tuple[bool, str], Page]()
        self._complaints = list[str]()

    def page(self, combination: Combination) -> Page:
        """The window that shows pages in this way."""
        known = (combination.script, combination.language)
        if known not in self._pages:
            page = self._pages[known] = in_browser(self._browser, self._server, self._state, combination).new_page()
            page.on("console", self._complain)
            page.on("pageerror", lambda error: self._complaints.append(f"script: {error.message}"))
        page = self._pages[known]
        page.set_viewport_size({"width": combination.width, "height": HEIGHT})
        page.emulate_media(color_scheme="dark" if combination.ground == "dark" else "light")
        return page

    def look(self, link: str, combination: Combination) -> Sight:
        """Opens a page, and inspects it. Its policy stays as it is: axe-core comes from outside of it, and breaks none of its rules.

        Without scripts axe-core does not run either: what it has against a page is seen where they do.
        """
        page, self._complaints = self.page(combination), []
        answer = page.goto(link)
        assert answer is not None
        findings = [*seen_wrong(page, answer), *self._complaints]
        if combination.script:
            findings += [f"axe: {found}" for found in found_by_axe(page)]
        return Sight(answer.text(), findings)

    def _complain(self, message: ConsoleMessage) -> None:
        self._complaints.append(f"console: {message.text}")

    def close(self) -> None:
        for page in self._pages.values():
            page.context.close()


def in_browser(browser: Browser, server: Running, state: StorageState, combination: Combination) -> BrowserContext:
    return browser.new_context(
        viewport={"width": combination.width, "height": HEIGHT},
        color_scheme="dark" if combination.ground == "dark" else "light",
        java_script_enabled=combination.script,
        base_url=server.base_url,
        storage_state=state,
        locale=LOCALES[combination.language],
    )


FACTS = """() => {
  const heading = document.querySelector("h1");
  const wide = document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll > *, .menu a"))
    .slice(0, 4).map(e => e.outerHTML.slice(0, 200));
  return {
    "pages wider than the window": wide.length ? wide : document.documentElement.scrollWidth > innerWidth,
    "one heading that is seen": document.querySelectorAll("h1").length !== 1 || !heading.getClientRects().length,
    "another language": document.body.classList.contains("console") && document.documentElement.lang !== navigator.language.slice(0, 2),
  };
}"""


def seen_wrong(page: Page, answer: Response) -> list[str]:
    """What everybody needs of a page, and this one has not: an answer, one heading, their language, and to fit the window."""
    facts: Mapping[str, object] = page.evaluate(FACTS)
    status = [] if answer.status == 200 else [f"status {answer.status}"]
    return status + [f"{name}: {found}" for name, found in facts.items() if found]
