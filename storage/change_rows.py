"""Rows of change sets: what becomes of one line, the calls that do it, and what came of them."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.change_sets import (
    CHANGE_SET,
    COUNTED_STATES,
    ChangeSet,
    OpenSets,
    ReadLines,
    count_rows,
    delete_change_set,
    end_planned_set,
    find_change_set,
    insert_change_set,
    note_lines_read,
    oldest_ended_set,
    stop_set,
)
from storage.engine.sql import BigInt, Command, Connection, Query, TableDescription, all_rows, changes_one, first_row, row_exists, value_or

ROWS_REMOVED_AT_ONCE = 1000
UNBOUNDED_COST = 1 << 62
"""The cost of a row of which nobody can say what the network takes."""
PARTLY_DONE = "partly_done"
"""The code of a failed row of whose calls some were made."""


class ChangeRow(NamedTuple):
    """A row. `before`, `after`, `steps` and `result` are JSON; `cost` is in euro cents, at most; times are Unix seconds, 0.0: not yet.

    `steps`: the calls that do it, each an operation and its input; `step`: how many of them have been made. `result`: what undoing it has
    to know. `reason` is a sentence of ours, `code` its word, both '' where there is nothing to say.
    """

    number: int
    iccid: str
    subscriber_id: BigInt
    account_id: BigInt
    state: str
    before: str
    after: str
    steps: str
    step: int
    irreversible: int
    cost: BigInt
    result: str
    code: str
    reason: str
    sent_at: float
    settled_at: float


class ChangeRowTable(TableDescription, row=ChangeRow, without=("number",), table=True):
    """What becomes of one line in a change set."""

    change_set: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    __table_args__ = (
        sa.Index("change_row_state", "change_set", "state", "number"),
        sa.Index("change_row_line", "change_set", "iccid", "number"),
    )


CHANGE_ROW = ChangeRowTable.table

ROW_COLUMNS = [CHANGE_ROW.c[name] for name in ChangeRow._fields]

OF_SET = CHANGE_ROW.c.change_set == sa.bindparam("change_set", type_=sa.Text)

THIS_ROW = sa.and_(OF_SET, CHANGE_ROW.c.number == sa.bindparam("number", type_=sa.Integer))

INSERT_ROW = Command(lambda _: sa.insert(CHANGE_ROW).values({name: sa.bindparam(name) for name in ("change_set", *ChangeRow._fields)}))


def known_cost(cost: int) -> int:
    """What is known of a row's cost, in euro cents: 0 of an unbounded one."""
    return 0 if cost >= UNBOUNDED_COST else cost


def insert_rows(connection: Connection, *, change_set: str, rows: Sequence[ChangeRow]) -> None:
    connection.run_many(INSERT_ROW, [{"change_set": change_set, **row._asdict()} for row in rows])


def insert_planned_set(connection: Connection, *, row: ChangeSet, rows: Sequence[ChangeRow]) -> OpenSets:
    """Inserts a set with its rows; the open sets with it."""
    insert_rows(connection, change_set=row.id, rows=rows)
    return insert_change_set(connection, row=row)


def keep_lines_read(connection: Connection, *, change_set: str, token: str, seen: int, read: ReadLines, rows: Sequence[ChangeRow]) -> bool:
    """Keeps the rows of some lines of a plan; False, and nothing, where another process works on it."""
    if not note_lines_read(connection, change_set=change_set, token=token, seen=seen, **read._asdict()):
        return False
    insert_rows(connection, change_set=change_set, rows=rows)
    return True


def rows_in(states: Sequence[str] | None) -> sa.Select[tuple[object]]:
    found = sa.select(*ROW_COLUMNS).where(OF_SET, CHANGE_ROW.c.number > sa.bindparam("after", type_=sa.Integer))
    found = found if states is None else found.where(CHANGE_ROW.c.state.in_(states))
    return found.order_by(CHANGE_ROW.c.number).limit(sa.bindparam("most", type_=sa.Integer))


ANY_ROWS = Query(ChangeRow, rows_in(None))

ROWS_OF_STATE = {
    "all": ANY_ROWS,
    "failed": Query(ChangeRow, rows_in(("failed", "unknown", "not_sent"))),
    "skipped": Query(ChangeRow, rows_in(("skipped",))),
    "planned": Query(ChangeRow, rows_in(("planned",))),
    "sending": Query(ChangeRow, rows_in(("sending",))),
    "unknown": Query(ChangeRow, rows_in(("unknown",))),
    "done": Query(ChangeRow, rows_in(("done",))),
}


