"""What the payment processor reported of an account's money: the newest report of each thing, whatever the order in which they came.

Events of the processor that had their effect are stored, so that each has it once.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import without_order_tokens
from storage.billing_config import BILLING_CONFIG
from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    StatementBuild,
    TableDescription,
    all_rows,
    bound_list,
    changes_one,
    changes_rows,
    delete_oldest,
    first_row,
    insert_once,
    pack_rows,
    writes,
)


class PaymentRecord(NamedTuple):
    """A thing of an account's; `body` is its reduced object as JSON, (`as_of`, `stage`) how new that word is.

    `charge` is what it belongs to; of a charge itself, the payment intent that it is a try of.
    """

    account: Key
    kind: Key
    id: Key
    organisation: str
    created: BigInt
    charge: str | None
    body: str
    as_of: float
    stage: BigInt


class PaymentRecordTable(TableDescription, row=PaymentRecord, table=True):
    """What the processor told of a charge, refund, dispute, payout or application fee: `kind` and the reduced object as JSON.

    (`as_of`, `stage`) is how new that word is: the second of the event, and how far along the object was. An older word changes nothing.
    """

    __table_args__ = (
        sa.Index("payment_record_list", "organisation", "kind", "created", "id"),
        sa.Index("payment_record_charge", "account", "kind", "charge"),
    )


class PaymentEventTable(TableDescription, table=True):
    """An event of the processor's that was taken: each has its effect once."""

    id: str = Field(primary_key=True)
    type: str
    account: str | None
    received: int = Field(sa_type=sa.BigInteger, index=True)


class PaymentAttempt(NamedTuple):
    """An attempt. `claim_key` is its caller's idempotency key, `made` the processor's id of what came of it."""

    id: Key
    organisation: str
    account: str
    kind: str
    charge: str | None
    amount: BigInt
    currency: str
    state: str
    processor_key: str
    claim_key: str | None
    made: str | None
    created: BigInt
    updated: BigInt


class PaymentAttemptTable(TableDescription, row=PaymentAttempt, table=True):
    """A refund or a payout (`kind`) that was asked for through us. `state`: sending, done, failed or unknown.

    `processor_key`: the processor's key of it; `claim_key`: the caller's own. `made`: the processor's id of what came of it.
    """

    __table_args__ = (
        sa.Index("payment_attempt_claim", "organisation", "kind", "claim_key"),
        sa.Index("payment_attempt_charge", "account", "charge"),
        sa.Index("payment_attempt_state", "account", "state"),
    )


class ChargeRefundsTable(TableDescription, table=True):
    """What of a charge may still be refunded through us: taken before the processor is asked, so that no two refunds take the same cent.

    `reserved` is what was taken and not given back, in all; never more than `amount`, which is the charge's.
    """

    account: str = Field(primary_key=True)
    charge: str = Field(primary_key=True)
    amount: BigInt
    reserved: BigInt
    updated: BigInt


PAYMENT_RECORD = PaymentRecordTable.table

PaymentRecordKind = Literal["charge", "refund", "dispute", "payout", "fee"]


class RecordPlace(NamedTuple):
    created: int
    id: str


class LinkedRecord(NamedTuple):
    """A record that belongs to a charge."""

    kind: str
    id: str
    charge: str
    body: str
    as_of: float


FIRST_RECORD_PLACE = RecordPlace(2**62, "")

PAYMENT_RECORD_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(PAYMENT_RECORD.c[name] for name in PaymentRecord._fields)

PAYMENT_RECORD_KEY = ("account", "kind", "id")

NEWNESS = ("as_of", "stage", "body")


def put_record_query(dialect: Dialect) -> sa.Executable:
    """The record, unless what is there is as new.

    The text of the body decides between two words that are equally new, so that any order of them ends in the same.
    """
    insert = dialect.insert(PAYMENT_RECORD).values({name: sa.bindparam(name) for name in PaymentRecord._fields})
    there = sa.tuple_(*(PAYMENT_RECORD.c[name] for name in NEWNESS))
    given = sa.tuple_(*(insert.excluded[name] for name in NEWNESS))
    return insert.on_conflict_do_update(
        index_elements=PAYMENT_RECORD_KEY,
        set_={name: insert.excluded[name] for name in PaymentRecord._fields if name not in PAYMENT_RECORD_KEY},
        where=there < given,
    )


