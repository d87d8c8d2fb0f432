"""Calls that wait until a person approves them, and what became of them.

waiting -> approved -> executed; waiting -> declined; waiting -> expired; waiting or approved -> void, where it cannot be done any more.
Each step is one conditional update, so that of two who decide at once one does.
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, cast

import sqlalchemy as sa

from storage.access_grants import ACCESS_GRANT
from storage.api_keys import API_KEY
from storage.engine.sql import (
    ARGUMENT,
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    all_rows,
    changes_one,
    changes_rows,
    delete_oldest,
    first_row,
    insert_once,
    or_last,
    writes,
)
from storage.organisations import lock_organisation
from storage.people import PERSON
from storage.replicas import REPLICA

OPEN_APPROVALS_LIMIT = 20
"""Waiting approvals of one credential."""
APPROVALS_KEPT_SECONDS = 90 * 86_400
OVERDUE_SECONDS = 600.0
"""After which an execution is taken over from a process that lives: no call takes so long."""


class ApprovalRow(NamedTuple):
    """A call that waits or waited. `organisation`: whose calls are counted, the person's id where there is no organisation.

    `credential`: the key or login that asks, `principal`: the person it belongs to; `fingerprint`: of the input, `digest`: of what was
    shown. `request` is sealed: the input, and what a person is shown. `outcome` is sealed: why it was refused, if it was; `status`: of
    the answer. `replica`: the process that executes it, '' for none. Times are Unix seconds.
    """

    id: Key
    organisation: str
    principal: str
    credential: str
    operation: str
    idempotency_key: str
    fingerprint: bytes
    digest: bytes
    request: str
    state: str
    created: float
    expires_at: float
    decided_by: str | None
    decided_at: float | None
    replica: str
    status: int | None
    outcome: str | None


OPEN_STATES = sa.text("state IN ('waiting', 'approved')")


class ApprovalTable(TableDescription, row=ApprovalRow, table=True):
    """A call that a person has to approve. Of one idempotency key one request is open at a time."""

    __table_args__ = (
        sa.Index(
            "approval_open",
            "organisation",
            "operation",
            "idempotency_key",
            unique=True,
            sqlite_where=OPEN_STATES,
        ),
        sa.Index("approval_key", "organisation", "operation", "idempotency_key", "id"),
        sa.Index("approval_organisation", "organisation", "id"),
        sa.Index("approval_state", "state", "credential"),
        sa.Index("approval_created", "created"),
    )


APPROVAL = ApprovalTable.table

APPROVAL_COLUMNS = [APPROVAL.c[name] for name in ApprovalRow._fields]

THIS_APPROVAL = APPROVAL.c.id == sa.bindparam("approval")

HAS_LAPSED = (APPROVAL.c.state == "waiting") & (APPROVAL.c.expires_at <= sa.bindparam("now", type_=sa.Double))

APPROVAL_STATE_NOW = sa.case((HAS_LAPSED, "expired"), else_=APPROVAL.c.state)

OF_KEY = (
    APPROVAL.c.organisation == sa.bindparam("organisation"),
    APPROVAL.c.operation == sa.bindparam("operation_id"),
    APPROVAL.c.idempotency_key == sa.bindparam("key"),
)

LATEST_OF_KEY = Query(ApprovalRow, lambda _: sa.select(*APPROVAL_COLUMNS).where(*OF_KEY).order_by(APPROVAL.c.id.desc()).limit(1))

LAPSE_OF_KEY = Command(lambda _: sa.update(APPROVAL).where(*OF_KEY, HAS_LAPSED).values(state="expired"))

COUNT_WAITING = Query(
    int,
    lambda _: sa.select(sa.func.count().label("waiting")).where(
        APPROVAL.c.state == "waiting",
        APPROVAL.c.credential == sa.bindparam("credential"),
        APPROVAL.c.expires_at > sa.bindparam("now", type_=sa.Double),
    ),
)

INSERT_APPROVAL = Command(insert_once(APPROVAL, ApprovalRow._fields))


def latest_approval(connection: Connection, *, organisation: str, operation: str, key: str) -> ApprovalRow | None:
    """The newest request with this idempotency key, whatever its state; None where there is none."""
    return connection.first(LATEST_OF_KEY, organisation=organisation, operation_id=operation, key=key)


def insert_approval(connection: Connection, *, row: ApprovalRow, now: float) -> int:
    """Keeps a new request; returns how many waited before of its credential, and keeps none where those are OPEN_APPROVALS_LIMIT.

    Where another request with its key is open meanwhile, that one stays and this one is not kept.
    """
    lock_organisation(connection, organisation=row.organisation)
    connection.run(LAPSE_OF_KEY, organisation=row.organisation, operation_id=row.operation, key=row.idempotency_key, now=now)
    waiting = connection.first(COUNT_WAITING, credential=row.credential, now=now) or 0
    if waiting < OPEN_APPROVALS_LIMIT:
        connection.run(INSERT_APPROVAL, **row._asdict())
    return waiting


@first_row(ApprovalRow)
def find_approval(*, approval: str) -> sa.Executable:
    """The request with this id, of any organisation, or None."""
    return sa.select(*APPROVAL_COLUMNS).where(APPROVAL.c.id == approval)


class ListedApproval(NamedTuple):
    """A request with the names that people know. `credential_name`: of the key, or of the program that logged in; `state`: of now."""

    id: str
    organisation: str
    credential: str
    operation: str
    request: str
    digest: bytes
    state: str
    created: float
    expires_at: float
    decided_at: float | None
    status: int | None
    outcome: str | None
    principal: str
    asker: str | None
    credential_name: str | None
    decided_by: str | None
    decider: str | None


DECIDER = PERSON.alias("decider")

SHOWN_COLUMNS: Mapping[str, sa.ColumnElement[object]] = {
    **{name: APPROVAL.c[name] for name in ListedApproval._fields if name in APPROVAL.c},
    "state": cast("sa.ColumnElement[object]", APPROVAL_STATE_NOW.label("state")),
    "asker": cast("sa.ColumnElement[object]", sa.func.coalesce(PERSON.c.name, PERSON.c.address).label("asker")),
    "credential_name": cast(
        "sa.ColumnElement[object]", sa.func.coalesce(API_KEY.c.name, ACCESS_GRANT.c.client_name).label("credential_name")
    ),
    "decider": cast("sa.ColumnElement[object]", sa.func.coalesce(DECIDER.c.name, DECIDER.c.address).label("decider")),
}

LISTED_APPROVALS = (
    sa.select(*(SHOWN_COLUMNS[name] for name in ListedApproval._fields))
    .select_from(APPROVAL)
    .join(PERSON, PERSON.c.id == APPROVAL.c.principal, isouter=True)
    .join(API_KEY, API_KEY.c.id == APPROVAL.c.credential, isouter=True)
    .join(ACCESS_GRANT, ACCESS_GRANT.c.id == APPROVAL.c.credential, isouter=True)
    .join(DECIDER, DECIDER.c.id == APPROVAL.c.decided_by, isouter=True)
)


@all_rows(ListedApproval)
def list_approval_rows(
    *, organisation: str, credential: str, wanted: str, now: float, after: Annotated[str | None, or_last("apr_")], most: int
) -> sa.Executable:
    """At most `most` requests behind the id `after`, newest first; of one `credential` and in the state `wanted` unless these are ''."""
    chosen = sa.cast(credential, sa.Text), sa.cast(wanted, sa.Text)
    return (
        LISTED_APPROVALS.where(APPROVAL.c.organisation == organisation, APPROVAL.c.id < after)
        .where((chosen[0] == "") | (APPROVAL.c.credential == chosen[0]), (chosen[1] == "") | (chosen[1] == APPROVAL_STATE_NOW))
        .order_by(APPROVAL.c.id.desc())
        .limit(most)
    )


IS_WAITING = (THIS_APPROVAL, APPROVAL.c.state == "waiting", APPROVAL.c.expires_at > sa.bindparam("now"))


@changes_one
def renew_approval(*, approval: str, request: str, terms: bytes, now: float) -> sa.Executable:
    """What a person is shown of a request that waits is something else now; False where it does not wait any more."""
    return sa.update(APPROVAL).where(*IS_WAITING).values(request=request, digest=terms)


@changes_one
def decide_waiting(
    *, approval: str, shown: bytes, decision: str, decider: str, process: str, now: Annotated[float, float]
) -> sa.Executable:
    """Moves a request that waits, and is about what was `shown`, to `decision`; False where it is not so. `now`: Unix seconds."""
    return (
        sa.update(APPROVAL)
        .where(*IS_WAITING, APPROVAL.c.digest == shown)
        .values(state=decision, decided_by=decider, decided_at=sa.bindparam("now" + ARGUMENT), replica=process)
    )


@changes_one
def end_approval(*, approval: str, final: str, code: int | None, sealed: str | None) -> sa.Executable:
    """Moves an open request to its end: `executed`, or `void`. False where it has ended before. `code`: the HTTP status of the answer."""
    return (
        sa.update(APPROVAL)
        .where(THIS_APPROVAL, APPROVAL.c.state.in_(("waiting", "approved")))
        .values(state=final, status=code, outcome=sealed, replica="")
    )


IS_LEFT_ALONE = (
    APPROVAL.c.state == "approved",
    APPROVAL.c.replica.not_in(sa.select(REPLICA.c.id).where(REPLICA.c.expires_at >= sa.bindparam("now", type_=sa.Double)))
    | (APPROVAL.c.decided_at <= sa.bindparam("overdue", type_=sa.Double)),
)

LEFT_ALONE = Query(ApprovalRow, lambda _: sa.select(*APPROVAL_COLUMNS).where(*IS_LEFT_ALONE).order_by(APPROVAL.c.id).limit(20))


def approvals_left_alone(connection: Connection, *, now: float) -> list[ApprovalRow]:
    """Approved requests that no living process executes, or one for too long: at most 20. `now`: Unix seconds."""
    return connection.all(LEFT_ALONE, now=now, overdue=now - OVERDUE_SECONDS)


@changes_one
def take_approval(*, approval: str, seen: str, process: str) -> sa.Executable:
    """The process `process` executes an approved request from now on, in place of `seen`; False where another one was faster."""
    return sa.update(APPROVAL).where(THIS_APPROVAL, APPROVAL.c.state == "approved", APPROVAL.c.replica == seen).values(replica=process)


@writes
def leave_approval(*, approval: str, process: str) -> sa.Executable:
    """The process `process` could not execute it now; whoever looks next tries again."""
    return sa.update(APPROVAL).where(THIS_APPROVAL, APPROVAL.c.state == "approved", APPROVAL.c.replica == process).values(replica="")


@changes_rows
def sweep_approvals(*, before: float, most: int) -> sa.Executable:
    """Delete the oldest requests from before `before` (Unix seconds) that are not being executed; returns how many."""
    return delete_oldest(APPROVAL, (APPROVAL.c.created <= before) & (APPROVAL.c.state != "approved"), APPROVAL.c.created, most)
