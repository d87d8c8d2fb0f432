"""The simulated processor as a part of the service: its pages are public, its API is not there, and its events come to the door."""

from functools import partial
from pathlib import Path

import anyio
import pytest
from httpx import ASGITransport, AsyncClient

from operations.catalogue import CATALOGUE
from registry.limits import Limits
from tests.pages.browser import Browser
from tests.pages.site import HTTPS, Site, open_site
from tests.stage import opened
from tests.world import open_world
from transports.app import Application
from transports.logs import Logs
from transports.payments import PAYMENT_PAGES_PATH, SIMULATED_PROCESSOR_KEY, deliver_payment_events
from transports.service import build_service
from transports.settings_files import load_settings
from transports.upstream import deliver_in_process

site = opened(open_site)


async def test_an_owner_is_led_through_the_service_even_below_a_path_of_its_address(tmp_path: Path) -> None:
    async with (
        open_site(tmp_path, base_url=f"{HTTPS}/base") as site,
        AsyncClient(transport=ASGITransport(site.app), base_url=HTTPS) as http,
    ):
        await led_through(site, Browser(http))


async def led_through(site: Site, browser: Browser) -> None:
    processor = site.service.payments.processor
    account = (await processor.create_account(key="k", email=None, country="US", metadata={})).id
    link = await processor.onboarding_link(account, return_url=f"{HTTPS}/base/back", refresh_url=f"{HTTPS}/base/again")
    assert link.url.startswith(f"{HTTPS}/base{PAYMENT_PAGES_PATH}/onboarding/")
    path = link.url.removeprefix(f"{HTTPS}/base")
    [form] = (await browser.get(path)).page.forms
    assert form.action == f"/base{path}"  # what stands before our paths is taken off on the way to us
    form.action = path
    await browser.send(form, "Complete onboarding")
    assert (await processor.find_account(account)).charges_enabled
    sandbox = site.service.payments.sandbox
    assert sandbox is not None and sandbox.webhook_url.startswith(f"{HTTPS}/v1/")
    assert await sandbox.deliver(partial(deliver_in_process, site.app.http)) == [200]


async def test_only_the_pages_are_there(site: Site) -> None:
    async with site.browser() as browser:
        for path in ("/v1/balance", "/oauth/token", "/control/state", "/control"):
            answer = await browser.http.get(PAYMENT_PAGES_PATH + path, headers={"Authorization": f"Bearer {SIMULATED_PROCESSOR_KEY}"})
            assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b"visit_" not in b"".join(site.log) and PAYMENT_PAGES_PATH.encode() in b"".join(site.log)


async def test_pages_are_counted_by_address_as_all_public_ones(tmp_path: Path) -> None:
    async with open_site(tmp_path, burst_limit=True) as site, site.browser() as browser, site.browser("203.0.113.8") as other:
        statuses = {
            (await browser.http.get(f"{PAYMENT_PAGES_PATH}/invoices/none")).status_code for _ in range(Limits().public_per_minute + 1)
        }
        assert statuses == {404, 429}
        assert (await other.http.get(f"{PAYMENT_PAGES_PATH}/invoices/none")).status_code == 404


@pytest.mark.long
async def test_with_a_real_processor_there_are_no_simulated_pages(tmp_path: Path) -> None:
    settings = load_settings(
        {}, data=tmp_path / "data", demo=False, payments_key="sk_test_12345678", payments_webhook_secret="whsec_12345678"
    )
    service = build_service(settings, "http://127.0.0.1:8000", report=lambda text: None)
    app = Application(service, Logs(lambda lines: None, service.clock))
    assert (service.payments.sandbox, app.http) == (None, app.http)
    site = Site(service, app, None, "http://127.0.0.1:8000")  # pyright: ignore[reportArgumentType]
    async with site.browser() as browser:
        answer = await browser.http.get(f"{PAYMENT_PAGES_PATH}/invoices/none")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    await service.start(seed=False)
    await service.stop()


@pytest.mark.long
async def test_events_are_told_in_the_background_and_a_processor_that_nobody_asked_is_not_begun(tmp_path: Path) -> None:
    async with open_world(tmp_path, CATALOGUE) as world, anyio.create_task_group() as tasks:
        assert not world.payments.begun
        tasks.start_soon(deliver_payment_events, world.payments, world.door)
        caller = await world.caller()
        await world.connect_payments(caller)
        charge = await world.charge(await world.connect_payments(await world.caller()), 5000, "usd", fee=50)
        with anyio.fail_after(60):
            while (await world.ask_payments("GET", "hooks"))["waiting"]:
                await anyio.sleep(0.05)
        told = (await world.ask_payments("GET", "hooks"))["told"]
        assert isinstance(told, list) and {one["status"] for one in told} == {200} and charge
        tasks.cancel_scope.cancel()


async def test_the_names_of_pages_follow_from_more_than_anybody_can_try(site: Site) -> None:
    sandbox = site.service.payments.sandbox
    assert sandbox is not None and sandbox.seed.bit_length() > 160
    async with sandbox.turn(writes=True) as state:
        assert state.seed == sandbox.seed
