"""The page Today tells what was issued and sold in a week by one read of each, and asks the network nothing for it."""

import re
from typing import Any

import httpx

from operations.secret_tokens import new_api_key
from storage.api_keys import insert_key
from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site

DAY_SECONDS = 86_400


async def test_what_was_issued_and_sold_today_stands_in_the_week_with_its_sum(demo: Browser, demo_server: DemoConsole) -> None:
    made = demo_server.api.post("/v1/connectivity/intents", json={"plan": "test_global_1gb"}, headers={"Idempotency-Key": "today-1"})
    assert made.status_code == 201, made.text
    async with httpx.AsyncClient(base_url=demo_server.server.base_url, headers={"Accept": "text/html"}, timeout=60) as http:
        buyer = Browser(http)
        checkout = await buyer.send((await buyer.get("/shop/demo")).page.form("/checkout", plan="nordics-1gb"))
        await buyer.send(checkout.page.form(checkout.path), "Pay", email="nora@travel.example")
        seen = await demo.get("/console")
        for _ in range(600):
            if "paid: €" in seen.page.text:
                break
            seen = await demo.get("/console")
    assert "1 eSIM issued" in seen.page.text and re.search(r"1 order paid: €\d+\.\d\d", seen.page.text)
    assert seen.page.html.count('class="chart"') >= 2
    assert "list_connectivity_intents" in seen.page.text and "list_storefront_orders" in seen.page.text


async def test_a_busy_week_tells_the_days_that_the_newest_hundred_reach_as_a_whole(site: Site, browser: Browser, fjord: str) -> None:
    service, person = site.service, await site.person(ADA_ADDRESS)
    key = new_api_key(service.ids)
    named: dict[str, Any] = {"id": service.ids.new("key_"), "digest": key.digest, "prefix": key.prefix, "name": "seller"}
    await service.store.write(insert_key, organisation=fjord, person=person, now=site.clock.now(), restrictions=None, **named)
    counts = {"two-days-ago": 20, "yesterday": 82, "today": 3}
    for day, count in counts.items():
        for number in range(count):
            headers = {"Authorization": f"Bearer {key.secret}", "Idempotency-Key": f"{day}-{number}"}
            made = await browser.http.post("/v1/connectivity/intents", json={"plan": "test_global_1gb"}, headers=headers)
            assert made.status_code == 201, made.text
        if day != "today":
            site.clock.advance(DAY_SECONDS)
    seen = await site.sign_in(browser, ADA_ADDRESS, "/console")
    assert "85 eSIMs issued" in seen.page.text
    assert "The newest 100 alone are counted here: they tell the days from" in seen.page.text
