"""The figures of a whole fleet's month add up: packages, call records, totals, balances, notifications, countries."""

from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest

from operations.vocabulary import network_country
from tests.month.fleet import CALL, DATA, SMS, Month, days_of, micro, micro_sum, open_month, records
from tests.network_facts import ACCOUNT, MIB

pytestmark = pytest.mark.long

FIRST, LAST = date(2027, 1, 12), date(2027, 2, 14)
BEGIN = "2027-01-15T12:00:00"
COUNTERS = {
    33: ("useddatabyte", "pckdatabyte"),
    1: ("usedmocsecond", "pckmocsecond"),
    15: ("usedmtcsecond", "pckmtcsecond"),
    21: ("usedmosmsnumber", "pckmosmsnumber"),
    22: ("usedmtsmsnumber", "pckmtsmsnumber"),
}
KINDS = {"DATA": 33, "MOC": 1, "MTC": 15, "MO_SMS": 21, "MT_SMS": 22}


@dataclass(slots=True)
class Books:
    """Everything that the operations said of account 8101, before and after thirty days."""

    lines: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    lines_before: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    packages: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    packages_before: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    usage: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    balances: list[int] = field(default_factory=list[int])
    thresholds: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    countries: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    bought: dict[int, str] = field(default_factory=dict[int, str])
    restless: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """Usage of the busiest lines week by week."""


@pytest.fixture(scope="module")
async def books(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Books]:
    """Thirty days of a fleet whose operator sells new packages to lines that have none left, and takes a fee."""
    async with open_month(tmp_path_factory.mktemp("month")) as month:
        books = Books()
        books.balances.append(await balance(month))
        books.lines_before = {row["iccid"]: row for row in await month.get("subscribers")}
        for iccid in books.lines_before:
            rows = await month.get(f"subscribers/{iccid}/packages")
            books.packages_before |= {row["packageId"]: row for row in rows if row["packageId"]}
        for _ in range(3):
            await month.days(10)
            await sell(month, books)
        await month.put(f"accounts/{ACCOUNT}/balance", {"amount": -1.25, "description": "fee"})
        await read(month, books)
        yield books


async def sell(month: Month, books: Books) -> None:
    """A package for every active line whose packages are all used up or over."""
    template = await month.template("Europe 3GB 30d")
    for row in await month.get("subscribers", status="ACTIVE"):
        held = await month.get(f"subscribers/{row['iccid']}/packages")
        if held and {package["state"] for package in held} <= {"exhausted", "expired"}:
            made = await month.post(f"subscribers/{row['iccid']}/packages", {"packageTemplateId": template, "validityPeriod": 20})
            books.bought[made["packageId"]] = row["iccid"]


async def read(month: Month, books: Books) -> None:
    books.balances.append(await balance(month))
    window = {"start": str(FIRST), "end": str(LAST)}
    for row in await month.get("subscribers"):
        iccid = row["iccid"]
        books.lines[iccid] = row
        books.packages[iccid] = await month.get(f"subscribers/{iccid}/packages")
        books.usage[iccid] = await month.post(f"subscribers/{iccid}/usage", window)
        said = await month.http.get(f"/v1/subscribers/{iccid}/country-history")
        books.countries[iccid] = [entry["country"] for entry in said.json()["data"]]
    busiest = sorted(books.usage, key=lambda iccid: -books.usage[iccid]["dataBytes"])[:2]
    for iccid in busiest:
        weeks = [LAST - timedelta(days=91 - 7 * week) for week in range(14)]
        spans = [{"start": str(first), "end": str(min(LAST, first + timedelta(days=6)))} for first in weeks]
        whole = {"start": str(LAST - timedelta(days=91)), "end": str(LAST)}
        books.restless[iccid] = [await month.post(f"subscribers/{iccid}/usage", span) for span in [whole, *spans]]
    books.thresholds = month.thresholds()


async def balance(month: Month) -> int:
    (account,) = await month.get("accounts")
    return micro(account["balance"])


def later(books: Books, iccid: str) -> list[dict[str, Any]]:
    """The call records of the thirty days."""
    return [record for record in records(books.usage[iccid]) if record["usageDateUtc"] > BEGIN]


async def test_a_months_fleet_has_seen_everything(books: Books) -> None:
    """Else the sums below would prove little."""
    states = Counter(row["state"] for rows in books.packages.values() for row in rows)
    assert len(books.lines) == 140
    assert {"running", "exhausted", "expired", "assigned"} <= set(states)
    assert any(row["recurring"] for rows in books.packages.values() for row in rows)
    kinds = Counter(kind for usage in books.usage.values() for kind in usage["total"].get("quantityPerType", {}))
    assert {str(DATA), str(CALL), str(SMS)} <= set(kinds)
    assert sum(len(usage) for usage in books.countries.values()) > 100
    assert len(books.bought) > 10
    assert any(micro_sum(records(usage), "subscriberCost") for usage in books.usage.values())


