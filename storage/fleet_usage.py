"""What the lines of a fleet used: a row for each line, UTC day, network and kind of use, in whole bytes, seconds, messages and micro-euro.

Days are proleptic ordinals (1 is 0001-01-01). What the charging system's own total of a day says beyond its records stands in a row of
network 0-0 and kind 0, so that sums of rows are its totals. A month that is older than the days is one row of its first day and kind
as before, in a table of its own.

What all lines together used on a day in a network is kept beside the rows of lines, in the commit that writes these: millions of rows
could not be grouped while somebody waits.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Query,
    TableDescription,
    all_rows,
    bound_list,
    column_kinds,
    insert_once,
    json_rows,
    pack_rows,
)

KEPT_USAGE_DAYS = 90
KEPT_USAGE_MONTHS = 13


class FleetUsageRow(NamedTuple):
    """The use of one kind on one day in one network. `kind`: usage type of the wire (33 data, 1 calls, ...).

    `quantity` in bytes, seconds or messages, `covered` the part of it that a package paid for. Micro-euro: `network_cost` is what the
    operator pays the network, `usage_income` what the customer was charged.
    """

    day: int
    mcc: int
    mnc: int
    kind: int
    quantity: BigInt
    covered: BigInt
    network_cost: BigInt
    usage_income: BigInt


class FleetUsageTable(TableDescription, row=FleetUsageRow, table=True):
    """What a line used on a day in a network."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id", "day", "mcc", "mnc", "kind"), CLUSTERED)


class FleetMonthTable(TableDescription, row=FleetUsageRow, table=True):
    """What a line used in a month in a network; `day` is the first of the month."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id", "day", "mcc", "mnc", "kind"), CLUSTERED)


class FleetDayRow(NamedTuple):
    """The use of one kind by all lines that are there, on one day in one network: how many rows of lines it is made of, and their money.

    `free`: how many of these rows are of use that the network charged nothing for.
    """

    day: int
    mcc: int
    mnc: int
    kind: int
    uses: BigInt
    free: BigInt
    network_cost: BigInt
    usage_income: BigInt


class FleetDayTable(TableDescription, row=FleetDayRow, table=True):
    """What the lines of a fleet used on a day in a network, together."""

    fleet: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "day", "mcc", "mnc", "kind"), CLUSTERED)


class FleetNetworkRow(NamedTuple):
    """A network that lines were seen on: its country, upper case, and its operator as the charging system writes it."""

    mcc: int
    mnc: int
    country: str
    operator: str


class FleetNetworkTable(TableDescription, row=FleetNetworkRow, table=True):
    """A network that lines of a fleet used."""

    fleet: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "mcc", "mnc"), CLUSTERED)


FLEET_USAGE = FleetUsageTable.table

FLEET_MONTH = FleetMonthTable.table

FLEET_DAY = FleetDayTable.table

FLEET_NETWORK = FleetNetworkTable.table

OF_USAGE_LINE = sa.and_(
    FLEET_USAGE.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
    FLEET_USAGE.c.subscriber_id == sa.bindparam("subscriber_id", type_=sa.BigInteger),
)

IN_DAYS = sa.and_(FLEET_USAGE.c.day >= sa.bindparam("first", type_=sa.Integer), FLEET_USAGE.c.day <= sa.bindparam("last", type_=sa.Integer))

USAGE_OF_LINE = Query(
    FleetUsageRow,
    sa.select(*(FLEET_USAGE.c[name] for name in FleetUsageRow._fields))
    .where(OF_USAGE_LINE, IN_DAYS)
    .order_by(FLEET_USAGE.c.day, FLEET_USAGE.c.mcc, FLEET_USAGE.c.mnc, FLEET_USAGE.c.kind),
)

DROP_USAGE_OF_LINE = Command(lambda _: sa.delete(FLEET_USAGE).where(OF_USAGE_LINE, IN_DAYS))

INSERT_FLEET_USAGE = Command(
    lambda _: sa.insert(FLEET_USAGE).values({name: sa.bindparam(name) for name in ("fleet", "subscriber_id", *FleetUsageRow._fields)})
)

KNOW_NETWORK = Command(insert_once(FLEET_NETWORK, ("fleet", *FleetNetworkRow._fields), key=["fleet", "mcc", "mnc"]))


FLEET_DAY_SUMS = ("uses", "free", "network_cost", "usage_income")


def add_to_days(dialect: Dialect, rows: sa.Select[tuple[object, ...]]) -> sa.Executable:
    """Adds `rows`, with the columns of a day of the fleet, to what is there. Writers that meet take the rows in one order."""
    key = ("fleet", "day", "mcc", "mnc", "kind")
    adding = dialect.insert(FLEET_DAY).from_select([*key, *FLEET_DAY_SUMS], rows)
    sums = {name: FLEET_DAY.c[name] + adding.excluded[name] for name in FLEET_DAY_SUMS}
    return adding.on_conflict_do_update(index_elements=key, set_=sums)


def add_changes(dialect: Dialect) -> sa.Executable:
    fleet, given = sa.bindparam("fleet", type_=sa.BigInteger), json_rows(dialect, "changes", "given", **DAY_KINDS)
    # Choice: the condition tells SQLite's grammar where the select ends and ON CONFLICT begins.
    return add_to_days(dialect, sa.select(fleet, *(given.c[name] for name in FleetDayRow._fields)).where(sa.true()))


DAY_KINDS = column_kinds(FLEET_DAY, FleetDayRow._fields)

ADD_TO_DAYS = Command(add_changes)

IS_FREE = sa.and_(FLEET_USAGE.c.quantity > 0, FLEET_USAGE.c.network_cost == 0)


def take_lines(dialect: Dialect) -> sa.Executable:
    key = tuple(FLEET_USAGE.c[name] for name in ("fleet", "day", "mcc", "mnc", "kind"))
    sums = (
        -sa.func.count(),
        -sa.func.sum(sa.case((IS_FREE, 1), else_=0)),
        -sa.func.sum(FLEET_USAGE.c.network_cost),
        -sa.func.sum(FLEET_USAGE.c.usage_income),
    )
    of_lines = sa.and_(
        FLEET_USAGE.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
        FLEET_USAGE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
    )
    return add_to_days(dialect, sa.select(*key, *sums).where(of_lines).group_by(*key).order_by(*key))


TAKE_FROM_DAYS = Command(take_lines)


def day_changes(before: Iterable[FleetUsageRow], after: Iterable[FleetUsageRow]) -> list[FleetDayRow]:
    """What is to be added to the days of the fleet where a line's rows `before` become those `after`."""
    found: dict[tuple[int, int, int, int], list[int]] = {}
    for sign, rows in ((-1, before), (1, after)):
        for row in rows:
            sums = found.setdefault(row[:4], [0, 0, 0, 0])
            sums[0] += sign
            sums[1] += sign * (row.quantity > 0 and row.network_cost == 0)
            sums[2] += sign * row.network_cost
            sums[3] += sign * row.usage_income
    return [FleetDayRow(*key, *sums) for key, sums in found.items() if any(sums)]


