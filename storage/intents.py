"""Intents: one eSIM each. Who may attach a plan is decided by conditional updates, never by a read before."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Annotated, NamedTuple

import orjson
import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import Conflict, StoreUnavailable
from registry.ids import Ids, first_id, id_bounds
from storage.engine.drivers import Value
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    TableDescription,
    bound_list,
    first_row,
    insert_once,
    pack_rows,
    unindexed,
    writes,
)
from storage.events import NewEvent, emit_event

REMOVABLE_INTENT = sa.text("livemode = 0 OR status = 'failed'")


class IntentRow(NamedTuple):
    """An intent as it is shown: `plan`, `details` (its metadata) and `error` are JSON text, `esim` is sealed."""

    id: Key
    organisation: str
    status: str
    livemode: int
    plan_id: str | None
    plan: str | None
    details: str
    iccid: Annotated[str, Field(unique=True)] | None
    esim: str | None
    error: str | None
    created: BigInt


class IntentTable(TableDescription, row=IntentRow, table=True):
    """A request for one eSIM. `plan` is the plan as it was when it was attached; `esim` is sealed. Both figures of usage: usage.py."""

    used_bytes: BigInt
    reported_bytes: int = Field(sa_type=sa.BigInteger, sa_column_kwargs={"server_default": "0"})
    notified_percent: int
    attached_at: BigInt | None
    __table_args__ = (
        sa.Index("intent_organisation", "organisation", "id"),
        sa.Index("intent_of_status", "organisation", "status", "id"),
        # What may be removed by its age: no line of the network is such an intent's.
        sa.Index("intent_removable", "id", sqlite_where=REMOVABLE_INTENT),
    )


class IntentLabelTable(TableDescription, table=True):
    """An entry of the metadata of an intent, so that the intent is found by its value, whatever the key."""

    organisation: str
    value: str
    intent: str
    key: str
    __table_args__ = (sa.PrimaryKeyConstraint("organisation", "value", "intent", "key"), CLUSTERED)


class UsageRecordTable(TableDescription, table=True):
    """Usage a developer reported for a test intent."""

    id: str = Field(primary_key=True)
    organisation: str
    intent: str = Field(foreign_key="intent.id")
    quantity_mb: float
    livemode: int
    created: BigInt
    __table_args__ = (sa.Index("usage_record_intent", "intent", "id"),)


INTENT = IntentTable.table

INTENT_LABEL = IntentLabelTable.table

USAGE_RECORD = UsageRecordTable.table

LOST_ERROR = orjson.dumps(
    {
        "code": "OUTCOME_UNKNOWN",
        "message": "Whether an eSIM was drawn is not known yet; it is found out by itself, and never drawn a second time",
    }
).decode()


class IntentNotConfirmable(Conflict):
    """The intent has left requires_plan."""

    code = "intent_not_confirmable"


class IntentResult(NamedTuple):
    """What an issued eSIM writes into its intent."""

    plan_id: str
    plan: str
    livemode: int
    iccid: str
    esim: str


class IntentHolder(NamedTuple):
    id: str
    organisation: str
    livemode: int
    plan_id: str | None


class AwaitedPlan(NamedTuple):
    """What an intent whose eSIM is being drawn knows: its plan."""

    plan_id: str
    plan: str


INTENT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(INTENT.c[name] for name in IntentRow._fields)

OWN_INTENT = INTENT.c.organisation == sa.bindparam("organisation")

INSERT_INTENT = Command(insert_once(INTENT, IntentRow._fields, key=["iccid"], used_bytes=0, notified_percent=0, attached_at=None))

ATTACH_PLAN = Query(
    IntentRow,
    sa.update(INTENT)
    .where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.organisation == sa.bindparam("organisation"), INTENT.c.status == "requires_plan")
    .values({"status": "succeeded"} | {name: sa.bindparam(f"new_{name}") for name in IntentResult._fields}),
)

# A live plan: the intent is processing while its eSIM is drawn, then the ledger's row decides what becomes of it.
THIS_INTENT = (INTENT.c.id == sa.bindparam("intent")) & (INTENT.c.organisation == sa.bindparam("organisation"))

# What no line of the network belongs to: test intents, and live ones that failed (as the index intent_removable spells it).
INTENT_IS_REMOVABLE = (INTENT.c.livemode == sa.literal_column("0", sa.Integer)) | (
    INTENT.c.status == sa.literal_column("'failed'", sa.Text)
)


class LabelledIntent(NamedTuple):
    """An intent with its metadata as JSON text."""

    id: str
    organisation: str
    details: str


OLD_INTENTS = Query(
    LabelledIntent,
    sa.select(INTENT.c.id, INTENT.c.organisation, INTENT.c.details)
    .where(INTENT_IS_REMOVABLE, INTENT.c.id < sa.bindparam("last", type_=sa.Text), INTENT.c.status != "processing")
    .order_by(INTENT.c.id)
    .limit(sa.bindparam("most"))
    .with_for_update(),
)

REMOVE_USAGE_RECORDS = Command(lambda dialect: sa.delete(USAGE_RECORD).where(USAGE_RECORD.c.intent.in_(bound_list(dialect, "ids"))))

FORGET_INTENT = Query(
    LabelledIntent,
    sa.delete(INTENT).where(THIS_INTENT, INTENT.c.status == "processing").returning(INTENT.c.id, INTENT.c.organisation, INTENT.c.details),
)

LABEL_COLUMNS = ("organisation", "value", "intent", "key")

INSERT_LABEL = Command(insert_once(INTENT_LABEL, LABEL_COLUMNS))

REMOVE_LABEL = Command(sa.delete(INTENT_LABEL).where(*(INTENT_LABEL.c[name] == sa.bindparam(name) for name in LABEL_COLUMNS)))

REMOVE_INTENTS = Command(lambda dialect: sa.delete(INTENT).where(INTENT.c.id.in_(bound_list(dialect, "ids")), INTENT_IS_REMOVABLE))


def insert_intent(connection: Connection, *, row: IntentRow, event: NewEvent | None, ids: Ids) -> None:
    """A new intent and, when it has its eSIM already, the event that says so. Raises StoreUnavailable when its ICCID is taken."""
    if connection.run(INSERT_INTENT, **row._asdict()) == 0:
        raise iccid_is_taken()
    connection.run_many(INSERT_LABEL, labels_of(row))
    if event is not None:
        emit_event(connection, event=event, ids=ids)


def labels_of(row: IntentRow | LabelledIntent) -> list[dict[str, Value]]:
    """The entries of its metadata, as they are looked up."""
    metadata: Mapping[str, str] = {} if row.details == "{}" else orjson.loads(row.details)
    return [{"organisation": row.organisation, "value": value, "intent": row.id, "key": key} for key, value in metadata.items()]


@first_row(IntentRow)
def find_intent(*, intent: str, organisation: str) -> sa.Executable:
    """The intent with the id `intent`, or None where `organisation` has none such."""
    return sa.select(*INTENT_COLUMNS).where(INTENT.c.id == intent, OWN_INTENT)


@first_row(IntentHolder)
def find_holder(*, iccid: str) -> sa.Executable:
    """The intent that owns `iccid`, of any organisation; None where none does."""
    return sa.select(INTENT.c.id, INTENT.c.organisation, INTENT.c.livemode, INTENT.c.plan_id).where(INTENT.c.iccid == iccid)


class IntentFilter(NamedTuple):
    """Which intents; None: whatever it is. `since` is included, `until` is not: when they were made, Unix seconds.

    `value`: one of their metadata, whole, that of `key` where it is given.
    """

    status: str | None = None
    since: float | None = None
    until: float | None = None
    value: str | None = None
    key: str | None = None


PAGE_ABOVE, PAGE_BELOW = (sa.bindparam(name, type_=sa.Text) for name in ("above", "below"))
PAGE_SIZE = sa.bindparam("most", type_=sa.Integer)


@lru_cache
def intent_page(names: frozenset[str]) -> Query[IntentRow]:
    """The newest intents with ids from one to before another that have what `names` says, of `status`, `value` and `key`: those of a status
    stand in an index in this order, those of a value among the labels."""
    if "value" not in names:
        return Query(IntentRow, partial(unlabelled_page, columns=[INTENT.c[name] for name in ("organisation", *sorted(names))]))
    id, label = INTENT_LABEL.c.intent, sorted(names & {"value", "key"})
    columns = [*(INTENT_LABEL.c[name] for name in label), *(INTENT.c[name] for name in ("organisation", *sorted(names & {"status"})))]
    bounds = [id >= PAGE_ABOVE, id < PAGE_BELOW]
    bounds += [(unindexed(column) if column.table is INTENT else column) == sa.bindparam(column.name, type_=sa.Text) for column in columns]
    bounds.append(INTENT_LABEL.c.organisation == sa.bindparam("organisation", type_=sa.Text))
    if "key" not in names:  # several keys of one intent may have the value: it is found by the first of them
        other, same = INTENT_LABEL.alias("other"), ("organisation", "value", "intent")
        former = (*(other.c[name] == INTENT_LABEL.c[name] for name in same), other.c.key < INTENT_LABEL.c.key)
        bounds.append(~sa.exists().where(*former))
    found = sa.select(*INTENT_COLUMNS).join_from(INTENT_LABEL, INTENT, id == INTENT.c.id)
    return Query(IntentRow, found.where(*bounds).order_by(id.desc()).limit(PAGE_SIZE))


def unlabelled_page(dialect: Dialect, *, columns: Sequence[sa.Column[str]]) -> sa.Executable:
    """Those of an organisation, and of a status if that is the second of the columns.

    PostgreSQL keeps a plan for any organisation. Where a few have nearly all intents, that goes through everybody's by their ids, to the
    last one for whoever has none. In a comparison of rows the columns come first, as in the index of them.
    """
    found, id = sa.select(*INTENT_COLUMNS), INTENT.c.id
    values = [sa.bindparam(column.name, type_=sa.Text) for column in columns]
    if dialect.name == "sqlite":
        equal = [column == value for column, value in zip(columns, values, strict=True)]
        return found.where(id >= PAGE_ABOVE, id < PAGE_BELOW, *equal).order_by(id.desc()).limit(PAGE_SIZE)
    place = sa.tuple_(*columns, id)
    bounds = (place >= sa.tuple_(*values, PAGE_ABOVE), place < sa.tuple_(*values, PAGE_BELOW))
    return found.where(*bounds).order_by(*(column.desc() for column in (*columns, id))).limit(PAGE_SIZE)


def list_intents(connection: Connection, *, organisation: str, asked: IntentFilter, after: str | None, most: int) -> list[IntentRow]:
    """At most `most` intents that fit, behind the id `after`, newest first. Ids begin with the time, so that days are bounds of ids."""
    above, below = id_bounds("cni_", asked.since, asked.until, after)
    given: dict[str, Value] = {name: value for name in ("status", "value", "key") if (value := getattr(asked, name)) is not None}
    return connection.all(intent_page(frozenset(given)), **given, organisation=organisation, above=above, below=below, most=most)


def attach_plan(
    connection: Connection, *, intent: str, organisation: str, issued: IntentResult, event: NewEvent, ids: Ids
) -> tuple[IntentRow | None, bool]:
    """Give an intent that waits for a plan its eSIM: the row as it is now, and whether this call did it."""
    if find_holder(connection, iccid=issued.iccid) is not None:
        raise iccid_is_taken()
    changed = connection.first(
        ATTACH_PLAN, intent=intent, organisation=organisation, **{f"new_{k}": v for k, v in issued._asdict().items()}
    )
    if changed is not None:
        emit_event(connection, event=event, ids=ids)
        return changed, True
    return find_intent(connection, intent=intent, organisation=organisation), False


@first_row(IntentRow)
def await_esim(*, intent: str, organisation: str, awaited: AwaitedPlan) -> sa.Executable:
    """An intent that waited for a plan waits for its eSIM now; None when it does not wait for a plan any more."""
    return (
        sa.update(INTENT)
        .where(THIS_INTENT, INTENT.c.status == "requires_plan")
        .values(status="processing", livemode=1, plan_id=awaited.plan_id, plan=awaited.plan)
    )


@writes
def await_plan_again(*, intent: str, organisation: str) -> sa.Executable:
    """Nothing was sent for an intent: it waits for a plan as before."""
    return (
        sa.update(INTENT)
        .where(THIS_INTENT, INTENT.c.status == "processing")
        .values(status="requires_plan", livemode=0, plan_id=None, plan=None)
    )


def forget_intent(connection: Connection, *, intent: str, organisation: str) -> None:
    """Delete an intent of which nothing was sent and whose key is free."""
    forgotten = connection.first(FORGET_INTENT, intent=intent, organisation=organisation)
    connection.run_many(REMOVE_LABEL, [] if forgotten is None else labels_of(forgotten))


@first_row(IntentRow)
def give_esim(*, intent: str, organisation: str, iccid: str, esim: str) -> sa.Executable:
    """The intent after its eSIM was drawn; `esim` is sealed. None when it is not processing."""
    return (
        sa.update(INTENT).where(THIS_INTENT, INTENT.c.status == "processing").values(status="succeeded", iccid=iccid, esim=esim, error=None)
    )


@first_row(IntentRow)
def end_intent(*, intent: str, organisation: str, error: str) -> sa.Executable:
    """The intent after it failed, since no eSIM was drawn, or it was taken back; None when it had ended otherwise."""
    return (
        sa.update(INTENT)
        .where(THIS_INTENT, INTENT.c.status.in_(["processing", "succeeded"]))
        .values(status="failed", iccid=None, esim=None, error=error)
    )


@writes
def reopen_intent(*, intent: str, organisation: str) -> sa.Executable:
    """Make a failed live intent processing again: an eSIM may have been drawn for it."""
    return sa.update(INTENT).where(THIS_INTENT, INTENT.c.status == "failed", INTENT.c.livemode == 1).values(status="processing")


@first_row(IntentRow)
def note_intent_error(*, intent: str, organisation: str, error: str) -> sa.Executable:
    """The intent, if it is processing, with the JSON text of what is not known of it."""
    return sa.update(INTENT).where(THIS_INTENT, INTENT.c.status == "processing").values(error=error)


def sweep_intents(connection: Connection, *, before: float, most: int) -> int:
    """Remove the oldest test intents and failed ones with their usage records; their keys stay. `before`: Unix seconds."""
    found = connection.all(OLD_INTENTS, last=first_id("cni_", before), most=most)
    old = pack_rows([[intent.id] for intent in found])
    connection.run_many(REMOVE_LABEL, [label for intent in found for label in labels_of(intent)])
    connection.run(REMOVE_USAGE_RECORDS, ids=old)
    return connection.run(REMOVE_INTENTS, ids=old)


def iccid_is_taken() -> StoreUnavailable:
    """Two random ICCIDs met (once in about 10^14 pairs): nothing was done, and the next call draws another."""
    return StoreUnavailable("The ICCID that was drawn is taken; nothing was done. Repeat the call, with the same key if it has one")


def intent_not_confirmable(status: str) -> IntentNotConfirmable:
    """The refusal of a second plan, and of a call that came while another one drew the eSIM, which then was not drawn."""
    if status == "requires_plan":
        return IntentNotConfirmable(
            "Another call was confirming this intent when this one began, and ended without an eSIM; this one did nothing",
            hint="Confirm it once more",
        )
    return IntentNotConfirmable(
        f"This intent is {status}; only an intent in requires_plan takes a plan",
        hint="Read it with get_connectivity_intent, or create a new one with create_connectivity_intent",
    )