RECORD_OF_KIND = (PAYMENT_RECORD.c.account == sa.bindparam("account"), PAYMENT_RECORD.c.kind == sa.bindparam("kind"))

OWN_PAYMENT_RECORD = (*RECORD_OF_KIND, PAYMENT_RECORD.c.organisation == sa.bindparam("organisation"))

# As one comparison of a pair, which both databases look up in the index: a page far behind costs no more than the first.
PAYMENT_RECORD_IS_BEHIND: sa.ColumnElement[bool] = sa.tuple_(PAYMENT_RECORD.c.created, PAYMENT_RECORD.c.id) < sa.tuple_(
    sa.bindparam("before", type_=sa.BigInteger), sa.bindparam("after", type_=sa.Text)
)

LIST_PAYMENT_RECORDS = Query(
    PaymentRecord,
    sa.select(*PAYMENT_RECORD_COLUMNS)
    .where(*OWN_PAYMENT_RECORD, PAYMENT_RECORD_IS_BEHIND)
    .order_by(PAYMENT_RECORD.c.created.desc(), PAYMENT_RECORD.c.id.desc())
    .limit(sa.bindparam("most")),
)

LINKED = Query(
    LinkedRecord,
    lambda dialect: (
        sa.select(*(PAYMENT_RECORD.c[name] for name in LinkedRecord._fields))
        .where(
            PAYMENT_RECORD.c.account == sa.bindparam("account"),
            PAYMENT_RECORD.c.kind.in_(["refund", "dispute"]),
            PAYMENT_RECORD.c.charge.in_(bound_list(dialect, "charges")),
        )
        .order_by(PAYMENT_RECORD.c.created, PAYMENT_RECORD.c.id)
    ),
)


@first_row(str)
def lock_payment_account(*, account: str) -> sa.Executable:
    """Whose account it is; whatever else writes about its money waits until this transaction has ended."""
    return sa.select(BILLING_CONFIG.c.organisation).where(BILLING_CONFIG.c.connect_account == account).with_for_update()


@changes_one
def put_payment_record(*, record: PaymentRecord) -> StatementBuild:
    """Store a record; False when the stored one is as new or newer."""
    return put_record_query


@first_row(PaymentRecord)
def find_payment_record(*, account: str, kind: PaymentRecordKind, id: str) -> sa.Executable:
    return sa.select(*PAYMENT_RECORD_COLUMNS).where(*RECORD_OF_KIND, PAYMENT_RECORD.c.id == id)


@first_row(RecordPlace)
def payment_record_place(*, account: str, organisation: str, kind: PaymentRecordKind, id: str) -> sa.Executable:
    """The place of one of the organisation's records in its list, or None."""
    return sa.select(PAYMENT_RECORD.c.created, PAYMENT_RECORD.c.id).where(*OWN_PAYMENT_RECORD, PAYMENT_RECORD.c.id == id)


def list_payment_records(
    connection: Connection, *, account: str, organisation: str, kind: PaymentRecordKind, after: RecordPlace = FIRST_RECORD_PLACE, most: int
) -> list[PaymentRecord]:
    """At most `most` records behind the place `after`, newest first."""
    named = {"account": account, "organisation": organisation, "kind": kind}
    return connection.all(LIST_PAYMENT_RECORDS, **named, before=after.created, after=after.id, most=most)


@all_rows(PaymentRecord)
def records_of_charge(*, account: str, kind: PaymentRecordKind, charge: str) -> sa.Executable:
    """What of a kind belongs to a charge, in the order of the ids."""
    return sa.select(*PAYMENT_RECORD_COLUMNS).where(*RECORD_OF_KIND, PAYMENT_RECORD.c.charge == charge).order_by(PAYMENT_RECORD.c.id)


