"""The parts that an account with many lines is read by, for each organisation that reads it: hints, which live answers correct."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Command, Connection, Key, Query, TableDescription, upsert, writes


class ListingRow(NamedTuple):
    """An account: how many lines it has, and since when that is known. Times are Unix seconds."""

    lines: int
    complete: int
    read: float
    checked: Annotated[float, Field(index=True)]


class AccountListingTable(TableDescription, row=ListingRow, table=True):
    """What is known of an account with more lines than one answer of the charging system lists. Only hints: rows are always read live.

    `lines` is how many there were, `complete` 0 or 1 whether the parts hold all of them; `read`: when they were all read; `checked`:
    when the charging system last counted as many; 0: lines were moved since. `credential` is a digest of the token that reads it.
    """

    organisation: str = Field(primary_key=True)
    credential: str = Field(primary_key=True)
    account_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})


class PartMembers(NamedTuple):
    prefix: Key
    lowest: BigInt
    highest: BigInt
    lines: int
    read: float
    changed: float
    members: str


class AccountPartTable(TableDescription, row=PartMembers, table=True):
    """The lines of such an account whose ICCIDs begin alike: from the lowest to the highest subscriber id, and `members` as JSON.

    `read`: when the whole part was read last; `changed`: when the row was written, so that a process knows whether it has these members.
    """

    organisation: str = Field(primary_key=True)
    credential: str = Field(primary_key=True)
    account_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})


ACCOUNT_LISTING = AccountListingTable.table

ACCOUNT_PART = AccountPartTable.table


class AccountPlace(NamedTuple):
    """Which account, read by whom: `credential` is a digest of the token."""

    organisation: str
    credential: str
    account_id: int


class PartRow(NamedTuple):
    """A part without its members."""

    prefix: str
    lowest: int
    highest: int
    lines: int
    read: float
    changed: float


ACCOUNT_PLACE_FIELDS = AccountPlace._fields

OF_LISTING = tuple(ACCOUNT_LISTING.c[name] == sa.bindparam(name) for name in ACCOUNT_PLACE_FIELDS)

OF_PART = tuple(ACCOUNT_PART.c[name] == sa.bindparam(name) for name in ACCOUNT_PLACE_FIELDS)

FIND_LISTING = Query(ListingRow, lambda _: sa.select(*(ACCOUNT_LISTING.c[name] for name in ListingRow._fields)).where(*OF_LISTING))

FIND_PARTS = Query(
    PartRow,
    sa.select(*(ACCOUNT_PART.c[name] for name in PartRow._fields)).where(*OF_PART).order_by(ACCOUNT_PART.c.lowest, ACCOUNT_PART.c.prefix),
)

FIND_MEMBERS = Query(
    PartMembers,
    sa.select(*(ACCOUNT_PART.c[name] for name in PartMembers._fields)).where(*OF_PART, ACCOUNT_PART.c.prefix == sa.bindparam("prefix")),
)

PUT_LISTING = Command(upsert(ACCOUNT_LISTING, (*ACCOUNT_PLACE_FIELDS, *ListingRow._fields), key=ACCOUNT_PLACE_FIELDS))

PUT_PART = Command(upsert(ACCOUNT_PART, (*ACCOUNT_PLACE_FIELDS, *PartMembers._fields), key=(*ACCOUNT_PLACE_FIELDS, "prefix")))

COUNT_PARTS = Command(lambda _: sa.update(ACCOUNT_LISTING).where(*OF_LISTING).values(lines=sa.bindparam("lines")))

DROP_LISTING = Command(lambda _: sa.delete(ACCOUNT_LISTING).where(*OF_LISTING))

DROP_PARTS = Command(lambda _: sa.delete(ACCOUNT_PART).where(*OF_PART))

DROP_PART = Command(lambda _: sa.delete(ACCOUNT_PART).where(*OF_PART, ACCOUNT_PART.c.prefix == sa.bindparam("prefix")))

SWEEP_PARTS = Command(
    lambda _: sa.delete(ACCOUNT_PART).where(
        sa.exists(
            sa.select(ACCOUNT_LISTING.c.lines).where(
                *(ACCOUNT_LISTING.c[name] == ACCOUNT_PART.c[name] for name in ACCOUNT_PLACE_FIELDS),
                ACCOUNT_LISTING.c.read < sa.bindparam("before"),
                ACCOUNT_LISTING.c.checked < sa.bindparam("before"),
            )
        )
    )
)

SWEEP_LISTINGS = Command(
    sa.delete(ACCOUNT_LISTING).where(ACCOUNT_LISTING.c.read < sa.bindparam("before"), ACCOUNT_LISTING.c.checked < sa.bindparam("before"))
)


class StoredParts(NamedTuple):
    """What is known of an account, its parts by their lowest subscriber id; no `listing`: nothing."""

    listing: ListingRow | None = None
    parts: Sequence[PartRow] = ()


def find_parts(connection: Connection, *, place: AccountPlace) -> StoredParts:
    """The listing and the parts that are stored of the account `place`, parts without their members."""
    row = connection.first(FIND_LISTING, **place._asdict())
    return StoredParts() if row is None else StoredParts(row, connection.all(FIND_PARTS, **place._asdict()))


def members_of_parts(connection: Connection, *, place: AccountPlace, prefixes: Sequence[str]) -> list[PartMembers]:
    """The parts of `place` with these `prefixes`, with their members; one that is gone is left out."""
    found = (connection.first(FIND_MEMBERS, **place._asdict(), prefix=prefix) for prefix in prefixes)
    return [part for part in found if part is not None]


def store_all_parts(connection: Connection, *, place: AccountPlace, listing: ListingRow, parts: Sequence[PartMembers]) -> None:
    """Store the account as it was just read, in the place of what was stored."""
    connection.run(PUT_LISTING, **place._asdict(), **listing._asdict())
    connection.run(DROP_PARTS, **place._asdict())
    connection.run_many(PUT_PART, [{**place._asdict(), **part._asdict()} for part in parts])


def store_parts(connection: Connection, *, place: AccountPlace, lines: int, gone: Sequence[str], parts: Sequence[PartMembers]) -> None:
    """Some parts as they were just read, in the place of those that are `gone`; `lines` is how many the account has with them."""
    if connection.run(COUNT_PARTS, **place._asdict(), lines=lines) == 0:
        return
    connection.run_many(DROP_PART, [{**place._asdict(), "prefix": prefix} for prefix in gone])
    connection.run_many(PUT_PART, [{**place._asdict(), **part._asdict()} for part in parts])


@writes
def check_parts(*, place: AccountPlace, checked: float) -> sa.Executable:
    """The charging system counted as many lines at this time (Unix seconds). 0: lines were moved, so that the count has to be asked for."""
    return sa.update(ACCOUNT_LISTING).where(*OF_LISTING).values(checked=checked)


def drop_parts(connection: Connection, *, place: AccountPlace) -> None:
    """Delete what is stored of an account, because one answer lists all of it now."""
    connection.run(DROP_LISTING, **place._asdict())
    connection.run(DROP_PARTS, **place._asdict())


def sweep_parts(connection: Connection, *, before: float) -> int:
    """Delete accounts that nobody has read since `before` (Unix seconds); returns how many."""
    connection.run(SWEEP_PARTS, before=before)
    return connection.run(SWEEP_LISTINGS, before=before)
