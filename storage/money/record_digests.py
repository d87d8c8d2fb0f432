"""Ids of call records that are not kept any more: a digest of each, so that none is ever counted a second time.

Choice: 20 bytes of BLAKE2b. By chance two of 10^12 ids agree in one of 10^24 databases, and to make two that agree takes 2^80 tries. With
16 bytes it would be 2^64, which large machines can do. The four bytes more are four on SQLite and none on PostgreSQL, which pads to eight.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.money.money_tables import CallRecordDigestTable
from storage.statement import Command, Dialect, Query, table

DIGEST = table(CallRecordDigestTable)
REVISION = "0023"
"""The schema from which on programs look here when they store records: nothing is removed beside an older one."""
SIZE = 20


class RecordKey(NamedTuple):
    """The organisation and id of a call record."""

    organisation: str
    event: str


class DigestOffset(NamedTuple):
    """Where in a text of digests one begins that is stored; the first byte is 1."""

    offset: int


def digest_of(organisation: str, event: str) -> bytes:
    """What an id is found by. Neither text holds a line feed."""
    return blake2b(f"{organisation}\n{event}".encode(), digest_size=SIZE).digest()


def digest_at(offset: sa.ColumnElement[int]) -> sa.ColumnElement[bytes]:
    """One of the digests that are bound one behind the other, since JSON has no bytes."""
    return sa.func.substr(sa.bindparam("digests", type_=sa.LargeBinary), offset, sa.literal_column(str(SIZE)), type_=sa.LargeBinary())


def inserting_digests(dialect: Dialect) -> sa.Executable:
    """Insert the digests that begin at the offsets."""
    given = listed(dialect, "offsets", "given", offset=sa.Integer)
    rows = sa.select(digest_at(given.c.offset)).order_by(given.c.offset)
    return dialect.insert(DIGEST).from_select(["digest"], rows).on_conflict_do_nothing(index_elements=["digest"])


def finding_digests(dialect: Dialect) -> sa.Executable:
    """The offsets whose digests are stored."""
    given = listed(dialect, "offsets", "given", offset=sa.Integer)
    return sa.select(given.c.offset).join_from(given, DIGEST, DIGEST.c.digest == digest_at(given.c.offset))


INSERT = Command(inserting_digests)
FIND = Query(DigestOffset, finding_digests)


def offsets_of(count: int) -> str:
    """The offsets of so many digests, as a value to bind."""
    return packed([[1 + place * SIZE] for place in range(count)])


def insert_digests(connection: Connection, *, records: Sequence[RecordKey]) -> None:
    """Remember the ids of records for ever."""
    digests = sorted(digest_of(*record) for record in records)
    connection.run(INSERT, digests=b"".join(digests), offsets=offsets_of(len(digests)))


def removed_ids(connection: Connection, *, organisation: str, events: Sequence[str]) -> list[str]:
    """Those of the ids whose records were stored once and removed."""
    digests = b"".join([digest_of(organisation, event) for event in events])
    found = connection.all(FIND, digests=digests, offsets=offsets_of(len(events)))
    return [events[row.offset // SIZE] for row in found]
