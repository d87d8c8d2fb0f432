"""`python3 ./run pictures --to FOLDER`: every page of the demo's console as a browser shows it, and what is wrong with it.

English in three widths, on a light and a dark ground, with and without scripts; German in the same, by --languages de. Some 48 pages make
about 580 pictures a language in ten minutes of a quiet machine; --ways light-script makes a quarter of them. It needs Chromium, and
axe-core for its part (npm ci in tools/node).
A line for each finding: axe-core, a page wider than the window, an error on the browser's console, a break of the page's policy.
Exit code 1 if there is one.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.chromium import CHROMIUM, QUIET
from tests.browser.console_gallery import (
    COMBINATIONS,
    LIFE_SETTINGS,
    LOCALES,
    Combination,
    ConsoleTour,
    ConsoleWindows,
    file_name,
    sign_in_to_demo,
    wait_for_life,
)
from tests.browser.test_shop import AXE
from tests.harness.processes import running


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def take_all(folder: Path, ways: Sequence[Combination], pages: Sequence[str]) -> int:
    """The number of findings. Each page in all `ways` before the next; with `pages` only those whose name is among them are kept."""
    with tempfile.TemporaryDirectory() as place, running(Path(place) / "data", LIFE_SETTINGS) as server, sync_playwright() as playwright:
        browser, log = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET), Path(place) / "data.log"
        state = sign_in_to_demo(browser, server, log)
        tell(f"{server.base_url}: the demo fills itself...")
        wait_for_life(server, log)
        tour, windows, findings, began = ConsoleTour(), ConsoleWindows(browser, server, state), 0, time.monotonic()
        for number, link in enumerate(tour.links(), 1):
            wanted = ways if not pages or file_name(link) in pages else ways[:1]
            for way in wanted:
                sight = windows.look(link, way)
                tour.learn(sight.html)
                findings += len(sight.findings)
                for finding in sight.findings:
                    tell(f"FINDING {link} {way}: {finding}")
                if not pages or file_name(link) in pages:
                    show_frames(windows.page(way))
                    windows.page(way).screenshot(path=folder / f"{file_name(link)}-{way}.png", full_page=True)
            tell(f"{number} pages, {findings} findings, {time.monotonic() - began:.0f} s: {link}")
        windows.close()
        browser.close()
    return findings


def show_frames(page: Page) -> None:
    """Brings what is shown in a frame of a page onto its picture: it is loaded when somebody comes to it."""
    for frame in page.locator("iframe").all():
        frame.scroll_into_view_if_needed()
        frame.content_frame.locator("h1").wait_for()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="run pictures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, help="the folder of the pictures; it is made where it is not there")
    parser.add_argument("--languages", nargs="+", choices=list(LOCALES), default=list(LOCALES), help="one or both")
    parser.add_argument("--ways", default="", help="only ways whose name holds this, as 390, dark or 1280-light-script")
    parser.add_argument("--pages", nargs="+", default=[], help="only pictures of these pages, as today or lines-iccid")
    given = parser.parse_args(arguments)
    if CHROMIUM is None:
        sys.exit("There is no Chromium: install it, so that `chromium` is found on the PATH.")
    if not AXE.exists():
        tell("axe-core is not installed (npm ci in tools/node): nobody looks for what it finds")
    ways = [way._replace(language=language) for language in given.languages for way in COMBINATIONS]
    chosen = [way for way in ways if given.ways in str(way)]
    if not chosen:
        sys.exit(f"No way is named so. They are: {', '.join(map(str, ways))}")
    given.to.mkdir(parents=True, exist_ok=True)
    findings = take_all(given.to, chosen, given.pages)
    tell(f"{findings} findings; the pictures are in {given.to}")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
