"""Periods: the months of an organisation that have records, each opened by its first one."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.money.money_tables import InvoicePeriodTable
from storage.statement import Command, Query, table

PERIOD = table(InvoicePeriodTable)
DAY = 86_400
# Comes after every month.
LAST = 999_999


class Period(NamedTuple):
    """A month, YYYYMM in UTC. `invoiced` is 1 once an invoice was made for it; open or closed is the clock's to say."""

    id: str
    organisation: str
    month: int
    invoiced: int
    created: int


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(PERIOD.c[name] for name in Period._fields)
OWN = PERIOD.c.organisation == sa.bindparam("organisation")
IS = PERIOD.c.id == sa.bindparam("period")
OPEN = Command(
    lambda dialect: (
        dialect.insert(PERIOD)
        .values({name: sa.bindparam(name) for name in Period._fields})
        .on_conflict_do_nothing(index_elements=["organisation", "month"])
    )
)
FIND = Query(Period, sa.select(*COLUMNS).where(IS, OWN))
LIST = Query(
    Period,
    sa.select(*COLUMNS).where(OWN, PERIOD.c.month < sa.bindparam("before")).order_by(PERIOD.c.month.desc()).limit(sa.bindparam("most")),
)
INVOICED = Command(sa.update(PERIOD).where(IS).values(invoiced=1))


def month_of(moment: int) -> int:
    """The month of a moment in Unix seconds: YYYYMM in UTC."""
    return month_of_day(moment // DAY)


def month_text(month: int) -> str:
    """YYYYMM as YYYY-MM."""
    return f"{month // 100}-{month % 100:02}"


@lru_cache(maxsize=4096)
def month_of_day(day: int) -> int:
    """The same of a day since the epoch; records of one batch share few."""
    date = datetime.fromtimestamp(day * DAY, UTC)
    return date.year * 100 + date.month


def open_periods(connection: Connection, *, organisation: str, months: Iterable[int], now: float, ids: Ids) -> None:
    """Open those that are not there yet, in the order of the months, so that no two transactions wait for each other."""
    rows = [Period(ids.new("per_"), organisation, month, 0, int(now))._asdict() for month in sorted(set(months))]
    connection.run_many(OPEN, rows)


def find_period(connection: Connection, *, period: str, organisation: str) -> Period | None:
    """One period of an organisation."""
    return connection.first(FIND, period=period, organisation=organisation)


def list_periods(connection: Connection, *, organisation: str, most: int, before: int = LAST) -> list[Period]:
    """Newest first, of the months before one."""
    return connection.all(LIST, organisation=organisation, before=before, most=most)


def mark_invoiced(connection: Connection, *, period: str) -> None:
    """An invoice is made for it. The row stays locked until the transaction ends, so that invoices of one month are made one by one."""
    connection.run(INVOICED, period=period)