def charges_of(connection: Connection, *, account: str, payment_intent: str) -> list[PaymentRecord]:
    """The charges that tried to pay `payment_intent`."""
    return records_of_charge(connection, account=account, kind="charge", charge=payment_intent)


def linked_to(connection: Connection, *, account: str, charges: Sequence[str]) -> list[LinkedRecord]:
    """The refunds and disputes of these charges, oldest first."""
    return connection.all(LINKED, account=account, charges=pack_rows([[charge] for charge in charges])) if charges else []


PAYMENT_EVENT = PaymentEventTable.table


@changes_one
def take_payment_event(*, id: str, type: str, account: str | None, now: Annotated[float, int]) -> StatementBuild:
    """Whether the event is new; its effect belongs into the same transaction. `now`: Unix seconds."""
    return insert_once(PAYMENT_EVENT, key=["id"], id=id, type=type, account=account, received=now)


@changes_rows
def sweep_payment_events(*, before: Annotated[float, int], most: int) -> sa.Executable:
    """Forget the ids of the oldest events that were taken long ago: their records say by themselves what is newer."""
    return delete_oldest(PAYMENT_EVENT, PAYMENT_EVENT.c.received < before, PAYMENT_EVENT.c.received, most)


PAYMENT_ATTEMPT = PaymentAttemptTable.table

AttemptKind = Literal["refund", "payout"]

PaymentAttemptState = Literal["done", "failed", "unknown"]

OPEN_ATTEMPT_STATES = ("sending", "unknown")

ATTEMPT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(PAYMENT_ATTEMPT.c[name] for name in PaymentAttempt._fields)

ATTEMPT_IS_OPEN = PAYMENT_ATTEMPT.c.state.in_(OPEN_ATTEMPT_STATES)

CONCLUDE_ATTEMPT = Query(
    PaymentAttempt,
    sa.update(PAYMENT_ATTEMPT)
    .where(PAYMENT_ATTEMPT.c.id == sa.bindparam("attempt"), ATTEMPT_IS_OPEN)
    .values(state=sa.bindparam("to"), made=sa.bindparam("found"), updated=sa.bindparam("now")),
)

# Refunds that were begun before orders had numbers: their keys hold what opens the order, and are needed until nothing is sent any more.
HIDE_TOKEN = Command(
    lambda _: sa.update(PAYMENT_ATTEMPT).where(PAYMENT_ATTEMPT.c.id == sa.bindparam("attempt")).values(processor_key=sa.bindparam("shown"))
)


@writes
def insert_attempt(*, attempt: PaymentAttempt) -> sa.Executable:
    """Insert an attempt that is about to be sent."""
    return sa.insert(PAYMENT_ATTEMPT).values(attempt._asdict())


@first_row(PaymentAttempt)
def find_attempt(*, attempt: str) -> sa.Executable:
    return sa.select(*ATTEMPT_COLUMNS).where(PAYMENT_ATTEMPT.c.id == attempt)


@first_row(PaymentAttempt)
def attempt_by_key(*, organisation: str, kind: AttemptKind, claim_key: str) -> sa.Executable:
    """The newest attempt under a caller's key, or None."""
    return (
        sa.select(*ATTEMPT_COLUMNS)
        .where(
            PAYMENT_ATTEMPT.c.organisation == organisation,
            PAYMENT_ATTEMPT.c.kind == kind,
            PAYMENT_ATTEMPT.c.claim_key == claim_key,
        )
        .order_by(PAYMENT_ATTEMPT.c.id.desc())
        .limit(1)
    )


@all_rows(PaymentAttempt)
def open_attempts_of(*, account: str, charge: str) -> sa.Executable:
    """Refunds of a charge that are under way, or that nobody knows the outcome of."""
    return sa.select(*ATTEMPT_COLUMNS).where(PAYMENT_ATTEMPT.c.account == account, PAYMENT_ATTEMPT.c.charge == charge, ATTEMPT_IS_OPEN)


