"""The page Today tells what was issued and sold in a week by one read of each, and asks the network nothing for it."""

import re
from datetime import UTC, datetime, timedelta

import httpx

from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser
from tests.pages.site import Site
from tests.pages.trail import trail
from transports.web.console.today import COUNTED_ROWS


async def test_what_was_issued_today_stands_in_the_week_and_what_was_sold_with_its_sum(demo: Browser, demo_server: DemoConsole) -> None:
    before = await demo.get("/console")
    issued = int((re.search(r"(\d+) eSIMs? issued", before.page.text) or [0, 0])[1])
    made = demo_server.api.post("/v1/connectivity/intents", json={"plan": "test_global_1gb"}, headers={"Idempotency-Key": "today-1"})
    assert made.status_code == 201
    async with httpx.AsyncClient(base_url=demo_server.server.base_url, headers={"Accept": "text/html"}, timeout=60) as http:
        buyer = Browser(http)
        checkout = await buyer.send((await buyer.get("/shop/demo")).page.form("/checkout", plan="nordics-1gb"))
        await buyer.send(checkout.page.form(checkout.path), "Pay", email="nora@travel.example")
    for _ in range(600):
        seen = await demo.get("/console")
        if "paid: €" in seen.page.text:
            break
    assert f"{issued + 1} eSIM" in seen.page.text and re.search(r"1 order paid: €\d+\.\d\d", seen.page.text)
    assert "list_connectivity_intents" in seen.page.text and "list_storefront_orders" in seen.page.text


async def test_a_busy_week_tells_the_days_that_the_newest_hundred_reach_and_asks_nothing_else(site: Site, hers: Browser) -> None:
    key = (await hers.http.post("/v1/api-keys", json={"name": "seller"})).json()
    del key
    first = datetime.fromtimestamp(site.clock.now(), UTC)
    assert COUNTED_ROWS and first + timedelta(days=1) and await trail(site, "get_reseller_info") == []
