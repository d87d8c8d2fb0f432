"""The audit log of reads and refusals: all that a whole row says, in a tenth of its room.

Each read writes a row, so that they are most of a database. What repeats (organisation, operation, principal, key, outcome, surface) is a
number of `audit_name`; the time is in the id, in milliseconds; a request id of ours is its 16 bytes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import ALPHABET, base32
from registry.ports import Line
from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import AuditNameTable, AuditReadTable, PersonTable
from storage.statement import Command, Dialect, Query, Value, selective, table

READ, NAME, PERSON = table(AuditReadTable), table(AuditNameTable), table(PersonTable)
NUMBER_BITS = 19
NUMBERS = 1 << NUMBER_BITS
"""Rows of one millisecond that can be told apart."""
FIRST_READ = 1 << 40
"""Ids of whole rows are below, those of reads above: they begin with the milliseconds."""
REQUEST, REQUEST_CHARACTERS = "req_", 26
LONGEST = (1 << 31) - 1
LATEST = 1.6e10  # whose id is just within 64 bits
REPEATING = ("organisation", "operation", "principal", "key", "outcome", "surface")


class NameRow(NamedTuple):
    """A text and its number."""

    id: int
    text: str


class NamedText(NamedTuple):
    """A text, its number, and what the person is called whose id it is."""

    id: int
    text: str
    name: str | None


class ReadRow(NamedTuple):
    """A read as it is kept: numbers of texts."""

    id: int
    organisation: int
    operation: int
    principal: int
    key: int
    outcome: int
    surface: int
    microseconds: int
    status: int
    request: bytes


class ReadId(NamedTuple):
    """A read that is there."""

    id: int


class OldReads(NamedTuple):
    """An organisation that has old reads, by its number."""

    organisation: int


class NumberedLine(NamedTuple):
    """A line that waits to be written. `number` keeps lines of one millisecond apart, and in their order."""

    number: int
    line: Line


def known(dialect: Dialect) -> sa.Executable:
    """The numbers of the texts that have one."""
    return sa.select(NAME.c.id, NAME.c.text).where(NAME.c.text.in_(sa.select(listed(dialect, "texts", "given", text=sa.Text).c.text)))


KNOWN = Query(NameRow, known)
ADD_NAME = Command(lambda dialect: dialect.insert(NAME).values(text=sa.bindparam("text")).on_conflict_do_nothing(index_elements=["text"]))
# Of two processes whose reads of one organisation have the same millisecond and number the first stays. Choice: it is one in a million
# where a thousand reads come in a second, and a second try would need a lock.
INSERT = Command(
    lambda dialect: (
        dialect.insert(READ)
        .values({column.name: sa.bindparam(column.name) for column in READ.c})
        .on_conflict_do_nothing(index_elements=["organisation", "id"])
    )
)


def texts(dialect: Dialect) -> sa.Executable:
    """The texts of these numbers, each with the name of the person it is, if it is one."""
    numbers = sa.select(listed(dialect, "numbers", "given", id=sa.Integer).c.id)
    return (
        sa.select(NAME.c.id, NAME.c.text, PERSON.c.name)
        .join_from(NAME, PERSON, PERSON.c.id == NAME.c.text, isouter=True)
        .where(NAME.c.id.in_(numbers))
    )


TEXTS = Query(NamedText, texts)


def page_of(filters: Sequence[str]) -> Query[ReadRow]:
    """The page of an organisation with these filters, newest first. Its bounds are ids: the first is included, the other is not."""
    return Query(
        ReadRow,
        lambda dialect: (
            sa.select(*(READ.c[name] for name in ReadRow._fields))
            .where(
                READ.c.organisation == sa.bindparam("organisation", type_=sa.Integer),
                READ.c.id >= sa.bindparam("first", type_=sa.BigInteger),
                READ.c.id < sa.bindparam("last", type_=sa.BigInteger),
                *(selective(dialect, READ.c[name] == sa.bindparam(name, type_=sa.Integer)) for name in filters),
            )
            .order_by(READ.c.id.desc())
            .limit(sa.bindparam("most"))
        ),
    )


FIND = Query(
    ReadId,
    sa.select(READ.c.id).where(
        READ.c.organisation == sa.bindparam("organisation", type_=sa.Integer), READ.c.id == sa.bindparam("row", type_=sa.BigInteger)
    ),
)
OLD = READ.c.id < sa.bindparam("last", type_=sa.BigInteger)
# One look for each organisation: the key begins with it.
NEXT_OLD = Query(
    OldReads,
    sa.select(READ.c.organisation)
    .where(READ.c.organisation > sa.bindparam("after", type_=sa.Integer))
    .order_by(READ.c.organisation)
    .limit(1),
)
OLDEST = (
    sa.select(READ.c.id)
    .where(READ.c.organisation == sa.bindparam("of", type_=sa.Integer), OLD)
    .order_by(READ.c.id)
    .limit(sa.bindparam("most"))
)
SWEEP = Command(sa.delete(READ).where(READ.c.organisation == sa.bindparam("of", type_=sa.Integer), READ.c.id.in_(OLDEST)))


def first_read(at: float) -> int:
    """The smallest id of reads that began at this moment (Unix seconds) or later."""
    return math.ceil(min(max(at, 0.0), LATEST) * 1000) << NUMBER_BITS


def read_id(at: float, number: int) -> int:
    """The id of a read."""
    return int(at * 1000) << NUMBER_BITS | number % NUMBERS


def moment_of(id: int) -> float:
    """When a read began, Unix seconds."""
    return (id >> NUMBER_BITS) / 1000


def packed_request(request_id: str) -> bytes:
    """A request id of ours as 16 bytes; any other as its text, never 16 bytes long."""
    digits = request_id.removeprefix(REQUEST)
    if len(request_id) == len(REQUEST) + REQUEST_CHARACTERS and set(digits) <= set(ALPHABET):
        number = 0
        for digit in digits:
            number = number << 5 | ALPHABET.index(digit)
        if number < 1 << 128 and REQUEST + base32(number) == request_id:
            return number.to_bytes(16)
    text = request_id.encode()
    return text + b"\n" if len(text) == 16 else text


def unpacked_request(request: bytes) -> str:
    """The request id."""
    return REQUEST + base32(int.from_bytes(request)) if len(request) == 16 else request.decode().removesuffix("\n")


def texts_of(line: Line) -> dict[str, str]:
    """What of a line is kept as numbers."""
    return {name: getattr(line, "key_id" if name == "key" else name) for name in REPEATING}


def numbers_of(connection: Connection, texts: set[str]) -> Mapping[str, int]:
    """The numbers of these texts; those that have none get one."""
    found = known_numbers(connection, texts)
    missing = sorted(texts - found.keys())
    if missing:
        connection.run_many(ADD_NAME, [{"text": text} for text in missing])
        found = known_numbers(connection, texts)
    return found


def known_numbers(connection: Connection, texts: set[str]) -> Mapping[str, int]:
    """The numbers of those of these texts that have one."""
    return {row.text: row.id for row in connection.all(KNOWN, texts=packed([[text] for text in sorted(texts)]))}


def append_reads(connection: Connection, *, lines: Sequence[NumberedLine]) -> None:
    """The buffered rows of reads and refusals."""
    numbers = numbers_of(connection, {text for each in lines for text in texts_of(each.line).values()})
    connection.run_many(INSERT, [row_of(each, numbers) for each in lines])


def row_of(each: NumberedLine, numbers: Mapping[str, int]) -> dict[str, Value]:
    """A line as it is kept."""
    line = each.line
    return {
        **{name: numbers[text] for name, text in texts_of(line).items()},
        "id": read_id(line.at, each.number),
        "microseconds": min(round(line.milliseconds * 1000), LONGEST),
        "status": line.status,
        "request": packed_request(line.request_id),
    }


def texts_of_reads(connection: Connection, rows: Sequence[ReadRow]) -> Mapping[int, NamedText]:
    """The texts of these reads by their numbers.

    Choice: a second statement, since PostgreSQL plans a join of seven longer than it runs.
    """
    numbers = {number for row in rows for number in row[1:7]}
    found = connection.all(TEXTS, numbers=packed([[number] for number in sorted(numbers)])) if rows else []
    return {each.id: each for each in found}


def has_read(connection: Connection, *, organisation: str, row: int) -> bool:
    """Whether the organisation has a read with this id."""
    number = known_numbers(connection, {organisation}).get(organisation)
    return number is not None and connection.first(FIND, organisation=number, row=row) is not None


def list_reads(
    connection: Connection, *, page: Query[ReadRow], wanted: Mapping[str, str], first: int, last: int, most: int
) -> list[ReadRow]:
    """A page of reads, newest first. `wanted`: the organisation and each filter by its name. What no read ever had is not looked for."""
    numbers = known_numbers(connection, set(wanted.values()))
    if not numbers.keys() >= set(wanted.values()):
        return []
    return connection.all(page, **{name: numbers[text] for name, text in wanted.items()}, first=first, last=last, most=most)


def next_organisation(connection: Connection, *, after: int) -> int | None:
    """The number of the next organisation that has reads."""
    found = connection.first(NEXT_OLD, after=after)
    return None if found is None else found.organisation


def sweep_reads(connection: Connection, *, organisation: int, before: float, most: int) -> int:
    """Remove the oldest reads of an organisation, by its number. `before`: Unix seconds."""
    return connection.run(SWEEP, of=organisation, last=first_read(before), most=most)
