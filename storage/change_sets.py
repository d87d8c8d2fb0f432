"""Change sets: one decision about many lines, from the plan through the sending of its rows to the end, and who works on which now."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    all_rows,
    changes_one,
    changes_rows,
    first_row,
    or_last,
    row_exists,
    value_or,
    writes,
)
from storage.organisations import lock_organisation

OPEN_SETS_LIMIT = 10
RESTRICTED_SETS_LIMIT = 5
"""Of a credential that may do less than its person, so that others always have room."""
PLAN_SECONDS = 86_400
"""A plan that is older is not applied any more."""
SETS_KEPT_SECONDS = 90 * 86_400
WORK_STATES = ("planning", "applying")


class ChangeSet(NamedTuple):
    """A set. Times are Unix seconds, 0.0: not yet; amounts are euro cents; `change`, `lines` and `stop` are JSON.

    `lines`: the ICCIDs that are still to be read, each with its own value or null. `position`: how many of the lines were read. `digest`:
    over all rows, in their order. `cost`: of all rows whose cost is known; `largest_cost`: of one row, at most. `undo_of`: the set whose
    rows this one takes back, '' for none. The asker is `principal` with `credential`, '' for none; `approver`: who approved the set, ''
    where nobody had to. `stop`: why rows were not sent. `charged`: JSON, what was taken from the limits of the asker's credential when
    the set was applied, '' for nothing.
    """

    id: Key
    organisation: str
    state: str
    action: str
    change: str
    lines: str
    line_count: int
    undo_of: str
    actor_kind: str
    principal: str
    credential: str
    approver: str
    created: float
    position: int
    digest: str
    planned_at: float
    expires_at: float
    applied_at: float
    finished_at: float
    planned: int
    skipped: int
    sent: int
    done: int
    failed: int
    unknown: int
    not_sent: int
    irreversible: int
    cost: BigInt
    largest_cost: BigInt
    stop: str
    charged: str
    lease: str
    lease_until: float
    served: float
    due: float


class ChangeSetTable(TableDescription, row=ChangeSet, table=True):
    """One change of many lines: what it is, how far it is, and who works on it."""

    __table_args__ = (
        sa.Index("change_set_organisation", "organisation", "id"),
        sa.Index("change_set_work", "state", "due"),
        sa.Index("change_set_age", "created"),
    )


CHANGE_SET = ChangeSetTable.table

SET_COLUMNS = [CHANGE_SET.c[name] for name in ChangeSet._fields]

THIS_SET = CHANGE_SET.c.id == sa.bindparam("change_set", type_=sa.Text)

HOLDS_SET = CHANGE_SET.c.lease == sa.bindparam("token", type_=sa.Text)

INSERT_SET = Command(lambda _: sa.insert(CHANGE_SET).values({name: sa.bindparam(name) for name in ChangeSet._fields}))

IS_OPEN = sa.or_(
    CHANGE_SET.c.state.in_(WORK_STATES),
    sa.and_(CHANGE_SET.c.state == "planned", CHANGE_SET.c.expires_at > sa.bindparam("now", type_=sa.Double)),
)


class OpenSets(NamedTuple):
    """How many open sets an organisation has, and how many of them one credential has planned."""

    all: int
    own: int


IS_OWN_SET = CHANGE_SET.c.credential == sa.bindparam("credential", type_=sa.Text)
COUNT_OPEN = Query(
    OpenSets,
    sa.select(sa.func.count().label("all"), sa.func.coalesce(sa.func.sum(sa.case((IS_OWN_SET, 1), else_=0)), 0).label("own"))
    .select_from(CHANGE_SET)
    .where(CHANGE_SET.c.organisation == sa.bindparam("organisation", type_=sa.Text), IS_OPEN),
)


def insert_change_set(connection: Connection, *, row: ChangeSet) -> OpenSets:
    """Inserts `row`; the open sets with it. Whoever calls this undoes the transaction where they are too many.

    Sets of one organisation are inserted one after the other, so that none is counted without another that is being inserted.
    """
    lock_organisation(connection, organisation=row.organisation)
    connection.run(INSERT_SET, **row._asdict())
    found = connection.first(COUNT_OPEN, organisation=row.organisation, credential=row.credential, now=row.created)
    return found or OpenSets(0, 0)


@first_row(ChangeSet)
def find_change_set(*, change_set: str, organisation: str) -> sa.Executable:
    """The set with this id, if it is the organisation's."""
    return sa.select(*SET_COLUMNS).where(THIS_SET, CHANGE_SET.c.organisation == organisation)


