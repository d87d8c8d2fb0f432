"""Packages that operations of ours other than a draw put on lines: a draw whose answer was lost did not make them."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.network.network_tables import PlacedPackageTable
from storage.statement import Command, Query, table
from storage.sweep import oldest

PLACED = table(PlacedPackageTable)


class Placed(NamedTuple):
    """A package."""

    package_id: int


KEEP = Command(
    lambda dialect: (
        dialect.insert(PLACED)
        .values(package_id=sa.bindparam("package_id"), placed=sa.bindparam("now"))
        .on_conflict_do_nothing(index_elements=["package_id"])
    )
)
AMONG = Query(
    Placed,
    lambda dialect: sa.select(PLACED.c.package_id).where(
        PLACED.c.package_id.in_(sa.select(listed(dialect, "packages", "given", id=sa.BigInteger).c.id))
    ),
)
SWEEP = oldest(PLACED, PLACED.c.placed < sa.bindparam("before"), PLACED.c.placed)


def keep_placed(connection: Connection, *, package_id: int, now: float) -> None:
    """Remember that it was put on a line that somebody named."""
    connection.run(KEEP, package_id=package_id, now=now)


def placed_among(connection: Connection, *, packages: Sequence[int]) -> frozenset[int]:
    """Which of these were."""
    return (
        frozenset(row.package_id for row in connection.all(AMONG, packages=packed([[id] for id in packages]))) if packages else frozenset()
    )


def sweep_placed(connection: Connection, *, before: float, most: int) -> int:
    """Forget the oldest of those that no draw is compared with any more."""
    return connection.run(SWEEP, before=before, most=most)
