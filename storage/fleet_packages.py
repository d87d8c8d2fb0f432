"""The packages of a fleet's lines, and the series that make them, as they were last read."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import CLUSTERED, BigInt, Command, Connection, Query, TableDescription, bound_list, pack_rows


class FleetPackageRow(NamedTuple):
    """A package of a line, or (`series` 1) a series that makes packages. Bytes of data; `price` in micro-euro: what the customer pays.

    `active`: 0 where it is blocked, or the series stopped. `starts`, `ends`: Unix seconds, 0: not yet. `facts`: JSON of the wire's row,
    without names.
    """

    series: int
    id: BigInt
    template_id: BigInt
    zone_id: BigInt
    active: int
    starts: float
    ends: float
    data_limit: BigInt
    data_used: BigInt
    price: BigInt
    facts: str


class FleetPackageTable(TableDescription, row=FleetPackageRow, table=True):
    """A package or series of a line that can still matter."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id", "series", "id"), CLUSTERED)


FLEET_PACKAGE = FleetPackageTable.table

OF_PACKAGE_LINE = sa.and_(
    FLEET_PACKAGE.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
    FLEET_PACKAGE.c.subscriber_id == sa.bindparam("subscriber_id", type_=sa.BigInteger),
)

DROP_PACKAGES_OF_LINE = Command(lambda _: sa.delete(FLEET_PACKAGE).where(OF_PACKAGE_LINE))

INSERT_FLEET_PACKAGE = Command(
    lambda _: sa.insert(FLEET_PACKAGE).values({name: sa.bindparam(name) for name in ("fleet", "subscriber_id", *FleetPackageRow._fields)})
)

PACKAGES_OF_LINE = Query(
    FleetPackageRow,
    sa.select(*(FLEET_PACKAGE.c[name] for name in FleetPackageRow._fields))
    .where(OF_PACKAGE_LINE)
    .order_by(FLEET_PACKAGE.c.series, FLEET_PACKAGE.c.id),
)


def replace_packages(
    connection: Connection, *, fleet: int, subscriber_id: int, packages: Sequence[FleetPackageRow]
) -> list[FleetPackageRow]:
    """Stores `packages` as all that the line has; what it had before. Rows that are as they were are not written again."""
    before = connection.all(PACKAGES_OF_LINE, fleet=fleet, subscriber_id=subscriber_id)
    if before == list(packages):
        return before
    of_line = {"fleet": fleet, "subscriber_id": subscriber_id}
    connection.run(DROP_PACKAGES_OF_LINE, **of_line)
    connection.run_many(INSERT_FLEET_PACKAGE, [{**of_line, **row._asdict()} for row in packages])
    return before


def packages_of_line(connection: Connection, *, fleet: int, subscriber_id: int) -> list[FleetPackageRow]:
    """The packages of a line by id, then its series."""
    return connection.all(PACKAGES_OF_LINE, fleet=fleet, subscriber_id=subscriber_id)


class PackageOfLine(NamedTuple):
    """A package of a line."""

    subscriber_id: int
    series: int
    id: int
    template_id: int
    zone_id: int
    active: int
    starts: float
    ends: float
    data_limit: int
    data_used: int
    price: int
    facts: str


PACKAGES_TO_COME = Query(
    PackageOfLine,
    lambda dialect: sa.select(*(FLEET_PACKAGE.c[name] for name in PackageOfLine._fields)).where(
        FLEET_PACKAGE.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
        FLEET_PACKAGE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
        sa.or_(FLEET_PACKAGE.c.series == 1, FLEET_PACKAGE.c.starts > sa.bindparam("now", type_=sa.Double)),
    ),
)


def packages_to_come(connection: Connection, *, fleet: int, numbers: Sequence[int], now: float) -> dict[int, list[FleetPackageRow]]:
    """The series of some lines, and their packages that begin after `now` (Unix seconds), by subscriber id."""
    found: dict[int, list[FleetPackageRow]] = {}
    for row in connection.all(PACKAGES_TO_COME, fleet=fleet, numbers=pack_rows([[number] for number in numbers]), now=now):
        found.setdefault(row.subscriber_id, []).append(FleetPackageRow(*row[1:]))
    return found


PACKAGES_OF_LINES = Query(
    PackageOfLine,
    lambda dialect: (
        sa.select(*(FLEET_PACKAGE.c[name] for name in PackageOfLine._fields))
        .where(
            FLEET_PACKAGE.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
            FLEET_PACKAGE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
        )
        .order_by(FLEET_PACKAGE.c.subscriber_id, FLEET_PACKAGE.c.series, FLEET_PACKAGE.c.id)
    ),
)


def packages_of_lines(connection: Connection, *, fleet: int, numbers: Sequence[int]) -> dict[int, list[FleetPackageRow]]:
    """The packages of some lines, by subscriber id, each line's by id, then its series."""
    found: dict[int, list[FleetPackageRow]] = {number: [] for number in numbers}
    for row in connection.all(PACKAGES_OF_LINES, fleet=fleet, numbers=pack_rows([[number] for number in numbers])):
        found[row.subscriber_id].append(FleetPackageRow(*row[1:]))
    return found
