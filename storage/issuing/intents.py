"""Intents: one eSIM each. Who may attach a plan is decided by conditional updates, never by a read before."""

from collections.abc import Sequence
from typing import NamedTuple

import orjson
import sqlalchemy as sa

from registry.errors import Conflict, StoreUnavailable
from registry.ids import Ids, first_id
from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import IntentTable, UsageRecordTable
from storage.statement import Command, Query, table
from storage.webhooks.events import NewEvent, emit

INTENT, RECORD = table(IntentTable), table(UsageRecordTable)
LOST_ERROR = orjson.dumps(
    {
        "code": "OUTCOME_UNKNOWN",
        "message": "Whether an eSIM was drawn is not known yet; it is found out by itself, and never drawn a second time",
    }
).decode()
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "cni_" + "z" * 27


class IntentNotConfirmable(Conflict):
    """The intent has left requires_plan."""

    code = "intent_not_confirmable"


class IntentRow(NamedTuple):
    """An intent as it is shown: `plan`, `details` (its metadata) and `error` are JSON text, `esim` is sealed."""

    id: str
    organisation: str
    status: str
    livemode: int
    plan_id: str | None
    plan: str | None
    details: str
    iccid: str | None
    esim: str | None
    error: str | None
    created: int


class Issued(NamedTuple):
    """What an issued eSIM writes into its intent."""

    plan_id: str
    plan: str
    livemode: int
    iccid: str
    esim: str


class Holder(NamedTuple):
    """The intent that owns an ICCID."""

    id: str
    organisation: str
    livemode: int
    plan_id: str | None


class Awaited(NamedTuple):
    """What an intent whose eSIM is being drawn knows: its plan."""

    plan_id: str
    plan: str


class Taken(NamedTuple):
    """A row was written."""

    id: str


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(INTENT.c[name] for name in IntentRow._fields)
OWN = INTENT.c.organisation == sa.bindparam("organisation")
INSERT = Query(
    Taken,
    lambda dialect: (
        dialect.insert(INTENT)
        .values({name: sa.bindparam(name) for name in IntentRow._fields})
        .values(used_bytes=0, notified_percent=0, attached_at=None)
        .on_conflict_do_nothing(index_elements=["iccid"])
        .returning(INTENT.c.id)
    ),
)
READ = Query(IntentRow, sa.select(*COLUMNS).where(INTENT.c.id == sa.bindparam("intent"), OWN))
LIST = Query(
    IntentRow,
    sa.select(*COLUMNS).where(OWN, INTENT.c.id < sa.bindparam("after")).order_by(INTENT.c.id.desc()).limit(sa.bindparam("most")),
)
HOLDER = Query(
    Holder,
    sa.select(INTENT.c.id, INTENT.c.organisation, INTENT.c.livemode, INTENT.c.plan_id).where(INTENT.c.iccid == sa.bindparam("iccid")),
)
ATTACH = Query(
    IntentRow,
    sa.update(INTENT)
    .where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.organisation == sa.bindparam("owner"), INTENT.c.status == "requires_plan")
    .values({"status": "succeeded"} | {name: sa.bindparam(f"new_{name}") for name in Issued._fields})
    .returning(*COLUMNS),
)

# A live plan: the intent is processing while its eSIM is drawn, then the ledger's row decides what becomes of it.
MINE = (INTENT.c.id == sa.bindparam("intent")) & (INTENT.c.organisation == sa.bindparam("owner"))
AWAIT = Query(
    IntentRow,
    sa.update(INTENT)
    .where(MINE, INTENT.c.status == "requires_plan")
    .values(status="processing", livemode=1, plan_id=sa.bindparam("new_plan_id"), plan=sa.bindparam("new_plan"))
    .returning(*COLUMNS),
)
WAIT_AGAIN = Command(
    sa.update(INTENT).where(MINE, INTENT.c.status == "processing").values(status="requires_plan", livemode=0, plan_id=None, plan=None)
)
FORGET = Command(sa.delete(INTENT).where(MINE, INTENT.c.status == "processing"))
SUCCEED = Query(
    IntentRow,
    sa.update(INTENT)
    .where(MINE, INTENT.c.status == "processing")
    .values(status="succeeded", iccid=sa.bindparam("new_iccid"), esim=sa.bindparam("new_esim"), error=None)
    .returning(*COLUMNS),
)
END = Query(
    IntentRow,
    sa.update(INTENT)
    .where(MINE, INTENT.c.status.in_(["processing", "succeeded"]))
    .values(status="failed", iccid=None, esim=None, error=sa.bindparam("new_error"))
    .returning(*COLUMNS),
)
REOPEN = Command(sa.update(INTENT).where(MINE, INTENT.c.status == "failed", INTENT.c.livemode == 1).values(status="processing"))
NOTE = Query(
    IntentRow,
    sa.update(INTENT).where(MINE, INTENT.c.status == "processing").values(error=sa.bindparam("new_error")).returning(*COLUMNS),
)
# What no line of the network belongs to: test intents, and live ones that failed (as the index intent_removable spells it).
IS_REMOVABLE = (INTENT.c.livemode == sa.literal_column("0", sa.Integer)) | (INTENT.c.status == sa.literal_column("'failed'", sa.Text))
OLD = Query(
    Taken,
    sa.select(INTENT.c.id)
    .where(IS_REMOVABLE, INTENT.c.id < sa.bindparam("last", type_=sa.Text), INTENT.c.status != "processing")
    .order_by(INTENT.c.id)
    .limit(sa.bindparam("most"))
    .with_for_update(),
)
REMOVE_RECORDS = Command(
    lambda dialect: sa.delete(RECORD).where(RECORD.c.intent.in_(sa.select(listed(dialect, "ids", "old", id=sa.Text).c.id)))
)
REMOVE = Command(
    lambda dialect: sa.delete(INTENT).where(INTENT.c.id.in_(sa.select(listed(dialect, "ids", "old", id=sa.Text).c.id)), IS_REMOVABLE)
)


