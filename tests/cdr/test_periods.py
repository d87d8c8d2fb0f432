"""Periods: opened by the first record, closed by the clock, invoiced by an invoice, never open again."""

from datetime import datetime

import httpx
import pytest
from inline_snapshot import snapshot

from storage.invoices import mark_period_invoiced
from tests.cdr.records import PERIODS, Json, event, month, send
from tests.stage import without_request_id
from tests.world import World


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def periods(http: httpx.AsyncClient, **query: str | int) -> list[Json]:
    answer = await http.get(PERIODS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def states(http: httpx.AsyncClient) -> list[tuple[str, int | None]]:
    return [(row["status"], row["closed_at"]) for row in await periods(http)]


@pytest.mark.cases
@pytest.mark.rule("2.8.1")
@pytest.mark.parametrize(
    ("used", "closes"),
    [
        ("2027-01-31T23:59:59Z", "2027-02-03T00:00:00Z"),
        ("2027-02-01T00:00:00Z", "2027-03-03T00:00:00Z"),
        ("2028-02-29T12:00:00Z", "2028-03-03T00:00:00Z"),
        ("2027-12-31T23:59:59Z", "2028-01-03T00:00:00Z"),
        ("2027-04-30T12:00:00Z", "2027-05-03T00:00:00Z"),
    ],
)
async def test_a_period_closes_48_hours_after_its_month_to_the_second(
    http: httpx.AsyncClient, world: World, used: str, closes: str
) -> None:
    world.clock.wall = at(used)
    await send(http, event("a", occurred_at=used))
    world.clock.wall = at(closes) - 1
    assert await states(http) == [("open", None)]
    world.clock.wall = at(closes)
    assert await states(http) == [("closed", int(at(closes)))]
    world.clock.wall = at("2031-01-01T00:00:00Z")
    assert await states(http) == [("closed", int(at(closes)))]


@pytest.mark.rule("2.8.1")
async def test_an_invoiced_period_stays_so_before_and_after_it_has_closed(http: httpx.AsyncClient, world: World) -> None:
    await send(http, event("a"))
    (row,) = await periods(http)
    await world.store.write(mark_period_invoiced, period=row["id"], organisation=row["org_id"], whole=True)
    assert await states(http) == [("invoiced", None)]
    world.clock.wall = at("2027-02-03T00:00:00Z")
    await send(http, event("late"))
    assert await states(http) == [("invoiced", 1_801_612_800)]
    assert (await periods(http))[0]["id"] == row["id"]
    assert (await month(http))["total_bytes"] == 200


async def test_the_first_record_of_a_month_long_ago_opens_a_closed_period(http: httpx.AsyncClient, world: World) -> None:
    await send(http, event("a", occurred_at="2010-01-01T00:00:00Z"))
    created = int(world.clock.now())
    assert [(row["year"], row["month"], row["created_at"]) for row in await periods(http)] == [(2010, 1, created)]
    world.clock.advance(10)
    assert await states(http) == [("closed", created)]
    await send(http, event("b", occurred_at="2010-01-31T00:00:00Z"))
    assert await states(http) == [("closed", created)]


@pytest.mark.rule("8.14")
async def test_at_most_24_come_at_once_newest_first_and_the_rest_behind_them(http: httpx.AsyncClient) -> None:
    months = [(year, number) for year in (2025, 2024, 2023) for number in range(12, 0, -1)]
    await send(http, *(event(f"{y}-{m}", occurred_at=f"{y}-{m:02}-15T00:00:00Z") for y, m in months[::-1]))
    answer = (await http.get(PERIODS)).json()
    assert ([(row["year"], row["month"]) for row in answer["data"]], answer["has_more"]) == (months[:24], True)
    last = (await http.get(PERIODS, params={"starting_after": answer["data"][-1]["id"]})).json()
    assert ([(row["year"], row["month"]) for row in last["data"]], last["has_more"]) == (months[24:], False)
    assert [row["month"] for row in await periods(http, limit=2, starting_after=answer["data"][0]["id"])] == [11, 10]
    assert (await http.get(PERIODS, params={"limit": 25})).json()["param"] == "limit"
    unknown = (await http.get(PERIODS, params={"starting_after": "per_nonesuch"})).json()
    assert without_request_id(unknown) == snapshot(
        {
            "error": "starting_after: you have no period with this id",
            "code": "invalid_request",
            "param": "starting_after",
            "hint": "Give the `id` of the last period of the page before, or leave it out for the newest",
        }
    )
