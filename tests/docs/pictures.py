"""The pictures of the README, taken of a served demo by a real browser: `python -m tests.docs.pictures` takes them anew.

They need Chromium. The demo's figures end with the day, so each taking differs a little; look at them before they are committed.
"""

import shutil
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import httpx
from PIL import Image
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from tests.browser.chromium import QUIET
from tests.harness.processes import ROOT, Running, running

FOLDER = ROOT / "docs" / "pictures"
COLOURS = 96
"""The pages have few: so many show no band, and a picture stays a third as large."""
SCHEDULES = "/v1/intelligence/schedules"
PATIENCE = 60


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
    whole = Image.open(BytesIO(page.screenshot())).convert("RGB")
    page.close()
    found = BytesIO()
    whole.quantize(COLOURS, dither=Image.Dither.NONE).save(found, "PNG", optimize=True)
    return found.getvalue()


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, running(Path(place) / "data") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        size = ViewportSize(width=760, height=860)
        for picture in (Picture("shop", f"{server.base_url}/shop/demo", size), Picture("report", report(server), size)):
            (folder / f"{picture.name}.png").write_bytes(taken(browser, picture))
        browser.close()


if __name__ == "__main__":
    main()