async def test_a_package_has_used_what_its_call_records_say(books: Books) -> None:
    for iccid, packages in books.packages.items():
        counted: Counter[tuple[int, int]] = Counter()
        for record in records(books.usage[iccid]):
            if "subscriberPrepaidPackageId" in record:
                counted[record["subscriberPrepaidPackageId"], record["usageType"]] += record["subscriberPrepaidPackageQty"]
        used = {(row["packageId"], kind): row[name] for row in packages for kind, (name, _) in COUNTERS.items() if row.get(name)}
        assert used == dict(counted), iccid


async def test_a_package_costs_the_reseller_what_its_call_records_cost(books: Books) -> None:
    for iccid, packages in books.packages.items():
        costs: Counter[int] = Counter()
        for record in records(books.usage[iccid]):
            costs[record.get("subscriberPrepaidPackageId", 0)] += micro(record["resellerCost"])
        assert {row["packageId"]: micro(row.get("resellerCost", 0.0)) for row in packages} == {
            row["packageId"]: costs[row["packageId"]] for row in packages
        }


async def test_totals_are_the_sums_of_days_and_of_records(books: Books) -> None:
    for usage in books.usage.values():
        by_day: Counter[str] = Counter()
        for day in days_of(usage):
            by_day.update(day["total"]["quantityPerType"])
            of_day: Counter[str] = Counter()
            for record in day["subsDailyUsages"]:
                of_day[str(record["usageType"])] += record["quantity"]
                assert record["usageDateUtc"][:10] == day["day"]
            assert day["total"]["quantityPerType"] == dict(of_day)
        total = usage["total"]
        assert total.get("quantityPerType", {}) == dict(by_day)
        assert usage["dataBytes"] == by_day[str(DATA)]
        assert sum(country["qty"] for country in total["quantityPerCountry"]) == sum(by_day.values())
        for country in total["quantityPerCountry"]:
            assert sum(operator["qty"] for operator in country["quantityPerOperator"]) == country["qty"]
        for member in ("resellerCost", "subscriberCost"):
            assert micro(total[member]) == micro_sum(records(usage), member)


async def test_the_accounts_balance_fell_by_what_was_charged_and_the_fee(books: Books) -> None:
    charged = sum(micro_sum([row for row in later(books, iccid) if row["accountChargeEntity"]], "subscriberCost") for iccid in books.lines)
    before, after = books.balances
    assert charged > 0
    assert before - after == charged + 1_250_000


async def test_a_lines_own_balance_fell_by_what_it_was_charged(books: Books) -> None:
    for iccid, row in books.lines.items():
        charged = micro_sum([record for record in later(books, iccid) if not record["accountChargeEntity"]], "subscriberCost")
        assert micro(books.lines_before[iccid]["balance"]) - micro(row["balance"]) == charged


async def test_each_threshold_that_was_reached_was_told_once(books: Books) -> None:
    reached: set[tuple[int, str, str]] = set()
    for packages in books.packages.values():
        for row in packages:
            before = books.packages_before.get(row["packageId"], {})
            for kind, number in KINDS.items():
                used, limit = COUNTERS[number]
                for percent in (80, 100):
                    aim = row.get(limit, 0) * percent
                    if aim and before.get(used, 0) * 100 < aim <= row[used] * 100:
                        reached.add((row["packageId"], kind, str(percent)))
    own = {row["packageId"] for packages in books.packages.values() for row in packages}
    told = [mark for mark in books.thresholds if mark[0] in own]
    assert len(told) == len(set(told))
    assert set(told) == reached
    assert len(reached) > 20


async def test_ninety_two_days_are_the_sum_of_their_weeks(books: Books) -> None:
    for whole, *weeks in books.restless.values():
        assert sorted(day["day"] for day in days_of(whole)) == [day["day"] for week in weeks for day in days_of(week)]
        assert records(whole) == [record for week in weeks for record in records(week)]
        assert whole["dataBytes"] == sum(week["dataBytes"] for week in weeks) > MIB
        types: Counter[str] = Counter()
        for week in weeks:
            types.update(week["total"].get("quantityPerType", {}))
        assert whole["total"]["quantityPerType"] == dict(types)
        assert micro(whole["total"]["resellerCost"]) == sum(micro(week["total"]["resellerCost"]) for week in weeks)


async def test_the_newest_country_of_a_line_is_where_it_was_seen_last(books: Books) -> None:
    for iccid, row in books.lines.items():
        if books.countries[iccid]:
            assert books.countries[iccid][0] == network_country(str(row["lastMcc"]), f"{row['lastMnc']:02d}")
            assert all(one != next for one, next in zip(books.countries[iccid], books.countries[iccid][1:], strict=False))


async def test_a_package_that_was_sold_pays_from_then_on_and_ends_on_its_day(books: Books) -> None:
    for package, iccid in books.bought.items():
        row = next(held for held in books.packages[iccid] if held["packageId"] == package)
        days = date.fromisoformat(row["tsexpirationutc"][:10]) - date.fromisoformat(row["tsactivationutc"][:10])
        assert (days.days, row["pckdatabyte"]) == (20, 3072 * MIB)
        mine = [record for record in records(books.usage[iccid]) if record.get("subscriberPrepaidPackageId") == package]
        assert all(row["tsactivationutc"] <= record["usageDateUtc"] < row["tsexpirationutc"] for record in mine)
