"""Packages that operations of ours other than a draw put on lines: a draw whose answer was lost did not make them."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    Connection,
    Query,
    StatementBuild,
    TableDescription,
    bound_list,
    changes_rows,
    delete_oldest,
    insert_once,
    pack_rows,
    writes,
)


class PlacedPackageTable(TableDescription, table=True):
    """A package that somebody put on a line they named, through us: no draw whose answer was lost made it."""

    package_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    placed: float = Field(index=True)


PLACED_PACKAGE = PlacedPackageTable.table

PLACED_PACKAGES_AMONG = Query(
    int,
    lambda dialect: sa.select(PLACED_PACKAGE.c.package_id).where(
        PLACED_PACKAGE.c.package_id.in_(bound_list(dialect, "packages", sa.BigInteger))
    ),
)


@writes
def insert_placed_package(*, package_id: int, now: float) -> StatementBuild:
    """Remember that a package was put on a line that somebody named. `now`: Unix seconds."""
    return insert_once(PLACED_PACKAGE, key=["package_id"], package_id=package_id, placed=now)


def placed_packages_among(connection: Connection, *, packages: Sequence[int]) -> frozenset[int]:
    """Those of `packages` that were put on a line that somebody named."""
    return frozenset(connection.all(PLACED_PACKAGES_AMONG, packages=pack_rows([[id] for id in packages]))) if packages else frozenset()


@changes_rows
def sweep_placed_packages(*, before: float, most: int) -> sa.Executable:
    """Delete the oldest rows that no draw is compared with any more; returns how many. `before`: Unix seconds."""
    return delete_oldest(PLACED_PACKAGE, PLACED_PACKAGE.c.placed < before, PLACED_PACKAGE.c.placed, most)