@all_rows(PaymentAttempt)
def open_attempts(*, account: str, most: int) -> sa.Executable:
    """All that is under way or unknown in an account, oldest first; also of an organisation that had the account before."""
    return (
        sa.select(*ATTEMPT_COLUMNS)
        .where(PAYMENT_ATTEMPT.c.account == account, ATTEMPT_IS_OPEN)
        .order_by(PAYMENT_ATTEMPT.c.created, PAYMENT_ATTEMPT.c.id)
        .limit(most)
    )


def conclude_attempt(connection: Connection, *, attempt: str, state: PaymentAttemptState, made: str | None, now: float) -> bool:
    """Store what came of an attempt, and the id `made` at the processor; False when that was known. `now`: Unix seconds."""
    settled = connection.first(CONCLUDE_ATTEMPT, attempt=attempt, to=state, found=made, now=int(now))
    if settled is None:
        return False
    if settled.state not in OPEN_ATTEMPT_STATES and (shown := without_order_tokens(settled.processor_key)) != settled.processor_key:
        connection.run(HIDE_TOKEN, attempt=attempt, shown=shown)
    return True


@first_row(PaymentAttempt)
def touch_attempt(*, attempt: str, now: Annotated[float, int]) -> sa.Executable:
    """It is about to be sent once more, as it was: what may have had an effect before is forgotten by nobody. None: it was settled."""
    return sa.update(PAYMENT_ATTEMPT).where(PAYMENT_ATTEMPT.c.id == attempt, ATTEMPT_IS_OPEN).values(state="unknown", updated=now)


@writes
def forget_attempt(*, attempt: str) -> sa.Executable:
    """Delete an attempt that surely never left."""
    return sa.delete(PAYMENT_ATTEMPT).where(PAYMENT_ATTEMPT.c.id == attempt, PAYMENT_ATTEMPT.c.state == "sending")


CHARGE_REFUNDS = ChargeRefundsTable.table


class ChargeRefunds(NamedTuple):
    """A charge's amount, and what of it was taken and not given back."""

    amount: int
    reserved: int


REFUND_OF_CHARGE: sa.ColumnElement[bool] = (CHARGE_REFUNDS.c.account == sa.bindparam("account")) & (
    CHARGE_REFUNDS.c.charge == sa.bindparam("charge")
)

RESERVED_WITH_MORE: sa.ColumnElement[int] = CHARGE_REFUNDS.c.reserved + sa.bindparam("amount", type_=sa.BigInteger)


@writes
def open_refunds(*, account: str, charge: str, amount: int, reserved: int, now: Annotated[float, int]) -> StatementBuild:
    """Insert the row of a charge at its first refund; amounts in minor units. `now`: Unix seconds."""
    values = {"account": account, "charge": charge, "amount": amount, "reserved": reserved, "updated": now}
    return insert_once(CHARGE_REFUNDS, key=["account", "charge"], **values)


@first_row(ChargeRefunds)
def find_refunds(*, account: str, charge: str) -> sa.Executable:
    """What is reserved of a charge; None: nobody has refunded it through us yet."""
    return sa.select(CHARGE_REFUNDS.c.amount, CHARGE_REFUNDS.c.reserved).where(REFUND_OF_CHARGE)


@writes
def set_refund_reserved(*, account: str, charge: str, reserved: int, now: Annotated[float, int]) -> sa.Executable:
    """Set what is reserved of a charge, by all that is known now; the caller has locked the account. `now`: Unix seconds."""
    return sa.update(CHARGE_REFUNDS).where(REFUND_OF_CHARGE).values(reserved=reserved, updated=now)


@changes_one
def add_refund_reserved(*, account: str, charge: str, amount: int, now: Annotated[float, int]) -> sa.Executable:
    """Reserve `amount` (minor units) more of a charge; False where less is left. `now`: Unix seconds."""
    return (
        sa.update(CHARGE_REFUNDS)
        .where(REFUND_OF_CHARGE, CHARGE_REFUNDS.c.amount >= RESERVED_WITH_MORE)
        .values(reserved=RESERVED_WITH_MORE, updated=sa.bindparam("now", type_=sa.BigInteger))
    )
