"""Mails of events in two mail programs: a wide one that shows the page as it is, and a narrow dark one that takes its head away."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Browser, Page, ViewportSize

from clients.mail.letter import Letter
from operations.event_types.alerts import BALANCE_LOW, STOCK_LOW
from tests.browser.chromium import NEEDS_CHROMIUM, SHOTS
from tests.events.mail_stage import LINE, ORDER, open_mail_stage

DARK = '<!doctype html><html><body style="margin:0;background:#121212;color:#e8e8e8"><div>{mail}</div></body></html>'
PROGRAMS: dict[str, tuple[ViewportSize, Literal["light", "dark"]]] = {
    "desk": ({"width": 1280, "height": 800}, "light"),
    "desk-dark": ({"width": 1280, "height": 800}, "dark"),
    "phone": ({"width": 360, "height": 740}, "dark"),
}
READABLE = 4.5
"""The contrast of text with its ground, at least, as WCAG AA has it."""
WEAK_TEXTS = """most => {
  const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = text => {
    const [r, g, b] = numbers(text).slice(0, 3).map(part => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const taught = getComputedStyle(document.documentElement).colorScheme.includes('dark');
  const canvas = taught && matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)';
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const shown = getComputedStyle(at).backgroundColor;
      if (numbers(shown)[3] !== 0) return shown;
    }
    return canvas;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), weak = [];
  while (texts.nextNode()) {
    const {data, parentElement} = texts.currentNode, style = getComputedStyle(parentElement);
    const [most_light, least] = [light(style.color), light(ground(parentElement))].sort((x, y) => y - x);
    const contrast = (most_light + 0.05) / (least + 0.05);
    if (data.trim() && (contrast < most || parseFloat(style.fontSize) < 13)) weak.push([data, contrast]);
  }
  return weak;
}"""

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Letter]]:
    """What the mail catcher has: an alert, and the digest of a day in German."""
    with start_blocking_portal() as portal:  # beside the browser, whose thread has a loop of its own
        yield portal.call(caught, tmp_path_factory.mktemp("mails"))


async def caught(folder: Path) -> dict[str, Letter]:
    async with open_mail_stage(folder) as mails:
        await mails.happen(BALANCE_LOW.name, **BALANCE_LOW.example)
        alert = next(letter for letter in await mails.mailed() if letter.to.startswith("ada"))
        await mails.choose("ada", kinds={"*": "digest"}, digest_hour=7, timezone="Europe/Berlin", language="de")
        await mails.happen("order.ready", count=9, order=ORDER, iccid=LINE)
        await mails.happen("line.status_changed", line=LINE, iccid=LINE, before="ACTIVE", after="SUSPENDED")
        await mails.happen(STOCK_LOW.name, **STOCK_LOW.example)
        mails.at("2026-03-03T09:00:00+00:00")
        digest = next(letter for letter in await mails.mailed() if letter.to.startswith("ada"))
    return {"alert": alert, "digest": digest}


def as_shown(program: str, html: str) -> str:
    """The mail as this program has it: on the telephone what is in the body, on a ground of the program's own."""
    if program != "phone":
        return html
    body = re.fullmatch(r".*<body[^>]*>(.*)</body></html>", html, re.DOTALL)
    assert body is not None
    return DARK.format(mail=body[1])


def picture(page: Page, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS) / f"mail-{name}.png", full_page=True)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["alert", "digest"])
def test_a_mail_is_readable_in_either_program_and_loads_nothing(letters: dict[str, Letter], browser: Browser, kind: str) -> None:
    """Scripts run in no mail, so what one asks for is asked for before it is loaded."""
    letter, page = letters[kind], browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for program, (size, ground) in PROGRAMS.items():
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=ground)
        page.set_content(as_shown(program, str(letter.html)))
        picture(page, f"{kind}-{program}")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], program
        assert page.evaluate(WEAK_TEXTS, READABLE) == [], program
        assert page.locator("h2").first.is_visible()
        assert page.get_by_text("8101").is_visible() and not page.get_by_text("EUR").is_visible()
        assert page.locator(f'a[href="{letter.unsubscribe}"]').is_visible()
    assert [url for url in asked if not url.startswith(("about:", "data:"))] == []
    page.close()
