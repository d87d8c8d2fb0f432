"""The console before a browser: of a new organisation over a clock of ours, and of the demo, whose fleet a real server has read."""

import re
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from operations.demo import DEMO_EMAIL
from registry.caller import Tier
from tests.harness.processes import Running, running
from tests.pages.browser import Browser, Seen
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site, open_site
from tests.stage import opened

MAILED_CODE = re.compile(r"^([0-9]{6}|[0-9A-Z]{4}-[0-9A-Z]{4})$", re.MULTILINE)


site = opened(open_site)


@pytest.fixture
async def browser(site: Site) -> AsyncGenerator[Browser]:
    async with site.browser() as browser:
        yield browser


@pytest.fixture
async def fjord(site: Site) -> str:
    """The organisation of Ada."""
    return await site.organisation(await site.person(ADA_ADDRESS, name="Ada Berg"), "Fjord", tier=Tier.ENTERPRISE)


@pytest.fixture
async def hers(site: Site, browser: Browser, fjord: str) -> Browser:
    seen = await site.sign_in(browser, ADA_ADDRESS, "/console")
    assert (seen.status, seen.path) == (200, "/console")
    return browser


@dataclass
class DemoConsole:
    """The demo's server, and the cookies of its admin, who has signed in once for all tests of this folder.

    They share its lines, shop and money: a test compares with what was there before it.
    """

    server: Running
    api: httpx.Client
    """Speaks for the organisation with its key."""
    cookies: dict[str, str]


@pytest.fixture(scope="package")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoConsole]:
    data = tmp_path_factory.mktemp("console") / "data"
    with running(data, {"SERVICE_BURST_LIMIT": "false"}) as server:
        headers = {"Authorization": f"Bearer {server.api_key}"}
        with httpx.Client(base_url=server.base_url, headers=headers) as api, httpx.Client(base_url=server.base_url) as http:
            wait_for_fleet(api)
            told = {"Origin": server.base_url, "Sec-Fetch-Site": "same-origin"}
            page = Seen(http.get("/auth/sign-in"), []).page.form("/auth/sign-in")
            http.post("/auth/sign-in", data={**page.fields, "email": DEMO_EMAIL}, headers=told)
            form = Seen(http.get("/auth/sign-in/code"), []).page.form("/auth/sign-in/code")
            code = mailed_code(data.with_name(f"{data.name}.log"))
            assert http.post("/auth/sign-in/code", data={**form.fields, "code": code}, headers=told).status_code == 303
            yield DemoConsole(server, api, dict(http.cookies))


def wait_for_fleet(api: httpx.Client) -> None:
    """Until every line of the demo has been read once."""
    assert api.get("/v1/fleet/problems").status_code == 200  # whoever looks first has it read
    status = {}
    for _ in range(1200):
        status = api.get("/v1/fleet/sync-status").json()
        if status["lines"] and not status["waiting"]["never_read"]:
            return
        time.sleep(0.05)
    raise AssertionError(f"the fleet was not read: {status}")


def mailed_code(log: Path) -> str:
    """The code that the server without a mail server has printed."""
    for _ in range(600):
        found = MAILED_CODE.findall(log.read_text())
        if found:
            return str(found[-1])
        time.sleep(0.05)
    raise AssertionError("no mail came")


@pytest.fixture
async def demo(demo_server: DemoConsole) -> AsyncGenerator[Browser]:
    """The demo's admin at the console."""
    async with httpx.AsyncClient(base_url=demo_server.server.base_url, cookies=demo_server.cookies, timeout=60) as http:
        yield Browser(http)
