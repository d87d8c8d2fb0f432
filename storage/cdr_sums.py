"""What the records of a month add up to, per SIM and in all: kept exact by the transaction that stores the records."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Connection,
    Dialect,
    Key,
    Query,
    TableDescription,
    bound_list,
    column_kinds,
    json_rows,
    pack_rows,
)


class SimAddition(NamedTuple):
    """What a batch adds to a SIM's month."""

    month: Annotated[int, Field(primary_key=True)]
    iccid: Key
    bytes_up: BigInt
    bytes_down: BigInt
    bytes_total: BigInt
    events: BigInt
    network: str | None
    country: str | None


class CdrSumTable(TableDescription, row=SimAddition, table=True):
    """All records of one SIM in one month, summed exactly in the transaction that stored them.

    `bytes_total` is both directions, at most 2^53-1. `network` and `country` are null unless every record has them and all agree.
    """

    organisation: str = Field(primary_key=True)
    __table_args__ = (sa.Index("cdr_sum_largest", "organisation", "month", "bytes_total"), CLUSTERED)


class CdrMonthTable(TableDescription, table=True):
    """All records of an organisation in one month, both directions, at most 2^63-1 bytes: nobody adds up its SIMs to read it."""

    organisation: str = Field(primary_key=True)
    month: int = Field(primary_key=True)
    bytes_total: BigInt
    __table_args__ = CLUSTERED


CDR_SUM = CdrSumTable.table

CDR_MONTH = CdrMonthTable.table

MOST_OF_SIM = 2**53 - 1
"""What every reader of JSON holds exactly."""

MOST_OF_MONTH = 2**63 - 1
"""What the databases hold exactly. Choice: above 2^53-1, since it is nine petabytes, which many SIMs may reach together."""


class SimMonth(NamedTuple):
    """One SIM in one month. `network` and `country` are None unless every record has them and all agree."""

    iccid: str
    bytes_up: int
    bytes_down: int
    events: int
    network: str | None
    country: str | None


class GrownSim(NamedTuple):
    """A sum that took what was added to it."""

    month: int
    iccid: str


class MonthSums(NamedTuple):
    """The largest SIMs of a month, and all of its bytes."""

    bytes_total: int
    lines: list[SimMonth]


BOUND_ORGANISATION = sa.bindparam("organisation", type_=sa.Text)


def add_sums_query(dialect: Dialect) -> sa.Executable:
    """All of a batch, in the order of the keys: transactions that take the same rows take them in the same order.

    A sum that would become too large is left as it is, and is missing in what is returned.
    """
    given = json_rows(dialect, "additions", "given", **column_kinds(CDR_SUM, SimAddition._fields))
    rows = sa.select(BOUND_ORGANISATION, *given.c).order_by(given.c.month, given.c.iccid)
    insert = dialect.insert(CDR_SUM).from_select(["organisation", *SimAddition._fields], rows)
    more = insert.excluded
    figures = {name: CDR_SUM.c[name] + more[name] for name in ("bytes_up", "bytes_down", "bytes_total", "events")}
    words = {name: sa.case((CDR_SUM.c[name] == more[name], CDR_SUM.c[name])) for name in ("network", "country")}
    return insert.on_conflict_do_update(
        index_elements=["organisation", "month", "iccid"],
        set_={**figures, **words},
        where=CDR_SUM.c.bytes_total <= sa.bindparam("most", type_=sa.BigInteger) - more.bytes_total,
    )


def add_months_query(dialect: Dialect) -> sa.Executable:
    """The same for the whole months."""
    given = json_rows(dialect, "additions", "given", **column_kinds(CDR_MONTH, ("month", "bytes_total")))
    rows = sa.select(BOUND_ORGANISATION, *given.c).order_by(given.c.month)
    insert = dialect.insert(CDR_MONTH).from_select(["organisation", "month", "bytes_total"], rows)
    more = insert.excluded.bytes_total
    return insert.on_conflict_do_update(
        index_elements=["organisation", "month"],
        set_={"bytes_total": CDR_MONTH.c.bytes_total + more},
        where=CDR_MONTH.c.bytes_total <= sa.bindparam("most", type_=sa.BigInteger) - more,
    ).returning(CDR_MONTH.c.month)