def list_rows(connection: Connection, *, change_set: str, which: str, after: int, most: int) -> list[ChangeRow]:
    """At most `most` rows behind the number `after`. `which`: a word of ROWS_OF_STATE; `failed` also holds what was not sent."""
    return connection.all(ROWS_OF_STATE[which], change_set=change_set, after=after, most=most)


@all_rows(ChangeRow)
def rows_of_lines(*, change_set: str, iccid: str) -> sa.Executable:
    """The rows of one line."""
    return sa.select(*ROW_COLUMNS).where(OF_SET, CHANGE_ROW.c.iccid == iccid).order_by(CHANGE_ROW.c.number)


@first_row(ChangeRow)
def find_row(*, change_set: str, number: int) -> sa.Executable:
    """One row of a set."""
    return sa.select(*ROW_COLUMNS).where(THIS_ROW)


@all_rows(str)
def done_iccids(*, change_set: str) -> sa.Executable:
    """The lines with rows that took effect, be it in part, in the order of the set."""
    first = sa.func.min(CHANGE_ROW.c.number)
    effective = sa.or_(CHANGE_ROW.c.state == "done", sa.and_(CHANGE_ROW.c.state == "failed", CHANGE_ROW.c.code == PARTLY_DONE))
    return sa.select(CHANGE_ROW.c.iccid).where(OF_SET, effective).group_by(CHANGE_ROW.c.iccid).order_by(first)


@first_row(ChangeRow)
def begin_row(*, change_set: str, token: str, number: int, now: float) -> sa.Executable:
    """Marks a planned row as being sent; None where the set was stopped, or another process works on it. `now`: Unix seconds."""
    return (
        sa.update(CHANGE_ROW)
        .where(
            THIS_ROW,
            CHANGE_ROW.c.state == "planned",
            sa.exists().where(
                CHANGE_SET.c.id == CHANGE_ROW.c.change_set,
                CHANGE_SET.c.state == "applying",
                CHANGE_SET.c.stop == "",
                CHANGE_SET.c.lease == token,
            ),
        )
        .values(state="sending", sent_at=now)
        .returning(*ROW_COLUMNS)
    )


@row_exists
def row_is_ours(*, change_set: str, token: str, number: int) -> sa.Executable:
    """Whether a row is being sent, and the set is still worked on under the lease `token`."""
    held = sa.exists().where(CHANGE_SET.c.id == CHANGE_ROW.c.change_set, CHANGE_SET.c.lease == token)
    return sa.select(CHANGE_ROW.c.number).where(THIS_ROW, CHANGE_ROW.c.state == "sending", held)


NOTE_STEP = Command(
    sa.update(CHANGE_ROW)
    .where(THIS_ROW, CHANGE_ROW.c.state == "sending")
    .values(step=sa.bindparam("made", type_=sa.Integer), result=sa.bindparam("found", type_=sa.Text))
)


@changes_one
def put_row_back(*, change_set: str, number: int) -> sa.Executable:
    """A row that surely was not sent waits again."""
    return sa.update(CHANGE_ROW).where(THIS_ROW, CHANGE_ROW.c.state == "sending").values(state="planned", sent_at=0.0)


def note_call_made(connection: Connection, *, change_set: str, number: int, made: int, result: str) -> bool:
    """One of several calls of a row was made."""
    return connection.run(NOTE_STEP, change_set=change_set, number=number, made=made, found=result) == 1


class RowOutcome(NamedTuple):
    """What came of a row: its new state, what undoing it has to know (JSON), and the word and sentence for people."""

    state: str
    result: str = "{}"
    code: str = ""
    reason: str = ""


SETTLE_ROW = {
    before: Command(
        sa.update(CHANGE_ROW)
        .where(THIS_ROW, CHANGE_ROW.c.state == before)
        .values(
            state=sa.bindparam("became", type_=sa.Text),
            result=sa.bindparam("found", type_=sa.Text),
            code=sa.bindparam("word", type_=sa.Text),
            reason=sa.bindparam("why", type_=sa.Text),
            settled_at=sa.bindparam("now", type_=sa.Double),
        )
    )
    for before in ("sending", "unknown", "planned", "skipped", "not_sent")
}


def settle_row(connection: Connection, *, change_set: str, number: int, before: str, outcome: RowOutcome, now: float) -> bool:
    """Writes what came of a row that was in the state `before`, and counts it; False where it is in another one."""
    found = {"became": outcome.state, "found": outcome.result, "word": outcome.code, "why": outcome.reason}
    if connection.run(SETTLE_ROW[before], change_set=change_set, number=number, now=now, **found) == 0:
        return False
    count_row(connection, change_set=change_set, state=outcome.state, left=before)
    return True