def change_days(connection: Connection, *, fleet: int, changes: Iterable[FleetDayRow]) -> None:
    """Adds `changes` to what all lines used. Last in a transaction: whoever writes lines takes their rows first, and these in one order."""
    sums: dict[tuple[int, int, int, int], list[int]] = {}
    for change in changes:
        known = sums.setdefault(change[:4], [0, 0, 0, 0])
        for place, amount in enumerate(change[4:]):
            known[place] += amount
    packed = [[*key, *sums[key]] for key in sorted(sums)]
    if packed:
        connection.run(ADD_TO_DAYS, fleet=fleet, changes=pack_rows(packed))


def forget_use(connection: Connection, *, fleet: int, numbers: Sequence[int]) -> None:
    """Takes the use of lines that have just left out of what all lines used. Their own rows stay for as long as the lines do."""
    if numbers:
        connection.run(TAKE_FROM_DAYS, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))


def replace_usage(
    connection: Connection, *, fleet: int, subscriber_id: int, first: int, last: int, usage: Sequence[FleetUsageRow]
) -> list[FleetDayRow]:
    """Stores `usage` as all that the line used from day `first` to `last`. Rows that are as they were are not written again.

    Returns what `change_days` is to add to what all lines used, in the same transaction.
    """
    days = {"fleet": fleet, "subscriber_id": subscriber_id, "first": first, "last": last}
    known = connection.all(USAGE_OF_LINE, **days)
    if known == sorted(usage):
        return []
    if known:
        connection.run(DROP_USAGE_OF_LINE, **days)
    connection.run_many(INSERT_FLEET_USAGE, [{"fleet": fleet, "subscriber_id": subscriber_id, **row._asdict()} for row in usage])
    return day_changes(known, usage)


def usage_of_line(connection: Connection, *, fleet: int, subscriber_id: int, first: int, last: int) -> list[FleetUsageRow]:
    """What a line used from day `first` to `last`, in the order of days."""
    return connection.all(USAGE_OF_LINE, fleet=fleet, subscriber_id=subscriber_id, first=first, last=last)


class UsageOfLine(NamedTuple):
    """A row of use, and the line that it is of; the fields are those of FleetUsageRow."""

    subscriber_id: int
    day: int
    mcc: int
    mnc: int
    kind: int
    quantity: int
    covered: int
    network_cost: int
    usage_income: int


USAGE_OF_LINES = Query(
    UsageOfLine,
    lambda dialect: (
        sa.select(*(FLEET_USAGE.c[name] for name in UsageOfLine._fields))
        .where(
            FLEET_USAGE.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
            FLEET_USAGE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
            IN_DAYS,
        )
        .order_by(FLEET_USAGE.c.subscriber_id, FLEET_USAGE.c.day, FLEET_USAGE.c.mcc, FLEET_USAGE.c.mnc, FLEET_USAGE.c.kind)
    ),
)


def usage_of_lines(connection: Connection, *, fleet: int, numbers: Sequence[int], first: int, last: int) -> dict[int, list[FleetUsageRow]]:
    """What the lines with these subscriber ids used from day `first` to `last`, by line, each in the order of days."""
    found: dict[int, list[FleetUsageRow]] = {number: [] for number in numbers}
    packed = pack_rows([[number] for number in numbers])
    for row in connection.all(USAGE_OF_LINES, fleet=fleet, numbers=packed, first=first, last=last):
        found[row.subscriber_id].append(FleetUsageRow(*row[1:]))
    return found


def know_networks(connection: Connection, *, fleet: int, networks: Sequence[FleetNetworkRow]) -> None:
    """Remembers what networks are called; the first name that was told stays."""
    connection.run_many(KNOW_NETWORK, [{"fleet": fleet, **row._asdict()} for row in networks])


@all_rows(FleetNetworkRow)
def networks_of_fleet(*, fleet: int) -> sa.Executable:
    """The networks that lines of the fleet used."""
    return sa.select(*(FLEET_NETWORK.c[name] for name in FleetNetworkRow._fields)).where(FLEET_NETWORK.c.fleet == fleet)
