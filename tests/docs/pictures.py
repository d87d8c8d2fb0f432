"""The pictures of the documents, taken of a served demo by a real browser: `python -m tests.docs.pictures` takes them anew.

They need Chromium. The demo's figures end with the day, so each taking differs a little; look at them before they are committed.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import httpx
from PIL import Image
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from tests.browser.chromium import QUIET
from tests.browser.console_gallery import LIFE_SETTINGS, Combination, ConsoleWindows, sign_in_to_demo, wait_for_life
from tests.browser.test_cards import CardHost
from tests.harness.processes import ROOT, Running, running

FOLDER = ROOT / "docs" / "pictures"
COLOURS = 96
"""The pages have few: so many show no band, and a picture stays a third as large."""
SCHEDULES = "/v1/intelligence/schedules"
PATIENCE = 60
CONSOLE_COLOURS = 48
CARD_COLOURS = 32
CARD_LINE = 0
"""Which of the demo's lines the cards are about: one with a package that is running."""


class Picture(NamedTuple):
    """A page, and how much of it is shown."""

    name: str
    address: str
    size: ViewportSize


def report(server: Running) -> str:
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}, timeout=PATIENCE) as http:
        schedule = http.post(SCHEDULES, json={"composite": "high_cost_subscribers", "cron": "0 6 1 * *", "share": True}).json()
        http.post(f"{SCHEDULES}/{schedule['id']}/run").raise_for_status()
        ends = time.monotonic() + PATIENCE
        while http.get(f"{SCHEDULES}/{schedule['id']}/report").status_code == 404:
            if time.monotonic() > ends:
                sys.exit("the report was not made in time")
            time.sleep(0.2)
    return f"{schedule['share_url']}?format=html"


def taken(browser: Browser, picture: Picture) -> bytes:
    page = browser.new_page(viewport=picture.size, locale="en-GB", device_scale_factor=1.5, java_script_enabled=False)
    page.goto(picture.address)
    shot = page.screenshot()
    page.close()
    return with_few_colours(shot)


def console(browser: Browser, place: Path) -> bytes:
    """The first page of the console of a demo that has told its story."""
    with running(place / "lively", LIFE_SETTINGS) as server:
        windows = ConsoleWindows(browser, server, sign_in_to_demo(browser, server, place / "lively.log"))
        wait_for_life(server, place / "lively.log")
        light = Combination(1280, "light", script=True)
        windows.look("/console", light)
        shot = windows.page(light).screenshot()
        windows.close()
    return with_few_colours(shot, CONSOLE_COLOURS)


def with_few_colours(shot: bytes, colours: int = COLOURS) -> bytes:
    found = BytesIO()
    Image.open(BytesIO(shot)).convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(found, "PNG", optimize=True)
    return found.getvalue()


def cards(server: Running, browser: Browser) -> Iterator[tuple[str, bytes]]:
    """Cards as a host shows them, of real results: a question, a call that waits for an approval, a line, an eSIM to install."""
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}, timeout=PATIENCE) as http:
        held = {"name": "support agent", "restrictions": {"approval": "irreversible"}}
        asking = replace(server, api_key=http.post("/v1/api-keys", json=held).json()["secret"])
        line = {"iccid": http.get("/v1/subscribers", params={"limit": 2}).json()["data"][CARD_LINE]["iccid"]}
    plan = {"plan": "test_eu_1gb"}
    for name, owner, tool, arguments in (
        ("confirmation", server, "clean_all_packages", line),
        ("approval", asking, "clean_all_packages", line),
        ("line", server, "diagnose_subscriber", line),
        ("install", server, "create_connectivity_intent", plan),
    ):
        page = browser.new_page(viewport=ViewportSize(width=680, height=1000), locale="en-GB", device_scale_factor=1.5)
        host = CardHost(owner, page)
        once = {"idempotency_key": "picture"} if arguments is plan else {}
        host.open(tool, arguments, host.rpc("tools/call", name=tool, arguments=arguments | once))
        yield f"card-{name}", with_few_colours(page.locator("#card").screenshot(), CARD_COLOURS)
        host.close()


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, running(Path(place) / "data") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        (folder / "console.png").write_bytes(console(browser, Path(place)))
        size = ViewportSize(width=760, height=860)
        for picture in (Picture("shop", f"{server.base_url}/shop/demo", size), Picture("report", report(server), size)):
            (folder / f"{picture.name}.png").write_bytes(taken(browser, picture))
        for name, shot in cards(server, browser):
            (folder / f"{name}.png").write_bytes(shot)
        browser.close()


if __name__ == "__main__":
    main()