SENT_STATES = ("skipped", "done", "failed", "unknown")
"""Of a row that was planned: its turn has come. Rows that are sent count among them only when they are settled."""


def count_row(connection: Connection, *, change_set: str, state: str, left: str) -> None:
    changes: dict[str, int] = dict.fromkeys(COUNTED_STATES, 0)
    changes[state] += 1
    if left in changes:
        changes[left] -= 1
    sent = int(state != "not_sent") - int(left in SENT_STATES)
    count_rows(connection, change_set=change_set, sent=sent, **changes)


REFUSE_ROWS = Command(
    sa.update(CHANGE_ROW)
    .where(OF_SET, CHANGE_ROW.c.state == "planned")
    .values(state="not_sent", code=sa.bindparam("word", type_=sa.Text), reason=sa.bindparam("why", type_=sa.Text))
)


def refuse_planned_rows(connection: Connection, *, change_set: str, code: str, reason: str) -> int:
    """The planned rows of a set that was stopped are not sent; how many."""
    count = connection.run(REFUSE_ROWS, change_set=change_set, word=code, why=reason)
    if count:
        count_rows(connection, change_set=change_set, sent=0, skipped=0, done=0, failed=0, unknown=0, not_sent=count)
    return count


@value_or(0.0)
def newest_unknown_row(*, change_set: str) -> sa.Executable:
    """When the newest row was sent whose outcome nobody knows, Unix seconds; 0.0 where there is none."""
    return sa.select(sa.func.coalesce(sa.func.max(CHANGE_ROW.c.sent_at), 0.0)).where(OF_SET, CHANGE_ROW.c.state == "unknown")


@value_or(0)
def count_state(*, change_set: str, state: str) -> sa.Executable:
    """How many rows of the set are in `state`."""
    return sa.select(sa.func.count().label("rows")).select_from(CHANGE_ROW).where(OF_SET, CHANGE_ROW.c.state == state)


def cancel_set(connection: Connection, *, change_set: str, organisation: str, stop: str, now: float) -> ChangeSet | None:
    """Gives up a plan, or stops what is under way: nothing more of it is sent. The set as it is then; None where there is none.

    `stop`: JSON, why. `now`: Unix seconds.
    """
    if find_change_set(connection, change_set=change_set, organisation=organisation) is None:
        return None
    if not end_planned_set(connection, change_set=change_set, stop=stop, now=now):
        stop_rows(connection, change_set=change_set, stop=stop, code="cancelled", reason="The set was cancelled before this row was sent.")
    return find_change_set(connection, change_set=change_set, organisation=organisation)


def stop_rows(connection: Connection, *, change_set: str, stop: str, code: str, reason: str) -> bool:
    """Stops a set under way: its planned rows are not sent. False where it is not under way, or was stopped before."""
    if not stop_set(connection, change_set=change_set, stop=stop):
        return False
    refuse_planned_rows(connection, change_set=change_set, code=code, reason=reason)
    return True


REMOVE_ROWS = Command(
    lambda _: sa.delete(CHANGE_ROW).where(
        OF_SET,
        CHANGE_ROW.c.number.in_(
            sa.select(CHANGE_ROW.c.number).where(OF_SET).order_by(CHANGE_ROW.c.number).limit(sa.bindparam("most", type_=sa.Integer))
        ),
    )
)


def sweep_change_sets(connection: Connection, *, before: float, most: int = ROWS_REMOVED_AT_ONCE) -> int:
    """Removes some rows of the oldest ended set that was made before `before` (Unix seconds), at last the set; 0 where there is none."""
    change_set = oldest_ended_set(connection, before=before)
    if not change_set:
        return 0
    removed = connection.run(REMOVE_ROWS, change_set=change_set, most=most)
    if removed < most:
        delete_change_set(connection, change_set=change_set)
    return removed + 1


def set_with_rows(connection: Connection, *, change_set: str, organisation: str, which: str, after: int, most: int) -> "SetPage | None":
    """A set of the organisation and a page of its rows, in one view; None where there is no such set."""
    found = find_change_set(connection, change_set=change_set, organisation=organisation)
    if found is None:
        return None
    return SetPage(found, list_rows(connection, change_set=change_set, which=which, after=after, most=most))


class SetPage(NamedTuple):
    """A set, and some of its rows."""

    change_set: ChangeSet
    rows: list[ChangeRow]
