"""The page of economics, on the demo: what is left of fleet and shops, and what loses most, and why."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.console.conftest import DemoConsole
from tests.console.test_shops_page import bought
from tests.pages.browser import Browser, Seen

PAGE = "/console/money/economics"


def fleet_costs(server: DemoConsole, days: int, *, ago: int = 0) -> dict[str, Any]:
    last = datetime.now(UTC).date() - timedelta(days=ago)
    window = {"start": (last - timedelta(days=days - 1)).isoformat(), "end": last.isoformat(), "limit": 200}
    answer = server.api.post("/v1/intelligence/high-cost-subscribers", json=window)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def written(amount: float) -> str:
    return f"€{round(amount, 2):,.2f}"


@pytest.mark.long
async def test_the_fleet_says_what_is_left_and_which_line_loses_most_and_why(demo: Browser, demo_server: DemoConsole) -> None:
    costs, seen = fleet_costs(demo_server, 30), await demo.get(PAGE)
    while costs != (now := fleet_costs(demo_server, 30)):  # some lines were being read
        costs, seen = now, await demo.get(PAGE)
    worst = min(costs["lines"], key=lambda line: line["margin_with_packages"])
    income = costs["package_income"] + costs["usage_income"]
    charged = f"and networks charged {written(costs['network_cost'])}: {written(costs['margin_with_packages'])} is left."
    assert f"The lines brought in {written(income)}, {charged}" in seen.page.text
    assert f"Line {worst['iccid']} loses most: {written(-worst['margin_with_packages'])}." in seen.page.text
    assert f"was charged by {worst['networks'][0]['operator']} in " in seen.page.text
    assert f'href="/console/lines/{worst["iccid"]}"' in seen.page.html
    week = await demo.get(f"{PAGE}?days=7")
    assert f"networks charged {written(fleet_costs(demo_server, 7)['network_cost'])}" in week.page.text


async def test_yesterdays_losses_stand_with_their_reason_and_its_sales_alone(demo: Browser, demo_server: DemoConsole) -> None:
    costs = fleet_costs(demo_server, 1, ago=1)
    while True:
        seen, now = await demo.get(f"{PAGE}?days=yesterday"), fleet_costs(demo_server, 1, ago=1)
        if now == costs:
            break
        costs = now
    worst = min(costs["lines"], key=lambda line: line["margin_with_packages"])
    assert worst["margin_with_packages"] < 0
    assert f"Line {worst['iccid']} loses most: {written(-worst['margin_with_packages'])}." in seen.page.text
    assert f"was charged by {worst['networks'][0]['operator']} in " in seen.page.text
    assert f"networks charged {written(costs['network_cost'])}" in seen.page.text and costs["window"]["days"] == 1
    chosen = next(tag for tag in seen.page.tags if tag.attributes.get("aria-current") == "page" and tag.attributes.get("class") == "chip")
    assert chosen.attributes["href"] == f"{PAGE}?days=yesterday"


SOLD = re.compile(r"Buyers paid €([\d,.]+); after refunds, fees and packages €([\d,.]+) is left\.")
SALES = re.compile(r"Nordics 1 GB demo (\d+)" + r" €([\d,.]+)" * 5)


def sold(seen: Seen) -> list[Decimal]:
    """What buyers of all plans paid and what is left of it; then the row of the plan: sales, paid, given back, fees, packages, left."""
    found, sales = SOLD.search(seen.page.text), SALES.search(seen.page.text)
    assert (found is None) == (sales is None) == ("Nothing was sold in these days" in seen.page.text)
    texts = (*found.groups(), *sales.groups()) if found and sales else ("0",) * 8
    return [Decimal(text.replace(",", "")) for text in texts]


def wait_for_fees(server: DemoConsole, count: int) -> None:
    """Until the service was told of so many."""
    for _ in range(1200):
        if len(server.api.get("/v1/operator-billing/fees", params={"limit": 100}).json()["data"]) >= count:
            return
    raise AssertionError("a fee is missing")


@pytest.mark.long
async def test_a_sale_stands_with_its_fee_and_its_package_and_what_is_left(demo: Browser, demo_server: DemoConsole) -> None:
    sales = int(sold(await demo.get(PAGE))[2])
    wait_for_fees(demo_server, sales)
    before = sold(await demo.get(PAGE))
    async with httpx.AsyncClient(base_url=demo_server.server.base_url, headers={"Accept-Language": "en"}, timeout=60) as http:
        await bought(Browser(http))
    wait_for_fees(demo_server, sales + 1)
    seen = await demo.get(PAGE)
    change = [now - then for now, then in zip(sold(seen), before, strict=True)]
    assert change == [Decimal(text) for text in ("7.90", "3.32", "1", "7.90", "0.00", "0.08", "4.50", "3.32")]
    assert "Fleet and shops together: €" in seen.page.text
    assert "Nothing was sold in these days" in (await demo.get(f"{PAGE}?days=yesterday")).page.text


async def test_whoever_is_not_connected_and_sells_nothing_is_told_what_to_do(hers: Browser) -> None:
    seen = await hers.get(PAGE)
    assert seen.status == 200 and "Your organisation is not connected yet" in seen.page.text
    assert "Nothing was sold in these days" in seen.page.text and 'href="/auth/onboarding"' in seen.page.html
