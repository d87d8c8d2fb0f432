"""Names that are not to be kept of lines any more: their customer asked for it, or the line has ended for good.

The charging system goes on telling them, so it is remembered whose are not to be stored again: lines by their numbers, and buyers by
digests of their address and of the ICCIDs that were sold to them, since nobody may know a line of theirs when they are erased. The key
of the digests is an organisation's own, random, and sealed: it outlives the keys of the keyring, which come and go.
"""

import hashlib
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import KeyUnknown
from storage.engine.sql import (
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    bound_list,
    first_row,
    insert_once,
    pack_rows,
    runs_in_thread,
    unindexed,
)
from storage.fleet_line_changes import note_line_change
from storage.fleet_lines import (
    FLEET_LINE,
    FLEET_LINE_DETAIL,
    HOLD_CURRENT_FLEET,
    OWNER_OF_FLEET,
    LineDetail,
    LinesWritten,
    LineWrite,
    ListedLine,
    write_lines,
)
from storage.fleet_problems import FLEET_PROBLEM
from storage.fleet_search import contains
from storage.fleets import FLEET, IS_CURRENT, personal_choice
from storage.sealing import ERASURE_KEY_FIELD, Keyring, WrongSeal

ERASURE_LOG = logging.getLogger(__name__)


class FleetErasureTable(TableDescription, table=True):
    """A line whose customer's name and address are not kept."""

    organisation: str = Field(primary_key=True)
    subscriber_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})


class FleetErasedBuyerTable(TableDescription, table=True):
    """The digest of an address, or of an ICCID, of a buyer who was erased."""

    organisation: str = Field(primary_key=True)
    digest: str = Field(primary_key=True)


class ErasureKey(NamedTuple):
    """The key of an organisation's digests, sealed. It is made with the first of them, and stays."""

    organisation: Key
    sealed: str


class FleetErasureKeyTable(TableDescription, row=ErasureKey, table=True):
    """What digests of erased buyers are made with."""


FLEET_ERASURE = FleetErasureTable.table

FLEET_ERASED_BUYER = FleetErasedBuyerTable.table

FLEET_ERASURE_KEY = FleetErasureKeyTable.table

BOUND_NUMBER = sa.bindparam("subscriber_id", type_=sa.BigInteger)

BOUND_OWNER = sa.bindparam("organisation", type_=sa.Text)

NOTE_ERASURE = Command(insert_once(FLEET_ERASURE, ("organisation", "subscriber_id"), key=["organisation", "subscriber_id"]))

NOTE_ERASED_BUYER = Command(insert_once(FLEET_ERASED_BUYER, ("organisation", "digest"), key=["organisation", "digest"]))

KEEP_ERASURE_KEY = Command(insert_once(FLEET_ERASURE_KEY, ErasureKey._fields, key=["organisation"]))

# What is being written to these fleets is there before anything is erased, and what comes after sees the note.
HOLD_FLEETS = Command(lambda _: sa.update(FLEET).where(FLEET.c.organisation == BOUND_OWNER, IS_CURRENT).values(due=FLEET.c.due))

# Those that have ended, too: their rows are removed in steps.
ALL_FLEETS = sa.select(FLEET.c.id).where(FLEET.c.organisation == BOUND_OWNER)

ERASE_DETAIL = Command(
    sa.update(FLEET_LINE_DETAIL)
    .where(FLEET_LINE_DETAIL.c.fleet.in_(ALL_FLEETS), FLEET_LINE_DETAIL.c.subscriber_id == BOUND_NUMBER)
    .values(name=None, company=None, email=None, phone=None)
)

ERASE_SEARCH = Command(
    sa.update(FLEET_LINE)
    .where(FLEET_LINE.c.fleet.in_(ALL_FLEETS), FLEET_LINE.c.subscriber_id == BOUND_NUMBER)
    .values(search="", version=FLEET_LINE.c.version + 1)
)

ERASE_PROBLEMS = Command(
    lambda _: sa.delete(FLEET_PROBLEM).where(FLEET_PROBLEM.c.fleet.in_(ALL_FLEETS), FLEET_PROBLEM.c.subscriber_id == BOUND_NUMBER)
)

LINES_OF_ICCIDS = Query(
    int,
    lambda dialect: sa.select(FLEET_LINE.c.subscriber_id).where(
        unindexed(FLEET_LINE.c.fleet).in_(ALL_FLEETS), FLEET_LINE.c.iccid.in_(bound_list(dialect, "iccids"))
    ),
)

