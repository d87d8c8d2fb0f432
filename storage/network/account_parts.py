"""The parts that an account with many lines is read by, for each organisation that reads it: hints, which live answers correct."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.database_state import TableName, named
from storage.network.network_tables import AccountListingTable, AccountPartTable
from storage.statement import Command, Query, table

LISTING, PART = table(AccountListingTable), table(AccountPartTable)


class AccountPlace(NamedTuple):
    """Which account, read by whom: `credential` is a digest of the token."""

    organisation: str
    credential: str
    account_id: int


class ListingRow(NamedTuple):
    """An account: how many lines it has, and since when that is known. Times are Unix seconds."""

    lines: int
    complete: int
    read: float
    checked: float


class PartRow(NamedTuple):
    """A part without its members."""

    prefix: str
    lowest: int
    highest: int
    lines: int
    read: float
    changed: float


class PartMembers(NamedTuple):
    """A part with its members, as JSON."""

    prefix: str
    lowest: int
    highest: int
    lines: int
    read: float
    changed: float
    members: str


PLACE = AccountPlace._fields
LISTING_TABLES = Query(TableName, named(LISTING.name))
OF_LISTING = tuple(LISTING.c[name] == sa.bindparam(name) for name in PLACE)
OF_PART = tuple(PART.c[name] == sa.bindparam(name) for name in PLACE)
FIND_LISTING = Query(ListingRow, sa.select(*(LISTING.c[name] for name in ListingRow._fields)).where(*OF_LISTING))
FIND_PARTS = Query(PartRow, sa.select(*(PART.c[name] for name in PartRow._fields)).where(*OF_PART).order_by(PART.c.lowest, PART.c.prefix))
FIND_MEMBERS = Query(
    PartMembers, sa.select(*(PART.c[name] for name in PartMembers._fields)).where(*OF_PART, PART.c.prefix == sa.bindparam("prefix"))
)
KEEP_LISTING = Command(
    lambda dialect: (
        dialect.insert(LISTING)
        .values({name: sa.bindparam(name) for name in (*PLACE, *ListingRow._fields)})
        .on_conflict_do_update(index_elements=list(PLACE), set_={name: sa.bindparam(name) for name in ListingRow._fields})
    )
)
KEEP_PART = Command(
    lambda dialect: (
        dialect.insert(PART)
        .values({name: sa.bindparam(name) for name in (*PLACE, *PartMembers._fields)})
        .on_conflict_do_update(
            index_elements=[*PLACE, "prefix"], set_={name: sa.bindparam(name) for name in PartMembers._fields if name != "prefix"}
        )
    )
)
COUNT_PARTS = Command(sa.update(LISTING).where(*OF_LISTING).values(lines=sa.bindparam("lines")))
CHECKED = Command(sa.update(LISTING).where(*OF_LISTING).values(checked=sa.bindparam("checked")))
DROP_LISTING = Command(sa.delete(LISTING).where(*OF_LISTING))
DROP_PARTS = Command(sa.delete(PART).where(*OF_PART))
DROP_PART = Command(sa.delete(PART).where(*OF_PART, PART.c.prefix == sa.bindparam("prefix")))
SWEEP_PARTS = Command(
    sa.delete(PART).where(
        sa.exists(
            sa.select(LISTING.c.lines).where(
                *(LISTING.c[name] == PART.c[name] for name in PLACE),
                LISTING.c.read < sa.bindparam("before"),
                LISTING.c.checked < sa.bindparam("before"),
            )
        )
    )
)
SWEEP_LISTINGS = Command(sa.delete(LISTING).where(LISTING.c.read < sa.bindparam("before"), LISTING.c.checked < sa.bindparam("before")))


class StoredParts(NamedTuple):
    """What is known of an account, its parts by their lowest subscriber id; no `listing`: nothing.

    `kept`: whether this database keeps such things at all. The schema before the one that brought the tables does not.
    """

    kept: bool
    listing: ListingRow | None = None
    parts: Sequence[PartRow] = ()


def are_kept(connection: Connection) -> bool:
    """Whether there are the tables: while servers are upgraded side by side there are none at first."""
    return connection.first(LISTING_TABLES) is not None


def find_parts(connection: Connection, *, place: AccountPlace) -> StoredParts:
    """What is known of an account."""
    if not are_kept(connection):
        return StoredParts(False)
    row = connection.first(FIND_LISTING, **place._asdict())
    return StoredParts(True) if row is None else StoredParts(True, row, connection.all(FIND_PARTS, **place._asdict()))


def members_of_parts(connection: Connection, *, place: AccountPlace, prefixes: Sequence[str]) -> list[PartMembers]:
    """These parts with their members; one that is gone is left out."""
    if not are_kept(connection):
        return []
    found = (connection.first(FIND_MEMBERS, **place._asdict(), prefix=prefix) for prefix in prefixes)
    return [part for part in found if part is not None]


def keep_all_parts(connection: Connection, *, place: AccountPlace, listing: ListingRow, parts: Sequence[PartMembers]) -> None:
    """The account as it was just read, in the place of what was known."""
    if not are_kept(connection):
        return
    connection.run(KEEP_LISTING, **place._asdict(), **listing._asdict())
    connection.run(DROP_PARTS, **place._asdict())
    connection.run_many(KEEP_PART, [{**place._asdict(), **part._asdict()} for part in parts])


def keep_parts(connection: Connection, *, place: AccountPlace, lines: int, gone: Sequence[str], parts: Sequence[PartMembers]) -> None:
    """Some parts as they were just read, in the place of those that are `gone`; `lines` is how many the account has with them."""
    if not are_kept(connection) or connection.run(COUNT_PARTS, **place._asdict(), lines=lines) == 0:
        return
    connection.run_many(DROP_PART, [{**place._asdict(), "prefix": prefix} for prefix in gone])
    connection.run_many(KEEP_PART, [{**place._asdict(), **part._asdict()} for part in parts])


def check_parts(connection: Connection, *, place: AccountPlace, checked: float) -> None:
    """The charging system counted as many lines at this time (Unix seconds). 0: lines were moved, so that the count has to be asked for."""
    if not are_kept(connection):
        return
    connection.run(CHECKED, **place._asdict(), checked=checked)


def drop_parts(connection: Connection, *, place: AccountPlace) -> None:
    """Forget an account: one answer lists all of it now."""
    if not are_kept(connection):
        return
    connection.run(DROP_LISTING, **place._asdict())
    connection.run(DROP_PARTS, **place._asdict())


def sweep_parts(connection: Connection, *, before: float) -> int:
    """Forget accounts that nobody has read since then; returns how many."""
    if not are_kept(connection):
        return 0
    connection.run(SWEEP_PARTS, before=before)
    return connection.run(SWEEP_LISTINGS, before=before)
