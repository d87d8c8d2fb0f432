"""The audit log: who called what, how it ended, how long it took. Never arguments, never secrets.

Writes are rows of one table, each in the transaction of its call; reads and refusals are short rows of another. A page is made of both.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple, cast

import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import BASE32_ALPHABET, base32
from registry.ports import AuditRecord
from registry.versions import ChangeAuthor, ChangeLookup
from storage.engine.drivers import Value
from storage.engine.partitions import History, PartitionBound
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Query,
    TableDescription,
    bound_list,
    changes_rows,
    first_row,
    insert_once,
    pack_rows,
)
from storage.people import PERSON

USUAL_OUTCOME, SUCCESSES = "ok", ("ok", "replayed")

NOT_OK_ROWS, REFUSED_ROWS = sa.text("outcome != 'ok'"), sa.text("status > 201")
"""The rows that the indexes of outcomes have. A refusal has a status of its own, the lowest 202; what is asked for and succeeds has 200 or
201 nearly always."""


class AuditPageKind(NamedTuple):
    """What a statement that reads a page looks for: the filters that are given; `rare`: an outcome of the rows above, by their index."""

    filters: frozenset[str]
    rare: bool = False


class AuditNameTable(TableDescription, table=True):
    """A text that repeats in the audit log of reads: an organisation's id, a person's, a key's, an operation, an outcome or a surface."""

    id: int | None = Field(primary_key=True)
    text: str
    __table_args__ = (sa.Index("audit_name_text", "text", unique=True),)


class AuditReadRow(NamedTuple):
    """A read as it is kept: numbers of texts."""

    id: BigInt
    organisation: int
    operation: int
    principal: int
    key: int
    outcome: int
    surface: int
    microseconds: int
    status: Annotated[int, Field(sa_type=sa.SmallInteger)]
    request: bytes


class AuditReadTable(TableDescription, row=AuditReadRow, table=True):
    """A read, or a refusal, in short: the numbers of its texts. `id` begins with the milliseconds.

    Choice: two indexes of all rows beside the key and no more, since each is as large as a third of a row. So the reads of an operation or
    with a key are looked up, and those of a person or a surface are looked for among the organisation's. What was refused is a small part,
    which an index of its own has.
    """

    __table_args__ = (
        sa.PrimaryKeyConstraint("organisation", "id"),
        sa.Index("audit_read_operation", "organisation", "operation", "id"),
        sa.Index("audit_read_key", "organisation", "key", "id"),
        sa.Index("audit_read_outcome", "organisation", "outcome", "id", sqlite_where=REFUSED_ROWS),
        CLUSTERED,
    )


class AuditRow(NamedTuple):
    """A row as an organisation's admin sees it; `name` is that of the principal, where it is a person who has one."""

    id: int
    at: Annotated[float, Field(index=True)]
    surface: str
    operation: str
    principal: str
    name: str | None
    key_id: str
    outcome: str
    status: int
    milliseconds: float
    request_id: str
    change: str | None


class AuditTable(TableDescription, row=AuditRow, without=("id", "name"), table=True):
    """Who did what, and how it ended. Never arguments; `change` says what a call changed of who gets money and SIMs."""

    id: int | None = Field(default=None, sa_column=sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True))
    organisation: str
    __table_args__ = (
        sa.Index("audit_organisation", "organisation", "at", "id"),
        sa.Index("audit_operation", "organisation", "operation", "at", "id"),
        sa.Index("audit_principal", "organisation", "principal", "at", "id"),
        sa.Index("audit_key", "organisation", "key_id", "at", "id"),
        sa.Index("audit_outcome", "organisation", "outcome", "at", "id", sqlite_where=NOT_OK_ROWS),
    )


AUDIT_READ = AuditReadTable.table

AUDIT_NAME = AuditNameTable.table

NUMBER_BITS = 19

READS_A_MILLISECOND = 1 << NUMBER_BITS
"""Rows of one millisecond that can be told apart."""

OLDEST_READ = 1 << 40
"""Ids of whole rows are below, those of reads above: they begin with the milliseconds."""

REQUEST_PREFIX = "req_"

REQUEST_CHARACTERS = 26

REQUEST_ID = re.compile(f"{REQUEST_PREFIX}[0-7][{BASE32_ALPHABET}]{{{REQUEST_CHARACTERS - 1}}}")
"""A request id of ours; its number has 128 bits."""

PYTHON_DIGITS = bytes.maketrans(BASE32_ALPHABET.encode(), b"0123456789abcdefghijklmnopqrstuv")
"""The digits of our ids as `int` reads them."""

