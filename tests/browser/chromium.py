"""The browser of these tests, and what it is told."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, ViewportSize

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]
# Without these the browser looks up its maker's hosts at every start.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHOTS = os.environ.get("SHOTS")
"""A folder for pictures of the pages, when somebody wants to look at them."""
SIZES: dict[str, ViewportSize] = {"phone": {"width": 360, "height": 740}, "desk": {"width": 1280, "height": 900}}


def in_each_size(page: Page) -> Iterator[str]:
    """The page as it is on a desk and then on a phone, whose size it keeps; it must be wider than neither."""
    for name, size in reversed(SIZES.items()):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
        yield name
