"""A shared report before a real browser: by day and by night, on a telephone and on paper; for everybody, and without script."""

import re
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pypdfium2
import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS, SIZES, in_each_size
from tests.browser.test_shop import found_by_axe
from tests.harness.processes import Running

PATH = "/v1/intelligence/schedules"
SHARED = ("detect_usage_anomalies", "high_cost_subscribers")
SECONDS = 150

pytestmark = [*NEEDS_CHROMIUM, pytest.mark.long]


@pytest.fixture(scope="module")
def links(server: Running) -> dict[str, str]:
    """The pages of reports that were made by schedules."""
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}, timeout=120) as http:
        made = {composite: scheduled(http, composite) for composite in SHARED}
        for schedule in made.values():
            until_done(http, schedule)
    return {composite: f"{schedule['share_url']}?format=html" for composite, schedule in made.items()}


def scheduled(http: httpx.Client, composite: str) -> dict[str, Any]:
    """A schedule with a link, whose first report is asked for at once."""
    body = {"composite": composite, "cron": "0 6 1 1 *", "share": True}
    answer = http.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    schedule: dict[str, Any] = answer.json()
    assert http.post(f"{PATH}/{schedule['id']}/run").status_code == 201
    return schedule


def until_done(http: httpx.Client, schedule: dict[str, Any]) -> None:
    ends = time.monotonic() + SECONDS
    while (answer := http.get(f"{PATH}/{schedule['id']}/report")).status_code == 404:
        assert time.monotonic() < ends, answer.text
        time.sleep(0.1)
    assert answer.json()["state"] == "done", answer.text


@pytest.mark.parametrize(("composite", "locale"), [(SHARED[0], "en-GB"), (SHARED[1], "de-DE")])
def test_a_stranger_reads_the_report_on_any_screen(links: dict[str, str], browser: Browser, composite: str, locale: str) -> None:
    context, judges = browser.new_context(java_script_enabled=False, locale=locale), browser.new_context(locale=locale)
    page, judge = context.new_page(), judges.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(links[composite])
    judge.set_content(page.content())
    assert page.locator("h1").count() == 1
    for size in in_each_size(page):  # a desk by night and a phone by day, and the other way round
        dark = (size == "desk") == (composite == SHARED[0])
        for each in (page, judge):
            each.emulate_media(color_scheme="dark" if dark else "light")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(14, 21, 27)") == dark
        judge.set_viewport_size(SIZES[size])
        assert found_by_axe(judge) == []
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(SHOTS) / f"report-{composite}-{size}.png", full_page=True)
    assert [text for text in complaints if "favicon" not in text] == []
    assert [url for url in asked if not url.endswith("/favicon.ico")] == [links[composite]]
    context.close()
    judges.close()


def test_figures_behind_a_chart_open_without_a_mouse(links: dict[str, str], browser: Browser) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(links[SHARED[0]])
    table = page.locator("details table").first
    assert not table.is_visible()
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert table.is_visible()
    page.close()


@pytest.mark.parametrize("composite", SHARED)
def test_a_report_is_printed_on_a4_by_day_with_whole_rows(links: dict[str, str], browser: Browser, composite: str) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(links[composite])
    printed = page.pdf(prefer_css_page_size=True)
    page.close()
    pages = pypdfium2.PdfDocument(BytesIO(printed))
    assert {tuple(round(side) for side in sheet.get_size()) for sheet in pages} == {(595, 842)}
    words = [sheet.get_textpage().get_text_bounded() for sheet in pages]
    assert "Demo" in words[0] and "How this was made" in words[-1]
    for sheet in pages:
        picture = sheet.render(scale=1).to_pil().convert("L")
        assert picture.getpixel((2, 2)) == 255, "paper is white"
    lines = re.findall(r"^Line \d+\b.*$", "\n".join(words), re.MULTILINE)
    assert len(lines) == len(set(lines))
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        for number, sheet in enumerate(pages, 1):
            sheet.render(scale=2).to_pil().save(Path(SHOTS) / f"report-{composite}-print-{number}.png")
