"""The page Today tells what was issued and sold in a week by one read of each, and asks the network nothing for it."""

import re

import httpx
import pytest

from operations.secret_tokens import new_api_key
from storage.api_keys import insert_key
from storage.engine.sql import Connection
from storage.issuance import NewIssuance, begin_issuance, dispute_failure, mark_issuance_failed
from tests.console.conftest import DemoConsole
from tests.console.test_shops_page import bought
from tests.network_facts import ACCOUNT, ICCID, TEMPLATE
from tests.pages.browser import Browser, Seen
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site

DAY_SECONDS = 86_400


ISSUED = re.compile(r"(\d+) eSIMs? issued")
SOLD = re.compile(r"(\d+) orders? paid: €\d+\.\d\d")


def week_of(seen: Seen) -> tuple[int, int]:
    """How many eSIMs were issued and how many orders paid."""
    issued, paid = ISSUED.search(seen.page.text), SOLD.search(seen.page.text)
    return int(issued[1]) if issued else 0, int(paid[1]) if paid else 0


@pytest.mark.long
async def test_what_was_issued_and_sold_today_stands_in_the_week_with_its_sum(demo: Browser, demo_server: DemoConsole) -> None:
    issued, paid = week_of(await demo.get("/console"))
    made = demo_server.api.post("/v1/connectivity/intents", json={"plan": "test_global_1gb"}, headers={"Idempotency-Key": "today-1"})
    assert made.status_code == 201, made.text
    async with httpx.AsyncClient(base_url=demo_server.server.base_url, headers={"Accept": "text/html"}, timeout=60) as http:
        await bought(Browser(http))
    seen = await demo.get("/console")
    assert week_of(seen) == (issued + 1, paid + 1)
    assert seen.page.html.count('class="chart"') >= 2
    assert "list_connectivity_intents" in seen.page.text and "list_storefront_orders" in seen.page.text


@pytest.mark.long
async def test_a_busy_week_tells_the_days_that_the_newest_hundred_reach_as_a_whole(site: Site, browser: Browser, fjord: str) -> None:
    service, person = site.service, await site.person(ADA_ADDRESS)
    key = new_api_key(service.ids)
    await service.store.write(
        insert_key,
        organisation=fjord,
        person=person,
        now=site.clock.now(),
        id=service.ids.new("key_"),
        digest=key.digest,
        prefix=key.prefix,
        name="seller",
        restrictions=None,
    )
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


@pytest.mark.long
async def test_outcomes_that_wait_for_a_person_say_why_and_from_when_they_can_be_settled(site: Site, hers: Browser, fjord: str) -> None:
    assert "No eSIM waits for a person." in (await hers.get("/console")).page.text

    def dispute(connection: Connection, *, key: str, now: float) -> None:
        """It was settled as failed, and a late answer names an eSIM."""
        row = NewIssuance(fjord, key, "issue_esim_from_inventory", None, "", ACCOUNT, TEMPLATE, None, None, None, "", "", "")
        begin_issuance(connection, row=row, now=now)
        mark_issuance_failed(connection, organisation=fjord, key=key, now=now, note="nothing drawn")
        dispute_failure(connection, organisation=fjord, key=key, replied=ICCID, now=now)

    await site.service.store.write(dispute, key="sale-0", now=site.clock.now())
    first = await hers.get("/console")
    assert "1 eSIM waits for a person." in first.page.text and "You can settle it from" in first.page.text
    assert "You can settle it now." not in first.page.text
    for number in range(1, 6):
        await site.service.store.write(dispute, key=f"sale-{number}", now=site.clock.now() - DAY_SECONDS - number)
    seen = await hers.get("/console")
    assert "5+ eSIMs wait for a person." in seen.page.text and seen.page.text.count("You can settle it now.") == 4
    assert "An answer that names an eSIM came after it had been settled as failed. Asked for" in seen.page.text
    assert re.findall(r'href="/console/issue/ledger">(sale-\d)<', seen.page.html) == [f"sale-{number}" for number in range(5)]
