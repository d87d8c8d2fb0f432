"""The browser of these tests, and what it is told."""

import os
import shutil

import pytest
from playwright.sync_api import ViewportSize

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
SIZES: dict[str, ViewportSize] = {"phone": {"width": 375, "height": 700}, "desk": {"width": 1280, "height": 900}}
