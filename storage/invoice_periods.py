"""Periods: the months of an organisation that have records, each opened by its first one."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import Ids
from storage.engine.connection import Connection, all_rows, first_row, writes
from storage.engine.statement import Command
from storage.engine.table import TableDescription, table_of


class InvoicePeriodTable(TableDescription, table=True):
    """A month of an organisation that has records. `invoiced`: an invoice was made for it. Open or closed is the clock's to say."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    month: int
    invoiced: int = 0
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("invoice_period_month", "organisation", "month", unique=True),)


INVOICE_PERIOD = table_of(InvoicePeriodTable)

DAY_SECONDS = 86_400

# Comes after every month.
AFTER_ALL_MONTHS = 999_999


class InvoicePeriodRow(NamedTuple):
    """A month, YYYYMM in UTC. `invoiced` is 1 once an invoice was made for it; open or closed is the clock's to say."""

    id: str
    organisation: str
    month: int
    invoiced: int
    created: int


PERIOD_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(INVOICE_PERIOD.c[name] for name in InvoicePeriodRow._fields)

OWN_PERIOD = INVOICE_PERIOD.c.organisation == sa.bindparam("organisation")

THIS_PERIOD = INVOICE_PERIOD.c.id == sa.bindparam("period")

OPEN_PERIOD = Command(
    lambda dialect: (
        dialect.insert(INVOICE_PERIOD)
        .values({name: sa.bindparam(name) for name in InvoicePeriodRow._fields})
        .on_conflict_do_nothing(index_elements=["organisation", "month"])
    )
)


def month_of_moment(moment: int) -> int:
    """The month of a moment in Unix seconds: YYYYMM in UTC."""
    return month_of_day(moment // DAY_SECONDS)


def month_text(month: int) -> str:
    """YYYYMM as YYYY-MM."""
    return f"{month // 100}-{month % 100:02}"


@lru_cache(maxsize=4096)
def month_of_day(day: int) -> int:
    """The same of a day since the epoch; records of one batch share few."""
    date = datetime.fromtimestamp(day * DAY_SECONDS, UTC)
    return date.year * 100 + date.month


def open_periods(connection: Connection, *, organisation: str, months: Iterable[int], now: float, ids: Ids) -> None:
    """Open those that are not there yet, in the order of the months, so that no two transactions wait for each other."""
    rows = [InvoicePeriodRow(ids.new("per_"), organisation, month, 0, int(now))._asdict() for month in sorted(set(months))]
    connection.run_many(OPEN_PERIOD, rows)


@first_row(InvoicePeriodRow)
def find_period(*, period: str, organisation: str) -> sa.Executable:
    """One period of an organisation."""
    return sa.select(*PERIOD_COLUMNS).where(THIS_PERIOD, OWN_PERIOD)


@all_rows(InvoicePeriodRow)
def list_periods(*, organisation: str, most: int, before: int = AFTER_ALL_MONTHS) -> sa.Executable:
    """Newest first, of the months before one."""
    return sa.select(*PERIOD_COLUMNS).where(OWN_PERIOD, INVOICE_PERIOD.c.month < before).order_by(INVOICE_PERIOD.c.month.desc()).limit(most)


@writes
def mark_period_invoiced(*, period: str) -> sa.Executable:
    """An invoice is made for it. The row stays locked until the transaction ends, so that invoices of one month are made one by one."""
    return sa.update(INVOICE_PERIOD).where(THIS_PERIOD).values(invoiced=1)