SETS_BEHIND = (
    sa.select(*SET_COLUMNS)
    .where(CHANGE_SET.c.organisation == sa.bindparam("organisation"), CHANGE_SET.c.id < sa.bindparam("after"))
    .order_by(CHANGE_SET.c.id.desc())
    .limit(sa.bindparam("most"))
)


@all_rows(ChangeSet)
def list_sets(*, organisation: str, after: Annotated[str | None, or_last("chg_")], most: int) -> sa.Executable:
    """At most `most` sets of the organisation behind the id `after`, newest first."""
    return SETS_BEHIND


@all_rows(ChangeSet)
def list_own_sets(*, organisation: str, credential: str, after: Annotated[str | None, or_last("chg_")], most: int) -> sa.Executable:
    """The same of those that were made with `credential`."""
    return SETS_BEHIND.where(CHANGE_SET.c.credential == credential)


@changes_one
def begin_applying(*, change_set: str, digest: str, approver: str, charged: str, now: float) -> sa.Executable:
    """The set is to be sent from now on; False unless it is planned, with this digest, and not too old."""
    return (
        sa.update(CHANGE_SET)
        .where(
            THIS_SET,
            CHANGE_SET.c.state == "planned",
            CHANGE_SET.c.digest == sa.bindparam("digest", type_=sa.Text),
            CHANGE_SET.c.expires_at > sa.bindparam("now", type_=sa.Double),
        )
        .values(state="applying", approver=approver, charged=charged, applied_at=sa.bindparam("now", type_=sa.Double), due=0.0)
    )


@changes_one
def end_planned_set(*, change_set: str, stop: str, now: float) -> sa.Executable:
    """A set of which nothing was sent is given up; False where it is under way or at its end."""
    return (
        sa.update(CHANGE_SET)
        .where(THIS_SET, CHANGE_SET.c.state.in_(("planning", "planned")))
        .values(state="cancelled", stop=stop, finished_at=now, lines="", lease="")
    )


@changes_one
def give_up_plan(*, change_set: str, token: str, stop: str, now: float) -> sa.Executable:
    """A plan that cannot be read to its end is given up; False where it is none, or another process works on it."""
    return (
        sa.update(CHANGE_SET)
        .where(THIS_SET, HOLDS_SET, CHANGE_SET.c.state == "planning")
        .values(state="cancelled", stop=stop, finished_at=now, lines="", lease="")
    )


@changes_one
def stop_set(*, change_set: str, stop: str) -> sa.Executable:
    """A set under way sends nothing more, and why; False where it is not under way, or was stopped before."""
    return sa.update(CHANGE_SET).where(THIS_SET, CHANGE_SET.c.state == "applying", CHANGE_SET.c.stop == "").values(stop=stop, due=0.0)


SETS_NOW = sa.bindparam("now", type_=sa.Double)

OTHER_SET = CHANGE_SET.alias("other")

# One set of an organisation at a time: its pace is the organisation's, and nobody's ten sets keep everybody else's waiting.
SET_IS_BUSY = sa.exists().where(
    OTHER_SET.c.organisation == CHANGE_SET.c.organisation,
    OTHER_SET.c.state.in_(WORK_STATES),
    OTHER_SET.c.lease != "",
    OTHER_SET.c.lease_until > SETS_NOW,
)

# Said of the set itself, too: PostgreSQL asks a row that another process has claimed meanwhile for its own columns only.
SET_IS_FREE = sa.or_(CHANGE_SET.c.lease == "", CHANGE_SET.c.lease_until <= SETS_NOW)

SET_IS_DUE = sa.and_(CHANGE_SET.c.state.in_(WORK_STATES), CHANGE_SET.c.due <= SETS_NOW, SET_IS_FREE, ~SET_IS_BUSY)

NEXT_SET = sa.select(CHANGE_SET.c.id).where(SET_IS_DUE).order_by(CHANGE_SET.c.served, CHANGE_SET.c.id).limit(sa.literal_column("1"))

CLAIM_SET = Query(
    ChangeSet,
    sa.update(CHANGE_SET)
    .where(CHANGE_SET.c.id.in_(NEXT_SET.with_for_update(skip_locked=True).scalar_subquery()))
    .values(lease=sa.bindparam("token", type_=sa.Text), lease_until=sa.bindparam("until", type_=sa.Double), served=SETS_NOW)
    .returning(*SET_COLUMNS),
)


@row_exists
def any_set_due(*, now: float) -> sa.Executable:
    """Whether a set waits to be worked on and no other one of its organisation is; a read, so that idle workers take no lock."""
    return NEXT_SET


def claim_next_set(connection: Connection, *, token: str, now: float, until: float) -> ChangeSet | None:
    """Takes the lease of the due set that was served longest ago, until `until`; None where none is due. Times: Unix seconds."""
    return connection.first(CLAIM_SET, token=token, now=now, until=until)