def insert_intent(connection: Connection, *, row: IntentRow, event: NewEvent | None, ids: Ids) -> None:
    """A new intent and, when it has its eSIM already, the event that says so."""
    if connection.first(INSERT, **row._asdict()) is None:
        raise iccid_taken()
    if event is not None:
        emit(connection, event=event, ids=ids)


def find_intent(connection: Connection, *, intent: str, organisation: str) -> IntentRow | None:
    """One intent of an organisation."""
    return connection.first(READ, intent=intent, organisation=organisation)


def find_holder(connection: Connection, *, iccid: str) -> Holder | None:
    """The intent that owns an ICCID, whoever's it is."""
    return connection.first(HOLDER, iccid=iccid)


def list_intents(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[IntentRow]:
    """Newest first."""
    return connection.all(LIST, organisation=organisation, after=after or AFTER_ALL, most=most)


def attach_plan(
    connection: Connection, *, intent: str, organisation: str, issued: Issued, event: NewEvent, ids: Ids
) -> tuple[IntentRow | None, bool]:
    """Give an intent that waits for a plan its eSIM: the row as it is now, and whether this call did it."""
    if find_holder(connection, iccid=issued.iccid) is not None:
        raise iccid_taken()
    changed = connection.first(ATTACH, intent=intent, owner=organisation, **{f"new_{k}": v for k, v in issued._asdict().items()})
    if changed is not None:
        emit(connection, event=event, ids=ids)
        return changed, True
    return connection.first(READ, intent=intent, organisation=organisation), False


def await_esim(connection: Connection, *, intent: str, organisation: str, awaited: Awaited) -> IntentRow | None:
    """An intent that waited for a plan waits for its eSIM now; None when it does not wait for a plan any more."""
    return connection.first(AWAIT, intent=intent, owner=organisation, new_plan_id=awaited.plan_id, new_plan=awaited.plan)


def wait_again(connection: Connection, *, intent: str, organisation: str) -> None:
    """Nothing was sent: the intent waits for a plan as before."""
    connection.run(WAIT_AGAIN, intent=intent, owner=organisation)


def forget_intent(connection: Connection, *, intent: str, organisation: str) -> None:
    """Nothing was sent, and the key is free: the intent never was."""
    connection.run(FORGET, intent=intent, owner=organisation)


def give_esim(connection: Connection, *, intent: str, organisation: str, iccid: str, esim: str) -> IntentRow | None:
    """The eSIM was drawn."""
    return connection.first(SUCCEED, intent=intent, owner=organisation, new_iccid=iccid, new_esim=esim)


def end_intent(connection: Connection, *, intent: str, organisation: str, error: str) -> IntentRow | None:
    """No eSIM was drawn, or it was taken back."""
    return connection.first(END, intent=intent, owner=organisation, new_error=error)


def reopen_intent(connection: Connection, *, intent: str, organisation: str) -> None:
    """An eSIM may have been drawn for it after all."""
    connection.run(REOPEN, intent=intent, owner=organisation)


def note_error(connection: Connection, *, intent: str, organisation: str, error: str) -> IntentRow | None:
    """What is not known about an intent that is processing."""
    return connection.first(NOTE, intent=intent, owner=organisation, new_error=error)


def sweep_intents(connection: Connection, *, before: float, most: int) -> int:
    """Remove the oldest test intents and failed ones with their usage records; their keys stay. `before`: Unix seconds."""
    old = packed([[intent.id] for intent in connection.all(OLD, last=first_id("cni_", before), most=most)])
    connection.run(REMOVE_RECORDS, ids=old)
    return connection.run(REMOVE, ids=old)


def iccid_taken() -> StoreUnavailable:
    """Two random ICCIDs met (once in about 10^14 pairs): nothing was done, and the next call draws another."""
    return StoreUnavailable("The ICCID that was drawn is taken; nothing was done. Repeat the call, with the same key if it has one")


def not_confirmable(status: str) -> IntentNotConfirmable:
    """The refusal of a second plan."""
    return IntentNotConfirmable(
        f"This intent is {status}; only an intent in requires_plan takes a plan",
        hint="Read it with get_connectivity_intent, or create a new one with create_connectivity_intent",
    )