LONGEST_MICROSECONDS = (1 << 31) - 1

LATEST_READ_MOMENT = 1.6e10  # whose id is just within 64 bits

REPEATING_TEXTS = ("organisation", "operation", "principal", "key", "outcome", "surface")


class AuditNameRow(NamedTuple):
    id: int
    text: str


class AuditText(NamedTuple):
    """A text, its number, and what the person is called whose id it is."""

    id: int
    text: str
    name: str | None


class NumberedAuditRecord(NamedTuple):
    """A line that waits to be written. `number` keeps lines of one millisecond apart, and in their order."""

    number: int
    line: AuditRecord


def known_names_query(dialect: Dialect) -> sa.Executable:
    """The numbers of the texts that have one."""
    return sa.select(AUDIT_NAME.c.id, AUDIT_NAME.c.text).where(AUDIT_NAME.c.text.in_(bound_list(dialect, "texts")))


KNOWN_AUDIT_NAMES = Query(AuditNameRow, known_names_query)

ADD_NAME = Command(insert_once(AUDIT_NAME, ["text"], key=["text"]))

# Of two processes whose reads of one organisation have the same millisecond and number the first stays. Choice: it is one in a million
# where a thousand reads come in a second, and a second try would need a lock.
INSERT_AUDIT_READ = Command(insert_once(AUDIT_READ, AuditReadRow._fields))


def audit_texts_query(dialect: Dialect) -> sa.Executable:
    """The texts of these numbers, each with the name of the person it is, if it is one."""
    numbers = bound_list(dialect, "numbers", sa.Integer)
    return (
        sa.select(AUDIT_NAME.c.id, AUDIT_NAME.c.text, PERSON.c.name)
        .join_from(AUDIT_NAME, PERSON, PERSON.c.id == AUDIT_NAME.c.text, isouter=True)
        .where(AUDIT_NAME.c.id.in_(numbers))
    )


AUDIT_TEXTS = Query(AuditText, audit_texts_query)