LINES_OF_EMAIL = Query(
    int,
    lambda _: sa.select(FLEET_LINE_DETAIL.c.subscriber_id).where(
        FLEET_LINE_DETAIL.c.fleet.in_(ALL_FLEETS),
        sa.func.lower(sa.func.trim(FLEET_LINE_DETAIL.c.email)) == sa.bindparam("email", type_=sa.Text),
    ),
)


class LineTexts(NamedTuple):
    """A line, and its folded texts, each in a line of `search`."""

    subscriber_id: int
    search: str


LINES_WITH_TEXT = Query(
    LineTexts,
    lambda dialect: sa.select(FLEET_LINE.c.subscriber_id, FLEET_LINE.c.search).where(
        FLEET_LINE.c.fleet.in_(ALL_FLEETS), contains(dialect, FLEET_LINE.c.search, "part")
    ),
)

ERASED_LINES = Query(int, lambda _: sa.select(FLEET_ERASURE.c.subscriber_id).where(FLEET_ERASURE.c.organisation == BOUND_OWNER))


def folded_address(address: str) -> str:
    """The form in which addresses are compared: without blanks around them, and without case."""
    return address.strip().casefold()


def buyer_digests(key: bytes, *, addresses: Iterable[str], iccids: Iterable[str]) -> set[str]:
    """What is remembered of a buyer with these e-mail addresses and ICCIDs; it tells nothing without the key."""
    texts = [f"address|{folded_address(address)}" for address in addresses] + [f"iccid|{iccid}" for iccid in iccids]
    return {hashlib.blake2b(text.encode(), key=key, digest_size=20).hexdigest() for text in texts}


@first_row(ErasureKey)
def erasure_key(*, organisation: str) -> sa.Executable:
    """The sealed key of the organisation's digests; None where no buyer was erased."""
    return sa.select(*(FLEET_ERASURE_KEY.c[name] for name in ErasureKey._fields)).where(FLEET_ERASURE_KEY.c.organisation == organisation)


def open_erasure_key(kept: ErasureKey, keyring: Keyring) -> bytes:
    """Raises KeyUnknown, WrongSeal and ValueError as the keyring does."""
    return bytes.fromhex(keyring.open(kept.sealed, org_id=kept.organisation, field=ERASURE_KEY_FIELD))


def erase_line(connection: Connection, *, organisation: str, subscriber_id: int) -> None:
    """Erases the names of a line, and what was found wrong with it; neither is stored again."""
    named = {"organisation": organisation, "subscriber_id": subscriber_id}
    connection.run(NOTE_ERASURE, **named)
    connection.run(HOLD_FLEETS, organisation=organisation)
    for command in (ERASE_SEARCH, ERASE_DETAIL, ERASE_PROBLEMS):
        connection.run(command, **named)


class ErasedBuyer(NamedTuple):
    """Whom to erase: the address, and the ICCIDs that were sold to it. `key`: 32 random bytes, for the first buyer who is erased."""

    email: str
    iccids: Collection[str]
    key: bytes


def erase_lines_of_buyer(connection: Connection, *, organisation: str, buyer: ErasedBuyer, keyring: Keyring) -> None:
    """Erases the names of the lines that have the buyer's address or one of the ICCIDs, and remembers both. Raises KeyUnknown."""
    sealed = keyring.seal(buyer.key.hex(), org_id=organisation, field=ERASURE_KEY_FIELD)
    connection.run(KEEP_ERASURE_KEY, organisation=organisation, sealed=sealed)
    kept = erasure_key(connection, organisation=organisation)
    assert kept is not None, "a key that was just kept is there"
    for digest in sorted(buyer_digests(open_erasure_key(kept, keyring), addresses=[buyer.email], iccids=buyer.iccids)):
        connection.run(NOTE_ERASED_BUYER, organisation=organisation, digest=digest)
    connection.run(HOLD_FLEETS, organisation=organisation)
    address = folded_address(buyer.email)
    found = {*connection.all(LINES_OF_EMAIL, organisation=organisation, email=address)}
    found.update(connection.all(LINES_OF_ICCIDS, organisation=organisation, iccids=pack_rows([[iccid] for iccid in sorted(buyer.iccids)])))
    for line in connection.all(LINES_WITH_TEXT, organisation=organisation, part=address):
        if address in line.search.split("\n"):
            found.add(line.subscriber_id)
    for number in sorted(found):
        erase_line(connection, organisation=organisation, subscriber_id=number)


def erased_lines(connection: Connection, *, organisation: str) -> frozenset[int]:
    """The subscriber ids of the lines whose names are not kept."""
    return frozenset(connection.all(ERASED_LINES, organisation=organisation))


NAMELESS_LINES = Query(
    int,
    lambda dialect: sa.select(FLEET_ERASURE.c.subscriber_id).where(
        FLEET_ERASURE.c.organisation == BOUND_OWNER,
        FLEET_ERASURE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
    ),
)

