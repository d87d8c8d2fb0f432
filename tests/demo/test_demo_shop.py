"""The shop of the demo organisation: what is in it, that it can sell at once, and that it says so where it cannot."""

import base64
import json
import struct
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from operations.demo import DEMO_PLANS, demo_logo
from operations.plans import BYTES_PER_MB
from simulators.network.seed.build import build_world
from simulators.network.seed.catalogue import zone_countries
from storage.storefronts import find_published
from tests.databases import migrated_sqlite
from tests.harness.network_cache import copy_networks
from tests.pages.site import HTTP
from tests.tables import tabled
from tests.world import CountingIds, SettableClock
from transports.app import Application
from transports.logs import Logs
from transports.payments import DEMO_PAYEE
from transports.service import Service, build_service
from transports.settings_files import load_settings
from transports.upstream import DEMO_ACCOUNT

REAL = {"SERVICE_PAYMENTS_KEY": "sk_test_12345678", "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_12345678"}


class Served:
    def __init__(self, service: Service, http: httpx.AsyncClient, key: str | None, said: list[str]) -> None:
        self.service, self.http, self.key, self.said = service, http, key, said

    async def ask(self, method: str, path: str, body: object = None, key: str | None = None) -> Any:
        bearer = key or self.key
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        answer = await self.http.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def reasons(self) -> list[list[str]]:
        """What stands against each plan on sale."""
        plans = (await self.ask("GET", "/api/hosted/demo"))["plans"]
        return [(await self.ask("GET", f"/api/hosted/demo/plans/{plan['id']}/readiness"))["reasons"] for plan in plans]


@asynccontextmanager
async def served(folder: Path, *, real: bool = False) -> AsyncGenerator[Served]:
    """A start; a second one in the same folder finds what the first has left."""
    clock, said = SettableClock(), list[str]()
    data = folder / "data"
    if not data.exists():
        data.mkdir()
        migrated_sqlite(data)
    settings = load_settings(REAL if real else {}, data=data, base_url=HTTP, burst_limit=False)
    copy_networks()
    service = build_service(settings, HTTP, clock=clock, ids=CountingIds(clock), report=said.append)
    app = Application(service, Logs(lambda lines: None, clock, delay=0.0))
    demo = await service.start(seed=True)
    assert demo is not None
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app.http), base_url=HTTP) as http:
            yield Served(service, http, demo.api_key, said)
    finally:
        await service.stop()


@pytest.mark.cases
@pytest.mark.parametrize("seed", [1, 2, 7])
def test_every_plan_is_a_template_of_the_simulated_network_that_holds_what_it_promises_and_is_in_stock(seed: int) -> None:
    network = build_world(seed, 1_780_000_000, history_days=0)
    [stock] = {line.sim.sponsor_id for line in network.lines_of(DEMO_ACCOUNT) if line.sim.status == "FREE"}
    reseller = network.accounts[DEMO_ACCOUNT].reseller_id
    for plan in DEMO_PLANS:
        template = network.templates[plan.template_id]
        places = zone_countries(network.zones[template.zone_id], network.networks)
        assert (template.reseller_id, template.sponsor_id, template.ui_visible, template.recurring) == (reseller, stock, True, False)
        assert template.data_bytes is not None and template.data_bytes // BYTES_PER_MB >= plan.data_mb
        assert (template.period_days, {code.lower() for code in plan.countries.split()}) == (plan.validity_days, places)


def test_the_logo_is_a_small_png_of_four_bars() -> None:
    kind, _, text = demo_logo().partition(",")
    png = base64.b64decode(text, validate=True)
    assert (kind, len(demo_logo()) < 1024, png[:8]) == ("data:image/png;base64", True, b"\x89PNG\r\n\x1a\n")
    parts: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        name, body, check = png[at + 4 : at + 8], png[at + 8 : at + 8 + length], png[at + 8 + length : at + 12 + length]
        assert zlib.crc32(name + body) == int.from_bytes(check)
        parts[name] = body
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (width, height, depth, colour, list(parts)) == (64, 64, 8, 6, [b"IHDR", b"IDAT", b"IEND"])
    lines = zlib.decompress(parts[b"IDAT"])
    inked = [line.count(b"\x0f\x5f\x8c\xff") for line in (lines[row * 257 + 1 : (row + 1) * 257] for row in range(64))]
    assert sorted(set(inked)) == [0, 8, 16, 24, 32]  # so many bars are as tall as that