def selective(dialect: Dialect, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """A condition that few rows meet.

    SQLite keeps no statistics here: of an index with this condition and one without it takes the one without, and reads what is left.
    """
    if dialect.name != "sqlite":
        return condition
    # Without a type: SQLAlchemy would compare a truth value with 1, and nothing would be looked up.
    return cast(sa.ColumnElement[bool], sa.func.likelihood(condition, sa.literal_column("0.001")))


def audit_read_page(kind: AuditPageKind) -> Query[AuditReadRow]:
    """The page of an organisation, newest first. Its bounds are ids: the first is included, the other is not."""
    return Query(
        AuditReadRow,
        lambda dialect: (
            sa.select(*(AUDIT_READ.c[name] for name in AuditReadRow._fields))
            .where(
                AUDIT_READ.c.organisation == sa.bindparam("organisation", type_=sa.Integer),
                AUDIT_READ.c.id >= sa.bindparam("first", type_=sa.BigInteger),
                AUDIT_READ.c.id < sa.bindparam("last", type_=sa.BigInteger),
                *([AUDIT_READ.c.status > sa.literal_column("201", sa.SmallInteger)] if kind.rare else []),
                *(
                    selective(dialect, AUDIT_READ.c["key" if name == "key_id" else name] == sa.bindparam(name, type_=sa.Integer))
                    for name in sorted(kind.filters)
                ),
            )
            .order_by(AUDIT_READ.c.id.desc())
            .limit(sa.bindparam("most"))
        ),
    )


FIND_AUDIT_READ = Query(
    int,
    lambda _: sa.select(AUDIT_READ.c.id).where(
        AUDIT_READ.c.organisation == sa.bindparam("organisation", type_=sa.Integer),
        AUDIT_READ.c.id == sa.bindparam("row", type_=sa.BigInteger),
    ),
)

AUDIT_READ_IS_OLD = AUDIT_READ.c.id < sa.bindparam("before", type_=sa.BigInteger)


def first_read_id(at: float) -> int:
    """The smallest id of reads that began at this moment (Unix seconds) or later."""
    return math.ceil(min(max(at, 0.0), LATEST_READ_MOMENT) * 1000) << NUMBER_BITS


def read_id(at: float, number: int) -> int:
    """The id of a read. `at`: Unix seconds."""
    return int(at * 1000) << NUMBER_BITS | number % READS_A_MILLISECOND


def moment_of_read(id: int) -> float:
    """When a read began, Unix seconds."""
    return (id >> NUMBER_BITS) / 1000


def pack_request_id(request_id: str) -> bytes:
    """A request id of ours as 16 bytes; any other as its text, never 16 bytes long."""
    if REQUEST_ID.fullmatch(request_id):
        return int(request_id[len(REQUEST_PREFIX) :].encode().translate(PYTHON_DIGITS), 32).to_bytes(16)
    text = request_id.encode()
    return text + b"\n" if len(text) == 16 else text


def texts_of_record(line: AuditRecord) -> tuple[str, ...]:
    """What of a line is kept as numbers, in the order of REPEATING_TEXTS."""
    return line.organisation, line.operation, line.principal, line.key_id, line.outcome, line.surface


def text_numbers(connection: Connection, texts: set[str]) -> Mapping[str, int]:
    """The numbers of these texts; those that have none get one."""
    found = known_text_numbers(connection, texts)
    missing = sorted(texts - found.keys())
    if missing:
        connection.run_many(ADD_NAME, [{"text": text} for text in missing])
        found = known_text_numbers(connection, texts)
    return found


def known_text_numbers(connection: Connection, texts: set[str]) -> Mapping[str, int]:
    """The numbers of those of these texts that have one."""
    return {row.text: row.id for row in connection.all(KNOWN_AUDIT_NAMES, texts=pack_rows([[text] for text in sorted(texts)]))}


def append_audit_reads(connection: Connection, *, lines: Sequence[NumberedAuditRecord]) -> None:
    """The buffered rows of reads and refusals."""
    numbers = text_numbers(connection, {text for each in lines for text in texts_of_record(each.line)})
    connection.run_many(INSERT_AUDIT_READ, [audit_read_values(each, numbers) for each in lines])


def audit_read_values(each: NumberedAuditRecord, numbers: Mapping[str, int]) -> dict[str, Value]:
    line = each.line
    return {
        **{name: numbers[text] for name, text in zip(REPEATING_TEXTS, texts_of_record(line), strict=True)},
        "id": read_id(line.at, each.number),
        "microseconds": min(round(line.milliseconds * 1000), LONGEST_MICROSECONDS),
        "status": line.status,
        "request": pack_request_id(line.request_id),
    }


def texts_of_reads(connection: Connection, rows: Sequence[AuditReadRow]) -> Mapping[int, AuditText]:
    """The texts of these reads by their numbers.

    Choice: a second statement, since PostgreSQL plans a join of seven longer than it runs.
    """
    numbers = {number for row in rows for number in row[1:7]}
    found = connection.all(AUDIT_TEXTS, numbers=pack_rows([[number] for number in sorted(numbers)])) if rows else []
    return {each.id: each for each in found}


def has_audit_read(connection: Connection, *, organisation: str, row: int) -> bool:
    number = known_text_numbers(connection, {organisation}).get(organisation)
    return number is not None and connection.first(FIND_AUDIT_READ, organisation=number, row=row) is not None


def list_audit_reads(
    connection: Connection, *, page: Query[AuditReadRow], wanted: Mapping[str, str], first: int, last: int, most: int
) -> list[AuditReadRow]:
    """A page of reads, newest first. `wanted`: the organisation and each filter by its name. What no read ever had is not looked for."""
    numbers = known_text_numbers(connection, set(wanted.values()))
    if not numbers.keys() >= set(wanted.values()):
        return []
    return connection.all(page, **{name: numbers[text] for name, text in wanted.items()}, first=first, last=last, most=most)


@first_row(int)
def next_reading_organisation(*, after: int) -> sa.Executable:
    """The number of the next organisation that has reads."""
    # One look for each organisation: the key begins with it.
    return (
        sa.select(AUDIT_READ.c.organisation)
        .where(AUDIT_READ.c.organisation > sa.bindparam("after", type_=sa.Integer))
        .order_by(AUDIT_READ.c.organisation)
        .limit(1)
    )


@changes_rows
def sweep_audit_reads(*, organisation: int, before: Annotated[float, first_read_id], most: int) -> sa.Executable:
    """Remove the oldest reads of an organisation, by its number; how many. `before`: Unix seconds."""
    return sa.delete(AUDIT_READ).where(
        AUDIT_READ.c.organisation == sa.bindparam("organisation", type_=sa.Integer),
        AUDIT_READ.c.id.in_(
            sa.select(AUDIT_READ.c.id)
            .where(AUDIT_READ.c.organisation == sa.bindparam("organisation", type_=sa.Integer), AUDIT_READ_IS_OLD)
            .order_by(AUDIT_READ.c.id)
            .limit(sa.bindparam("most"))
        ),
    )


def moment_of_number(id: PartitionBound) -> float:
    """When a read of the audit log began, Unix seconds."""
    return moment_of_read(int(id))


AUDIT_READ_HISTORY = History("audit_read", "id", first_read_id, moment_of_number, int, "organisation, id")

AUDIT = AuditTable.table

LARGEST_AUDIT_ID = 2**62

LATEST_AUDIT_MOMENT = 1e12

AUDIT_AHEAD_SECONDS = 86_400
"""A row of a later time than this from now is of a clock that is wrong. A list that names no end looks into every partition."""

INSERT_AUDIT_RECORD = Command(lambda _: sa.insert(AUDIT).values({name: sa.bindparam(name) for name in AuditRecord._fields}))

OLDEST_AUDIT_RECORDS = sa.select(AUDIT.c.id).where(AUDIT.c.at < sa.bindparam("before")).order_by(AUDIT.c.at).limit(sa.bindparam("most"))


class AuditFilter(NamedTuple):
    """Which rows; None: whatever it is. `since` is included, `until` is not."""

    operation: str | None = None
    principal: str | None = None
    outcome: str | None = None
    surface: str | None = None
    since: float = 0.0
    until: float = LATEST_AUDIT_MOMENT
    key_id: str | None = None


AUDIT_FILTERS = ("operation", "principal", "outcome", "surface", "key_id")

AUDIT_RECORD_COLUMNS = [PERSON.c.name if name == "name" else AUDIT.c[name] for name in AuditRow._fields]


def audit_page(kind: AuditPageKind) -> Query[AuditRow]:
    """The page with the filters of `kind`: each is in the statement only where it is asked for, so that its index is used."""
    return Query(
        AuditRow,
        lambda dialect: (
            sa.select(*AUDIT_RECORD_COLUMNS)
            .join_from(AUDIT, PERSON, AUDIT.c.principal == PERSON.c.id, isouter=True)
            .where(
                AUDIT.c.organisation == sa.bindparam("organisation"),
                AUDIT.c.at >= sa.bindparam("since"),
                AUDIT.c.at < sa.bindparam("until"),
                # Of the same moment the higher id is newer; the first half is what the index is read by.
                AUDIT.c.at <= sa.bindparam("last_at"),
                (AUDIT.c.at < sa.bindparam("last_at")) | (AUDIT.c.id < sa.bindparam("last_id")),
                *([AUDIT.c.outcome != sa.literal_column("'ok'", sa.Text)] if kind.rare else []),
                *(selective(dialect, AUDIT.c[name] == sa.bindparam(name)) for name in AUDIT_FILTERS if name in kind.filters),
            )
            .order_by(AUDIT.c.at.desc(), AUDIT.c.id.desc())
            .limit(sa.bindparam("most"))
        ),
    )


FILTERS_GIVEN = [
    frozenset(name for place, name in enumerate(AUDIT_FILTERS) if bits >> place & 1) for bits in range(1 << len(AUDIT_FILTERS))
]

PAGE_KINDS = [AuditPageKind(given, rare) for given in FILTERS_GIVEN for rare in (False, True) if not rare or "outcome" in given]

AUDIT_PAGES = {kind: audit_page(kind) for kind in PAGE_KINDS}

AUDIT_READ_PAGES = {kind: audit_read_page(kind) for kind in PAGE_KINDS}

CHANGES_LOOKED_AT = 50
CHANGE_SECONDS = 3600
"""A call that asks an outside system writes its row when that has answered, and its audit row says when it began."""


def successes_query(dialect: Dialect) -> sa.Executable:
    """The newest calls of these operations that ended well, whose `change` begins with `named`."""
    named = sa.cast(sa.bindparam("named"), sa.Text)
    return (
        sa.select(*AUDIT_RECORD_COLUMNS)
        .join_from(AUDIT, PERSON, AUDIT.c.principal == PERSON.c.id, isouter=True)
        .where(
            AUDIT.c.organisation == sa.bindparam("organisation"),
            AUDIT.c.operation.in_(bound_list(dialect, "operations")),
            AUDIT.c.at >= sa.bindparam("since"),
            AUDIT.c.at < sa.bindparam("until"),
            AUDIT.c.outcome == sa.bindparam("outcome"),
            sa.func.substr(sa.func.coalesce(AUDIT.c.change, ""), 1, sa.func.length(named)) == named,
        )
        .order_by(AUDIT.c.at.desc(), AUDIT.c.id.desc())
        .limit(sa.bindparam("most"))
    )


NEWEST_SUCCESSES = Query(AuditRow, successes_query)

PLACE_OF_AUDIT_RECORD = Query(
    float, lambda _: sa.select(AUDIT.c.at).where(AUDIT.c.id == sa.bindparam("row"), AUDIT.c.organisation == sa.bindparam("organisation"))
)


def append_audit_record(connection: Connection, line: AuditRecord) -> None:
    """The row of a write, in the write's own transaction."""
    connection.run(INSERT_AUDIT_RECORD, **line._asdict())


def list_audit(connection: Connection, *, organisation: str, wanted: AuditFilter, after: int | None, most: int) -> list[AuditRow] | None:
    """An organisation's rows, newest first, behind the row `after`; nothing at all where it has no such row."""
    last_at, last_id = LATEST_AUDIT_MOMENT, LARGEST_AUDIT_ID
    if after is not None:
        place = audit_moment(connection, organisation=organisation, row=after)
        if place is None:
            return None
        last_at, last_id = place, after
    given = wanted._asdict()
    filters: dict[str, str] = {name: given[name] for name in AUDIT_FILTERS if given[name] is not None}
    of, outcome, asked = {"organisation": organisation, **filters}, wanted.outcome or USUAL_OUTCOME, frozenset(filters)
    page = AUDIT_PAGES[AuditPageKind(asked, rare=outcome != USUAL_OUTCOME)]
    whole = connection.all(page, **of, most=most, since=wanted.since, until=wanted.until, last_at=last_at, last_id=last_id)
    last = min(first_read_id(wanted.until), last_id if OLDEST_READ <= last_id < LARGEST_AUDIT_ID else first_read_id(last_at))
    short = AUDIT_READ_PAGES[AuditPageKind(asked, rare=outcome not in SUCCESSES)]
    reads = list_audit_reads(connection, page=short, wanted=of, first=first_read_id(wanted.since), last=last, most=most)
    texts = texts_of_reads(connection, reads)
    read_rows = [read_as_audit_row(row, texts) for row in reads]
    return sorted(whole + read_rows, key=lambda row: (row.at, row.id), reverse=True)[:most]


def last_change(connection: Connection, *, lookup: ChangeLookup, now: float) -> ChangeAuthor | None:
    """Who made the change that `lookup` asks for; None where no row says it, or several may be meant. `now`: Unix seconds."""
    version, unclear = lookup.version, (lookup.version.changed is None and not lookup.version.alone and not lookup.version.named)
    if unclear or not lookup.operations:
        return None
    at = version.changed
    found = connection.all(
        NEWEST_SUCCESSES,
        organisation=lookup.organisation,
        operations=pack_rows([[each] for each in lookup.operations]),
        since=0.0 if at is None else float(at - CHANGE_SECONDS),
        until=now + AUDIT_AHEAD_SECONDS if at is None else float(at + 1),
        outcome="ok",
        named=version.named,
        most=CHANGES_LOOKED_AT if at is not None or version.principal else 1,
    )
    if version.principal:
        found = [row for row in found if row.principal == version.principal]
    if at is not None:  # the call was under way in that second
        found = [row for row in found if row.at + row.milliseconds / 1000 >= at]
        if len({(row.principal, row.key_id) for row in found}) > 1:
            return None
    return ChangeAuthor(found[0].at, found[0].principal, found[0].name, found[0].key_id) if found else None


def audit_moment(connection: Connection, *, organisation: str, row: int) -> float | None:
    """When the call of a row began; nothing where the organisation has no such row."""
    if row >= OLDEST_READ:
        return moment_of_read(row) if has_audit_read(connection, organisation=organisation, row=row) else None
    return connection.first(PLACE_OF_AUDIT_RECORD, row=row, organisation=organisation)


def read_as_audit_row(row: AuditReadRow, texts: Mapping[int, AuditText]) -> AuditRow:
    return AuditRow(
        row.id,
        moment_of_read(row.id),
        texts[row.surface].text,
        texts[row.operation].text,
        texts[row.principal].text,
        texts[row.principal].name,
        texts[row.key].text,
        texts[row.outcome].text,
        row.status,
        row.microseconds / 1000,
        REQUEST_PREFIX + base32(int.from_bytes(row.request)) if len(row.request) == 16 else row.request.decode().removesuffix("\n"),
        None,
    )


@changes_rows
def sweep_audit(*, before: float, most: int) -> sa.Executable:
    """Forget rows older than the retention, the oldest first. `before`: Unix seconds."""
    return sa.delete(AUDIT).where(AUDIT.c.id.in_(OLDEST_AUDIT_RECORDS), AUDIT.c.at < before)


# Choice: whole rows of the audit log have no time in their ids, which programs of before made one after the other; their time divides them,
# and the counter keeps their ids apart.
AUDIT_HISTORY = History("audit", "at", float, float, float, "id")
