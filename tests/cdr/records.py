"""Records to send, and what was kept of them, added up anew from the raw rows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import httpx
import sqlalchemy as sa

from storage.cdr_events import CdrEventTable
from storage.cdr_sums import CdrMonthTable, CdrSumTable
from storage.engine.sql import Connection, Query
from storage.invoices import list_periods

INGEST = "/v1/cdr/ingest"
AGGREGATE = "/v1/cdr/aggregate"
PERIODS = "/v1/invoices/periods"
Json = dict[str, Any]


class Raw(NamedTuple):
    event: str
    iccid: str
    occurred_at: int
    bytes_up: int
    bytes_down: int
    network: str | None
    country: str | None


class Summed(NamedTuple):
    month: int
    iccid: str
    bytes_up: int
    bytes_down: int
    bytes_total: int
    events: int
    network: str | None
    country: str | None


class InAll(NamedTuple):
    month: int
    bytes_total: int


class Everything(NamedTuple):
    """All that is kept of an organisation's records."""

    raw: list[Raw]
    sums: list[Summed]
    months: list[InAll]
    periods: list[int]


EVENT = CdrEventTable.table
SUM = CdrSumTable.table
MONTH = CdrMonthTable.table
MINE = sa.bindparam("organisation")
RAW = Query(Raw, sa.select(*(EVENT.c[name] for name in Raw._fields)).where(EVENT.c.organisation == MINE))
SUMS = Query(
    Summed, sa.select(*(SUM.c[name] for name in Summed._fields)).where(SUM.c.organisation == MINE).order_by(SUM.c.month, SUM.c.iccid)
)
MONTHS = Query(InAll, sa.select(MONTH.c.month, MONTH.c.bytes_total).where(MONTH.c.organisation == MINE).order_by(MONTH.c.month))


def everything(connection: Connection, *, organisation: str) -> Everything:
    return Everything(
        connection.all(RAW, organisation=organisation),
        connection.all(SUMS, organisation=organisation),
        connection.all(MONTHS, organisation=organisation),
        sorted(period.month for period in list_periods(connection, organisation=organisation, most=1000)),
    )


def agreed(words: Sequence[str | None]) -> str | None:
    return words[0] if len(set(words)) == 1 else None


def added_up(raw: Sequence[Raw]) -> tuple[list[Summed], list[InAll], list[int]]:
    """What the sums, the months and the periods have to be: the slow and obvious way."""
    groups: dict[tuple[int, str], list[Raw]] = {}
    for row in raw:
        moment = datetime.fromtimestamp(row.occurred_at, UTC)
        groups.setdefault((moment.year * 100 + moment.month, row.iccid), []).append(row)
    sums = [
        Summed(
            month,
            iccid,
            sum(row.bytes_up for row in rows),
            sum(row.bytes_down for row in rows),
            sum(row.bytes_up + row.bytes_down for row in rows),
            len(rows),
            agreed([row.network for row in rows]),
            agreed([row.country for row in rows]),
        )
        for (month, iccid), rows in sorted(groups.items())
    ]
    months = sorted({row.month for row in sums})
    return sums, [InAll(month, sum(row.bytes_total for row in sums if row.month == month)) for month in months], months


def assert_exact(kept: Everything) -> None:
    """Sums, months and periods are what the raw rows say, to the byte."""
    assert (kept.sums, kept.months, kept.periods) == added_up(kept.raw)


def iccid(number: int = 1) -> str:
    return f"89883030000009{number:05}"


def event(id: str, sim: int = 1, **given: Any) -> Json:
    return {"id": id, "iccid": iccid(sim), "occurred_at": "2027-01-10T08:00:00Z", "bytes_up": 10, "bytes_down": 90, **given}


async def send(http: httpx.AsyncClient, *events: Json) -> httpx.Response:
    return await http.post(INGEST, json={"events": list(events)})


async def month(http: httpx.AsyncClient, year: int = 2027, month: int = 1, **query: str) -> Json:
    answer = await http.get(AGGREGATE, params={"year": year, "month": month, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()