async def test_an_empty_database_gets_a_shop_that_can_sell_at_once(tmp_path: Path) -> None:
    async with served(tmp_path) as demo:
        shop = await demo.ask("GET", "/api/hosted/demo")
        shown = {**shop, "logo": shop["logo"][:22], "plans": [{**plan, "countries": len(plan["countries"])} for plan in shop["plans"]]}
        assert tabled(shown) == snapshot(
            {
                "object": "storefront",
                "slug": "demo",
                "name": "Demo Telecom",
                "tagline": "Data for your trip, on the phone you have",
                "logo": "data:image/png;base64,",
                "accent": "#0f5f8c",
                "support_email": "support@demo.invalid",
                "currency": "EUR",
                "plans": {
                    "columns": ["id", "slug", "name", "data_mb", "validity_days", "countries", "price_cents", "currency", "position"],
                    "rows": [
                        ["sfp_01mcckg2g0000000000000000b", "europe-3gb", "Europe 3 GB", 3000, 30, 33, 1490, "EUR", 0],
                        ["sfp_01mcckg2g0000000000000000c", "nordics-1gb", "Nordics 1 GB", 1000, 30, 5, 790, "EUR", 1],
                        ["sfp_01mcckg2g0000000000000000d", "usa-3gb", "USA 3 GB", 3000, 30, 1, 1990, "EUR", 2],
                        ["sfp_01mcckg2g0000000000000000e", "japan-3gb", "Japan 3 GB", 3000, 15, 1, 1790, "EUR", 3],
                        ["sfp_01mcckg2g0000000000000000f", "world-1gb", "World 1 GB", 1000, 30, 68, 2290, "EUR", 4],
                    ],
                },
            }
        )
        assert await demo.reasons() == [[], [], [], [], []]
        [kept] = (await demo.ask("GET", "/v1/storefronts"))["data"]
        assert (kept["slug"], kept["status"]) == ("demo", "published")
        assert (await demo.ask("GET", "/v1/operator-billing/connect/status"))["status"] == "active"


async def test_the_shop_and_its_plans_are_such_as_anybody_could_have_made(tmp_path: Path) -> None:
    """Written back through the operations they are taken, and nothing is different."""
    async with served(tmp_path) as demo:
        [shop] = (await demo.ask("GET", "/v1/storefronts"))["data"]
        own = {name: shop[name] for name in ("name", "tagline", "logo", "accent", "support_email", "currency", "status", "slug")}
        # The currency stays as it is once there are plans.
        written = await demo.ask("PATCH", f"/v1/storefronts/{shop['id']}", {name: own[name] for name in own if name != "currency"})
        assert {**written, "updated": None} == {**shop, "updated": None}
        for place, plan in enumerate(DEMO_PLANS):
            body = {**plan._asdict(), "package_template_id": plan.template_id, "countries": plan.countries.split(), "position": place}
            del body["template_id"]
            put = await demo.ask("POST", f"/v1/storefronts/{shop['id']}/plans", body)
            assert (put["slug"], put["position"], put["on_sale"]) == (plan.slug, place, plan.on_sale)
        hosted = (await demo.ask("GET", "/api/hosted/demo"))["plans"]
        assert [plan["slug"] for plan in hosted] == [plan.slug for plan in DEMO_PLANS if plan.on_sale]


@pytest.mark.long
async def test_its_account_at_the_processor_is_there_after_every_start_also_when_the_processor_has_forgotten_all(tmp_path: Path) -> None:
    async with served(tmp_path) as demo:
        key = str(demo.key)
        first = await demo.ask("GET", "/v1/operator-billing/connect/status")
        assert (first["status"], first["account_id"]) == ("active", DEMO_PAYEE)
    (tmp_path / "data" / "payments-sandbox.json").unlink(missing_ok=True)
    async with served(tmp_path) as demo:
        assert await demo.ask("GET", "/v1/operator-billing/connect/status", key=key) == first
        assert await demo.reasons() == [[], [], [], [], []]


async def test_nothing_is_simulated_before_somebody_asks(tmp_path: Path) -> None:
    async with served(tmp_path) as demo:
        sandbox = demo.service.payments.sandbox
        assert sandbox is not None
        assert (sandbox.begun, demo.service.upstream.simulation is not None) == (False, True)


@pytest.mark.long
async def test_with_another_processor_the_shop_cannot_take_orders(tmp_path: Path) -> None:
    async with served(tmp_path, real=True) as demo:
        assert (await demo.ask("GET", "/v1/operator-billing/connect/status"))["status"] == "not_connected"
        assert await demo.reasons() == [["payments_not_active"]] * 5


async def test_a_processor_that_takes_the_simulated_ones_place_does_not_have_its_account(tmp_path: Path) -> None:
    async with served(tmp_path) as demo:
        key = str(demo.key)
    for said in (["the demo's account at the payment processor was simulated, so it has none any more: /auth/payments connects one"], []):
        async with served(tmp_path, real=True) as demo:
            assert demo.said == said
            assert (await demo.ask("GET", "/v1/operator-billing/connect/status", key=key))["status"] == "not_connected"


@pytest.mark.long
async def test_a_shop_that_its_owner_took_back_or_renamed_is_not_named_at_the_next_start(tmp_path: Path) -> None:
    async with served(tmp_path) as demo:
        key, [shop] = str(demo.key), (await demo.ask("GET", "/v1/storefronts"))["data"]
    for change, named in (({"status": "draft"}, None), ({"status": "published"}, "demo"), ({"slug": "other"}, None)):
        async with served(tmp_path) as demo:
            await demo.ask("PATCH", f"/v1/storefronts/{shop['id']}", change, key=key)
            again = await demo.service.start(seed=True)
            assert again is not None and again.shop == named
    async with served(tmp_path) as demo:
        assert await demo.service.store.read(find_published, slug="other") is not None
        assert json.loads((await demo.http.get("/api/hosted/demo")).content)["code"] == "not_found"