REMEMBERED_DIGESTS = Query(
    str,
    lambda dialect: sa.select(FLEET_ERASED_BUYER.c.digest).where(
        FLEET_ERASED_BUYER.c.organisation == BOUND_OWNER, FLEET_ERASED_BUYER.c.digest.in_(bound_list(dialect, "digests"))
    ),
)


class LineCustomer(NamedTuple):
    """A line with names to store, and what tells whether they are those of an erased buyer."""

    subscriber_id: int
    iccid: str
    addresses: Sequence[str]


def listed_customer(subscriber_id: int, listed: ListedLine, detail: LineDetail) -> LineCustomer:
    """The line of these rows."""
    return LineCustomer(subscriber_id, listed.iccid, [] if detail.email is None else [detail.email])


def lines_without_names(connection: Connection, *, fleet: int, lines: Sequence[LineCustomer], keyring: Keyring) -> set[int]:
    """Which of these lines (subscriber ids) are stored without the names and addresses that the charging system tells of them.

    Whoever stores names holds the fleet's row, so that an erasure comes before this or after the commit. It does not wait for the network.
    """
    organisation = connection.first(OWNER_OF_FLEET, fleet=fleet) if lines else None
    return set() if organisation is None else nameless_lines(connection, organisation=organisation, lines=lines, keyring=keyring)


def nameless_lines(connection: Connection, *, organisation: str, lines: Sequence[LineCustomer], keyring: Keyring) -> set[int]:
    """As `lines_without_names`. A line of an erased buyer is noted as erased."""
    numbers = [line.subscriber_id for line in lines]
    if personal_choice(connection, organisation=organisation) == 0:
        return set(numbers)
    nameless = set(connection.all(NAMELESS_LINES, organisation=organisation, numbers=pack_rows([[number] for number in numbers])))
    kept = erasure_key(connection, organisation=organisation)
    others = [line for line in lines if line.subscriber_id not in nameless]
    if kept is None or not others:
        return nameless
    try:
        key = open_erasure_key(kept, keyring)
    except (KeyUnknown, ValueError, WrongSeal):
        # Nobody here can tell whose they are; the next listing writes names where the key is there again.
        ERASURE_LOG.warning("No names are kept of lines of %s: no key of SERVICE_SECRET_KEYS opens its key of erased buyers", organisation)
        return set(numbers)
    made = {line.subscriber_id: buyer_digests(key, addresses=line.addresses, iccids=[line.iccid]) for line in others}
    asked = pack_rows([[digest] for digest in sorted(set[str]().union(*made.values()))])
    remembered = set(connection.all(REMEMBERED_DIGESTS, organisation=organisation, digests=asked))
    for number in sorted(number for number, digests in made.items() if digests & remembered):
        connection.run(NOTE_ERASURE, organisation=organisation, subscriber_id=number)
        nameless.add(number)
    return nameless


@runs_in_thread
def write_listed_lines(connection: Connection, *, fleet: int, lines: Sequence[LineWrite], now: float, keyring: Keyring) -> LinesWritten:
    """As `write_lines`, without names that were erased, or ceased to be kept, since the listing began, or that are an erased buyer's."""
    if connection.first(HOLD_CURRENT_FLEET, fleet=fleet) is None:
        return LinesWritten(0, [])
    named = [listed_customer(line.subscriber_id, line.listed, line.detail) for line in lines if line.listed.search]
    nameless = lines_without_names(connection, fleet=fleet, lines=named, keyring=keyring)
    kept = [
        line._replace(listed=listed, detail=detail)
        for line in lines
        for listed, detail in [without_names(line.listed, line.detail) if line.subscriber_id in nameless else (line.listed, line.detail)]
    ]
    return write_lines(connection, fleet=fleet, lines=kept, now=now)


def note_line_names(
    connection: Connection, *, organisation: str, customer: LineCustomer, search: str, now: float, keyring: Keyring
) -> None:
    """Puts the names that a call of ours has given a line into its row, as `note_line_change`, where names are kept of it."""
    connection.run(HOLD_FLEETS, organisation=organisation)
    if not nameless_lines(connection, organisation=organisation, lines=[customer], keyring=keyring):
        number, values = customer.subscriber_id, {"search": search}
        note_line_change(connection, organisation=organisation, subscriber_id=number, values=values, now=now)


def without_names(listed: ListedLine, detail: LineDetail) -> tuple[ListedLine, LineDetail]:
    """The rows of a line without its names; where it had some, the next listing writes it again."""
    return (listed._replace(search="", digest=0), LineDetail(detail.facts, None, None, None, None)) if listed.search else (listed, detail)
