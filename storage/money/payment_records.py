"""What the payment processor told of an account's money: the newest word of each thing, whatever the order in which words came."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.money.money_tables import BillingConfigTable, PaymentRecordTable
from storage.statement import Command, Dialect, Query, table

RECORD, CONFIG = table(PaymentRecordTable), table(BillingConfigTable)
Kind = Literal["charge", "refund", "dispute", "payout", "fee"]


class PaymentRecord(NamedTuple):
    """A thing of an account's; `body` is its reduced object as JSON, (`as_of`, `stage`) how new that word is.

    `charge` is what it belongs to; of a charge itself, the payment intent that it is a try of.
    """

    account: str
    kind: str
    id: str
    organisation: str
    created: int
    charge: str | None
    body: str
    as_of: float
    stage: int


class Place(NamedTuple):
    """Where a record stands in its list."""

    created: int
    id: str


class Owner(NamedTuple):
    """Whose account it is."""

    organisation: str


class Linked(NamedTuple):
    """A record that belongs to a charge."""

    kind: str
    id: str
    charge: str
    body: str
    as_of: float


FIRST = Place(2**62, "")
COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(RECORD.c[name] for name in PaymentRecord._fields)
KEY = ("account", "kind", "id")
NEWNESS = ("as_of", "stage", "body")


def putting(dialect: Dialect) -> sa.Executable:
    """The record, unless what is there is as new.

    The text of the body decides between two words that are equally new, so that any order of them ends in the same.
    """
    insert = dialect.insert(RECORD).values({name: sa.bindparam(name) for name in PaymentRecord._fields})
    there = sa.tuple_(*(RECORD.c[name] for name in NEWNESS))
    given = sa.tuple_(*(insert.excluded[name] for name in NEWNESS))
    return insert.on_conflict_do_update(
        index_elements=KEY, set_={name: insert.excluded[name] for name in PaymentRecord._fields if name not in KEY}, where=there < given
    )


PUT = Command(putting)
MINE = (RECORD.c.account == sa.bindparam("account"), RECORD.c.kind == sa.bindparam("kind"))
OWN = (*MINE, RECORD.c.organisation == sa.bindparam("organisation"))
FIND = Query(PaymentRecord, sa.select(*COLUMNS).where(*MINE, RECORD.c.id == sa.bindparam("named")))
PLACE = Query(Place, sa.select(RECORD.c.created, RECORD.c.id).where(*OWN, RECORD.c.id == sa.bindparam("named")))
# As one comparison of a pair, which both databases look up in the index: a page far behind costs no more than the first.
BEHIND: sa.ColumnElement[bool] = sa.tuple_(RECORD.c.created, RECORD.c.id) < sa.tuple_(
    sa.bindparam("before", type_=sa.BigInteger), sa.bindparam("after", type_=sa.Text)
)
LIST = Query(
    PaymentRecord,
    sa.select(*COLUMNS).where(*OWN, BEHIND).order_by(RECORD.c.created.desc(), RECORD.c.id.desc()).limit(sa.bindparam("most")),
)
OF_CHARGE = Query(PaymentRecord, sa.select(*COLUMNS).where(*MINE, RECORD.c.charge == sa.bindparam("charge")).order_by(RECORD.c.id))
LINKED = Query(
    Linked,
    lambda dialect: (
        sa.select(*(RECORD.c[name] for name in Linked._fields))
        .where(
            RECORD.c.account == sa.bindparam("account"),
            RECORD.c.kind.in_(["refund", "dispute"]),
            RECORD.c.charge.in_(sa.select(listed(dialect, "charges", "given", charge=sa.Text).c.charge)),
        )
        .order_by(RECORD.c.created, RECORD.c.id)
    ),
)
LOCK = Query(Owner, sa.select(CONFIG.c.organisation).where(CONFIG.c.connect_account == sa.bindparam("account")).with_for_update())


def lock_account(connection: Connection, *, account: str) -> str | None:
    """Whose account it is; whatever else writes about its money waits until this transaction has ended."""
    found = connection.first(LOCK, account=account)
    return None if found is None else found.organisation


def put_record(connection: Connection, *, record: PaymentRecord) -> bool:
    """Keep a word; False when what is there is as new or newer."""
    return connection.run(PUT, **record._asdict()) == 1


def find_record(connection: Connection, *, account: str, kind: Kind, id: str) -> PaymentRecord | None:
    """One thing of an account's."""
    return connection.first(FIND, account=account, kind=kind, named=id)


def place_of(connection: Connection, *, account: str, organisation: str, kind: Kind, id: str) -> Place | None:
    """Where one of the organisation's records stands."""
    return connection.first(PLACE, account=account, organisation=organisation, kind=kind, named=id)


def list_records(
    connection: Connection, *, account: str, organisation: str, kind: Kind, after: Place = FIRST, most: int
) -> list[PaymentRecord]:
    """Newest first."""
    named = {"account": account, "organisation": organisation, "kind": kind}
    return connection.all(LIST, **named, before=after.created, after=after.id, most=most)


def records_of(connection: Connection, *, account: str, kind: Kind, charge: str) -> list[PaymentRecord]:
    """What of a kind belongs to a charge."""
    return connection.all(OF_CHARGE, account=account, kind=kind, charge=charge)


def charges_of(connection: Connection, *, account: str, payment_intent: str) -> list[PaymentRecord]:
    """The tries of a payment."""
    return connection.all(OF_CHARGE, account=account, kind="charge", charge=payment_intent)


def linked_to(connection: Connection, *, account: str, charges: Sequence[str]) -> list[Linked]:
    """The refunds and disputes of these charges, oldest first."""
    return connection.all(LINKED, account=account, charges=packed([[charge] for charge in charges])) if charges else []