ADD_TO_SUMS = Query(GrownSim, add_sums_query)

ADD_TO_MONTHS = Query(int, add_months_query)

SIM_MONTH_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(CDR_SUM.c[name] for name in SimMonth._fields)

IN_MONTH = (CDR_SUM.c.organisation == sa.bindparam("organisation")) & (CDR_SUM.c.month == sa.bindparam("month"))

LIST_SIM_MONTHS = Query(SimMonth, lambda _: sa.select(*SIM_MONTH_COLUMNS).where(IN_MONTH).order_by(CDR_SUM.c.iccid))

LIST_SOME_SIM_MONTHS = Query(
    SimMonth,
    lambda dialect: (
        sa.select(*SIM_MONTH_COLUMNS).where(IN_MONTH, CDR_SUM.c.iccid.in_(bound_list(dialect, "iccids"))).order_by(CDR_SUM.c.iccid)
    ),
)

LIST_LARGEST_SIMS = Query(
    SimMonth,
    sa.select(*SIM_MONTH_COLUMNS).where(IN_MONTH).order_by(CDR_SUM.c.bytes_total.desc(), CDR_SUM.c.iccid).limit(sa.bindparam("most")),
)

FIND_SIM_MONTH = Query(SimMonth, lambda _: sa.select(*SIM_MONTH_COLUMNS).where(IN_MONTH, CDR_SUM.c.iccid == sa.bindparam("iccid")))

FIND_MONTH_TOTAL = Query(
    int,
    lambda _: sa.select(CDR_MONTH.c.bytes_total).where(
        CDR_MONTH.c.organisation == sa.bindparam("organisation"), CDR_MONTH.c.month == sa.bindparam("month")
    ),
)


def add_to_sums(connection: Connection, *, organisation: str, additions: Sequence[SimAddition]) -> set[tuple[int, str]]:
    """Add to the SIMs' months, which are given in order; returns those that took it. The others would become too large."""
    rows = connection.all(ADD_TO_SUMS, organisation=organisation, additions=pack_rows([tuple(row) for row in additions]), most=MOST_OF_SIM)
    return {(row.month, row.iccid) for row in rows}


def add_to_months(connection: Connection, *, organisation: str, additions: Iterable[tuple[int, int]]) -> set[int]:
    """Add bytes to whole months, which are given in order; returns those that took it."""
    given = pack_rows(list(additions))
    return set(connection.all(ADD_TO_MONTHS, organisation=organisation, additions=given, most=MOST_OF_MONTH))


def sim_month_slices(
    connection: Connection, *, organisation: str, month: int, size: int, iccids: Sequence[str] | None = None
) -> Iterator[list[SimMonth]]:
    """Every SIM of a month, or those of `iccids` that have records, in the order of the ICCIDs: at most `size` at a time, as one statement
    sees them."""
    if iccids is None:
        return connection.slices(LIST_SIM_MONTHS, size, organisation=organisation, month=month)
    return connection.slices(
        LIST_SOME_SIM_MONTHS, size, organisation=organisation, month=month, iccids=pack_rows([(iccid,) for iccid in iccids])
    )


def largest_sims_of_month(connection: Connection, *, organisation: str, month: int, most: int) -> MonthSums:
    """The `most` SIMs with the most bytes, largest first; `bytes_total` is of all SIMs. `month`: YYYYMM."""
    total = connection.first(FIND_MONTH_TOTAL, organisation=organisation, month=month)
    return MonthSums(total or 0, connection.all(LIST_LARGEST_SIMS, organisation=organisation, month=month, most=most))


def sim_of_month(connection: Connection, *, organisation: str, month: int, iccid: str) -> MonthSums:
    """One SIM of a month alone; `bytes_total` is its own. `month`: YYYYMM."""
    lines = connection.all(FIND_SIM_MONTH, organisation=organisation, month=month, iccid=iccid)
    return MonthSums(sum(line.bytes_up + line.bytes_down for line in lines), lines)
