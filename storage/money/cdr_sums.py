"""What the records of a month add up to, per SIM and in all: kept exact by the transaction that stores the records."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.money.money_tables import CdrMonthTable, CdrSumTable
from storage.statement import Dialect, Query, table

SUM, MONTH = table(CdrSumTable), table(CdrMonthTable)
MOST_OF_SIM = 2**53 - 1
"""What every reader of JSON holds exactly."""
MOST_OF_MONTH = 2**63 - 1
"""What the databases hold exactly. Choice: above 2^53-1, since it is nine petabytes, which many SIMs may reach together."""


class MonthLine(NamedTuple):
    """One SIM in one month. `network` and `country` are None unless every record has them and all agree."""

    iccid: str
    bytes_up: int
    bytes_down: int
    events: int
    network: str | None
    country: str | None


class Grown(NamedTuple):
    """A sum that took what was added to it."""

    month: int
    iccid: str


class GrownMonth(NamedTuple):
    """The same for a whole month."""

    month: int


class Addition(NamedTuple):
    """What a batch adds to a SIM's month."""

    month: int
    iccid: str
    bytes_up: int
    bytes_down: int
    bytes_total: int
    events: int
    network: str | None
    country: str | None


class MonthTotal(NamedTuple):
    """Bytes of a whole month, both directions."""

    bytes_total: int


class MonthSums(NamedTuple):
    """The largest SIMs of a month, and all of its bytes."""

    bytes_total: int
    lines: list[MonthLine]


KINDS = {
    "month": sa.Integer,
    "iccid": sa.Text,
    **dict.fromkeys(("bytes_up", "bytes_down", "bytes_total", "events"), sa.BigInteger),
    **dict.fromkeys(("network", "country"), sa.Text),
}
ORGANISATION = sa.bindparam("organisation", type_=sa.Text)


def adding(dialect: Dialect) -> sa.Executable:
    """All of a batch, in the order of the keys: transactions that take the same rows take them in the same order.

    A sum that would become too large is left as it is, and is missing in what is returned.
    """
    given = listed(dialect, "additions", "given", **KINDS)
    rows = sa.select(ORGANISATION, *given.c).order_by(given.c.month, given.c.iccid)
    insert = dialect.insert(SUM).from_select(["organisation", *Addition._fields], rows)
    more = insert.excluded
    figures = {name: SUM.c[name] + more[name] for name in ("bytes_up", "bytes_down", "bytes_total", "events")}
    words = {name: sa.case((SUM.c[name] == more[name], SUM.c[name])) for name in ("network", "country")}
    return insert.on_conflict_do_update(
        index_elements=["organisation", "month", "iccid"],
        set_={**figures, **words},
        where=SUM.c.bytes_total <= sa.bindparam("most", type_=sa.BigInteger) - more.bytes_total,
    ).returning(SUM.c.month, SUM.c.iccid)


def adding_to_months(dialect: Dialect) -> sa.Executable:
    """The same for the whole months."""
    given = listed(dialect, "additions", "given", month=sa.Integer, bytes_total=sa.BigInteger)
    rows = sa.select(ORGANISATION, *given.c).order_by(given.c.month)
    insert = dialect.insert(MONTH).from_select(["organisation", "month", "bytes_total"], rows)
    more = insert.excluded.bytes_total
    return insert.on_conflict_do_update(
        index_elements=["organisation", "month"],
        set_={"bytes_total": MONTH.c.bytes_total + more},
        where=MONTH.c.bytes_total <= sa.bindparam("most", type_=sa.BigInteger) - more,
    ).returning(MONTH.c.month)


ADD, ADD_TO_MONTHS = Query(Grown, adding), Query(GrownMonth, adding_to_months)
LINE: Sequence[sa.ColumnElement[object]] = tuple(SUM.c[name] for name in MonthLine._fields)
IN_MONTH = (SUM.c.organisation == sa.bindparam("organisation")) & (SUM.c.month == sa.bindparam("month"))
LINES = Query(MonthLine, sa.select(*LINE).where(IN_MONTH).order_by(SUM.c.iccid))
SOME = Query(
    MonthLine,
    lambda dialect: (
        sa.select(*LINE)
        .where(IN_MONTH, SUM.c.iccid.in_(sa.select(listed(dialect, "iccids", "given", iccid=sa.Text).c.iccid)))
        .order_by(SUM.c.iccid)
    ),
)
LARGEST = Query(MonthLine, sa.select(*LINE).where(IN_MONTH).order_by(SUM.c.bytes_total.desc(), SUM.c.iccid).limit(sa.bindparam("most")))
ONE = Query(MonthLine, sa.select(*LINE).where(IN_MONTH, SUM.c.iccid == sa.bindparam("iccid")))
TOTAL = Query(
    MonthTotal,
    sa.select(MONTH.c.bytes_total).where(MONTH.c.organisation == sa.bindparam("organisation"), MONTH.c.month == sa.bindparam("month")),
)


def add_to_sums(connection: Connection, *, organisation: str, additions: Sequence[Addition]) -> set[tuple[int, str]]:
    """Add to the SIMs' months, which are given in order; returns those that took it. The others would become too large."""
    rows = connection.all(ADD, organisation=organisation, additions=packed([tuple(row) for row in additions]), most=MOST_OF_SIM)
    return {(row.month, row.iccid) for row in rows}


def add_to_months(connection: Connection, *, organisation: str, additions: Iterable[tuple[int, int]]) -> set[int]:
    """Add bytes to whole months, which are given in order; returns those that took it."""
    given = packed(list(additions))
    return {row.month for row in connection.all(ADD_TO_MONTHS, organisation=organisation, additions=given, most=MOST_OF_MONTH)}


def month_line_slices(
    connection: Connection, *, organisation: str, month: int, size: int, iccids: Sequence[str] | None = None
) -> Iterator[list[MonthLine]]:
    """Every SIM of a month, or those of `iccids` that have records, in the order of the ICCIDs: at most `size` at a time, as one statement
    sees them."""
    if iccids is None:
        return connection.slices(LINES, size, organisation=organisation, month=month)
    return connection.slices(SOME, size, organisation=organisation, month=month, iccids=packed([(iccid,) for iccid in iccids]))


def largest_of_month(connection: Connection, *, organisation: str, month: int, most: int) -> MonthSums:
    """The SIMs with the most bytes, largest first; the total is that of all."""
    total = connection.first(TOTAL, organisation=organisation, month=month)
    return MonthSums(total.bytes_total if total else 0, connection.all(LARGEST, organisation=organisation, month=month, most=most))


def one_of_month(connection: Connection, *, organisation: str, month: int, iccid: str) -> MonthSums:
    """One SIM alone, and its own total."""
    lines = connection.all(ONE, organisation=organisation, month=month, iccid=iccid)
    return MonthSums(sum(line.bytes_up + line.bytes_down for line in lines), lines)
