"""A browser, a server and two sites of somebody else for all tests of this folder. It ends with them: it has a loop in their thread."""

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import CHROMIUM, QUIET
from tests.harness.processes import Running, running
from tests.harness.thread_servers import serving_in_thread

STOREFRONT_KEY = "storefront-key-of-the-browser-tests-01"


class QuietFiles(SimpleHTTPRequestHandler):
    """Files of a folder; nothing of it is logged."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def serving(folder: Path) -> Generator[str]:
    """A web site of somebody else on a free port; its origin."""
    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietFiles, directory=folder))) as site:
        yield f"http://localhost:{site.server_port}"


@dataclass(frozen=True, slots=True)
class StrangeSites:
    """Two sites with the same pages, of which the service knows one."""

    folder: Path
    listed: str
    unlisted: str


@pytest.fixture(scope="package")
def strange_sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StrangeSites]:
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(Path(__file__).with_name("mcp_page.html"), folder / "index.html")
    (folder / "empty.html").write_text("<!doctype html><link rel=icon href='data:,'><title>empty</title>")
    with serving(folder) as listed, serving(folder) as unlisted:
        yield StrangeSites(folder, listed, unlisted)


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser") / "data"


@pytest.fixture(scope="package")
def server(data: Path, strange_sites: StrangeSites) -> Iterator[Running]:
    told = {"SERVICE_ALLOWED_ORIGINS": strange_sites.listed, "SERVICE_STOREFRONT_API_KEY": STOREFRONT_KEY}
    with running(data, {"SERVICE_BURST_LIMIT": "false", **told}) as server:
        yield server


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()