@changes_one
def renew_set_lease(*, change_set: str, token: str, until: float) -> sa.Executable:
    """Holds the lease until `until`, Unix seconds; False where it was lost, or the set has come to its end."""
    return sa.update(CHANGE_SET).where(THIS_SET, HOLDS_SET, CHANGE_SET.c.state.in_(WORK_STATES)).values(lease_until=until)


@changes_one
def give_set_back(*, change_set: str, token: str, due: float) -> sa.Executable:
    """Ends a turn: the set is due again at `due`, Unix seconds."""
    return sa.update(CHANGE_SET).where(THIS_SET, HOLDS_SET).values(lease="", lease_until=0.0, due=due)


class ReadLines(NamedTuple):
    """What the reading of some lines of a plan has come to; `digest`: over all rows so far."""

    position: int
    digest: str
    planned: int
    skipped: int
    irreversible: int
    cost: int
    largest_cost: int


@changes_one
def note_lines_read(
    *,
    change_set: str,
    token: str,
    seen: int,
    position: int,
    digest: str,
    planned: int,
    skipped: int,
    irreversible: int,
    cost: int,
    largest_cost: int,
) -> sa.Executable:
    """Counts rows of a plan; False where the lease was lost, or another process has read further than `seen`."""
    return (
        sa.update(CHANGE_SET)
        .where(THIS_SET, HOLDS_SET, CHANGE_SET.c.state == "planning", CHANGE_SET.c.position == seen)
        .values(
            position=position,
            digest=digest,
            planned=CHANGE_SET.c.planned + planned,
            skipped=CHANGE_SET.c.skipped + skipped,
            irreversible=CHANGE_SET.c.irreversible + irreversible,
            cost=CHANGE_SET.c.cost + cost,
            largest_cost=sa.case((CHANGE_SET.c.largest_cost < largest_cost, largest_cost), else_=CHANGE_SET.c.largest_cost),
        )
    )


@changes_one
def finish_plan(*, change_set: str, token: str, now: float) -> sa.Executable:
    """All lines were read: the plan can be applied for a day from now on."""
    return (
        sa.update(CHANGE_SET)
        .where(THIS_SET, HOLDS_SET, CHANGE_SET.c.state == "planning")
        .values(state="planned", lines="", planned_at=now, expires_at=now + PLAN_SECONDS, lease="", lease_until=0.0)
    )


COUNTED_STATES = ("skipped", "done", "failed", "unknown", "not_sent")


@writes
def count_rows(*, change_set: str, sent: int, skipped: int, done: int, failed: int, unknown: int, not_sent: int) -> sa.Executable:
    """Adds to the numbers of rows of a set; a row that leaves a state counts there as -1."""
    changes = {"sent": sent, "skipped": skipped, "done": done, "failed": failed, "unknown": unknown, "not_sent": not_sent}
    return sa.update(CHANGE_SET).where(THIS_SET).values({name: CHANGE_SET.c[name] + change for name, change in changes.items()})


@changes_one
def finish_set(*, change_set: str, token: str, state: str, now: float) -> sa.Executable:
    """No row is left to send: the set is `applied`, `partly_applied` or `cancelled`."""
    return (
        sa.update(CHANGE_SET)
        .where(THIS_SET, HOLDS_SET, CHANGE_SET.c.state == "applying")
        .values(state=state, finished_at=now, lease="", lease_until=0.0)
    )


PLAN_IS_OLD = sa.and_(CHANGE_SET.c.state == "planned", CHANGE_SET.c.expires_at <= SETS_NOW)


@row_exists
def any_old_plan(*, now: float) -> sa.Executable:
    """Whether a plan has become too old; a read, so that idle workers take no lock."""
    return sa.select(CHANGE_SET.c.id).where(PLAN_IS_OLD)


@changes_rows
def expire_plans(*, now: float) -> sa.Executable:
    """Plans that nobody applied in a day are at their end; returns how many."""
    return sa.update(CHANGE_SET).where(PLAN_IS_OLD).values(state="expired", finished_at=SETS_NOW)


@value_or("")
def oldest_ended_set(*, before: float) -> sa.Executable:
    """The id of the oldest set that was made before `before`, Unix seconds, and is at its end; '' where there is none."""
    ended = CHANGE_SET.c.state.not_in(WORK_STATES)
    return sa.select(CHANGE_SET.c.id).where(CHANGE_SET.c.created < before, ended).order_by(CHANGE_SET.c.created).limit(1)


@writes
def delete_change_set(*, change_set: str) -> sa.Executable:
    """Removes a set whose rows are gone."""
    return sa.delete(CHANGE_SET).where(THIS_SET)
