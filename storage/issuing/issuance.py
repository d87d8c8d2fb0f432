"""The issuance ledger (api.md 3.6): one row per key, for ever. Its transitions are conditional updates; nothing is read and then written.

dispatching -> issued | failed | outcome_unknown -> issued | failed | manual_reconciliation_required -> issued | failed
failed -> manual_reconciliation_required, when its own answer comes after all and names an eSIM.
issued -> rollback_pending -> rolled_back | rollback_unknown -> rolled_back | issued; a SIM that was freed past us is `released`.
What is `claimed` and not sent yet is told by the idempotency claim alone (claims.py). A row keeps its ICCID in `held` from issued on
until it is known to be back in stock: it is unique, so no two keys have one eSIM.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import sqlalchemy as sa

from registry.errors import Conflict
from storage.calls.expired_keys import LEDGER, SweptAnswer, expired, is_expired, keep_expired, older_are_gone
from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import ClaimTable, IssuanceTable
from storage.statement import Command, Query, table, unindexed

CLAIM, ISSUANCE = table(ClaimTable), table(IssuanceTable)
State = Literal[
    "dispatching",
    "issued",
    "failed",
    "outcome_unknown",
    "manual_reconciliation_required",
    "rollback_pending",
    "rolled_back",
    "rollback_unknown",
    "released",
]
UNSETTLED = ("outcome_unknown", "manual_reconciliation_required")
OPEN = ("dispatching", *UNSETTLED)


class IssuanceRow(NamedTuple):
    """A row of the ledger. `period` and `steps` are JSON text; times are Unix seconds."""

    organisation: str
    key: str
    operation: str
    claim_key: str | None
    principal: str
    account_id: int
    template_id: int
    validity_days: int | None
    period: str | None
    intent: str | None
    state: str
    owner: str
    stock: str
    iccid: str | None
    held: str | None
    replied: str | None
    subscriber_id: int | None
    sim_id: int | None
    package_id: int | None
    steps: str | None
    note: str | None
    dispatched: float
    updated: float
    clear_since: float | None
    clear_seconds: float | None = None
    obstacle: str | None = None


class NewIssuance(NamedTuple):
    """What is about to be sent, and for whom. `lease` is the call's own name: what it did not begin it does not take back."""

    organisation: str
    key: str
    operation: str
    claim_key: str | None
    principal: str
    account_id: int
    template_id: int
    validity_days: int | None
    period: str | None
    intent: str | None
    owner: str
    lease: str
    stock: str


class Drawn(NamedTuple):
    """What the charging system gave: the SIM, its line and the package on it."""

    iccid: str
    subscriber_id: int | None
    sim_id: int | None
    package_id: int | None


class Key(NamedTuple):
    """A row that was written."""

    key: str


class Ended(NamedTuple):
    """A row that was removed."""

    organisation: str
    key: str
    iccid: str | None
    dispatched: float


class Holder(NamedTuple):
    """Who has an ICCID."""

    held: str
    organisation: str
    key: str
    intent: str | None


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in IssuanceRow._fields)
ROW: sa.ColumnElement[bool] = (ISSUANCE.c.organisation == sa.bindparam("of")) & (ISSUANCE.c.key == sa.bindparam("named"))
INSERT = Query(
    Key,
    lambda dialect: (
        dialect.insert(ISSUANCE)
        .values({name: sa.bindparam(name) for name in NewIssuance._fields})
        .values(state="dispatching", dispatched=sa.bindparam("now"), updated=sa.bindparam("now"), due_ms=0)
        .on_conflict_do_nothing(index_elements=["organisation", "key"])
        .returning(ISSUANCE.c.key)
    ),
)
FIND = Query(IssuanceRow, sa.select(*COLUMNS).where(ROW))
OF_CLAIM = Query(
    IssuanceRow,
    sa.select(*COLUMNS).where(
        ISSUANCE.c.organisation == sa.bindparam("of"),
        ISSUANCE.c.claim_key == sa.bindparam("claim_key"),
        ISSUANCE.c.operation == sa.bindparam("operation"),
    ),
)
UNSEND = Command(sa.delete(ISSUANCE).where(ROW, ISSUANCE.c.lease == sa.bindparam("mine"), ISSUANCE.c.state == "dispatching"))
HOLDER_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in Holder._fields)
HOLDER = Query(Holder, sa.select(*HOLDER_COLUMNS).where(ISSUANCE.c.held == sa.bindparam("iccid")))
HOLDERS = Query(
    Holder,
    lambda dialect: sa.select(*HOLDER_COLUMNS).where(
        ISSUANCE.c.held.in_(sa.select(listed(dialect, "iccids", "given", iccid=sa.Text).c.iccid))
    ),
)
RELEASE = Query(
    Key,
    sa.update(ISSUANCE)
    .where(ROW, ISSUANCE.c.held == sa.bindparam("iccid"))
    .values(
        state=sa.case((ISSUANCE.c.state.in_(["rollback_pending", "rollback_unknown"]), "rolled_back"), else_="released"),
        held=None,
        note=sa.bindparam("note"),
        updated=sa.bindparam("now"),
    )
    .returning(ISSUANCE.c.key),
)
ISSUE = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, ISSUANCE.c.state.in_(OPEN))
    .values(
        state="issued",
        iccid=sa.bindparam("iccid"),
        held=sa.bindparam("iccid"),
        subscriber_id=sa.bindparam("subscriber_id"),
        sim_id=sa.bindparam("sim_id"),
        package_id=sa.bindparam("package_id"),
        note=sa.bindparam("note"),
        updated=sa.bindparam("now"),
        lease=None,
        obstacle=None,
    )
    .returning(*COLUMNS),
)
FAIL = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, ISSUANCE.c.state.in_(OPEN))
    .values(state="failed", note=sa.bindparam("note"), updated=sa.bindparam("now"), lease=None, obstacle=None)
    .returning(*COLUMNS),
)
LOSE = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, ISSUANCE.c.state.in_(["dispatching", "outcome_unknown"]))
    .values(
        state="outcome_unknown",
        replied=sa.func.coalesce(sa.bindparam("replied", type_=sa.Text), ISSUANCE.c.replied),
        updated=sa.bindparam("now"),
        due_ms=sa.bindparam("due_ms"),
    )
    .returning(*COLUMNS),
)
DISPUTE = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, ISSUANCE.c.state == "failed")
    .values(
        state="manual_reconciliation_required",
        replied=sa.bindparam("replied", type_=sa.Text),
        note="an answer came after it had been settled as failed",
        obstacle="late_answer",
        updated=sa.bindparam("now"),
    )
    .returning(*COLUMNS),
)
UNRESOLVED = Query(
    Key,
    sa.select(ISSUANCE.c.key)
    .where(
        ISSUANCE.c.account_id == sa.bindparam("account_id"),
        ISSUANCE.c.state.in_(UNSETTLED),
        # Not a bare column: SQLite would take the index that begins with it, and read every row of the organisation at each draw.
        sa.func.coalesce(ISSUANCE.c.organisation, "") == sa.bindparam("organisation", type_=sa.Text),
        ISSUANCE.c.principal == sa.bindparam("principal"),
        ISSUANCE.c.template_id == sa.bindparam("template_id"),
        ISSUANCE.c.dispatched >= sa.bindparam("since"),
        ISSUANCE.c.key != sa.bindparam("key"),
    )
    .order_by(ISSUANCE.c.dispatched.desc())
    .limit(1),
)
OF_PACKAGE = Query(
    IssuanceRow,
    sa.select(*COLUMNS)
    .where(ISSUANCE.c.package_id == sa.bindparam("package_id"), ISSUANCE.c.held.is_not(None))
    .order_by(ISSUANCE.c.updated.desc())
    .limit(1),
)


# A row without an eSIM that nothing can change any more, whose key has no stored answer. Choice: a row that has its eSIM stays whole: it
# says whose the line is; so does one of an order, which stays as well.
ONE, FOUR = sa.literal_column("1", sa.Integer), sa.literal_column("4", sa.Integer)
OF_ORDERS = [sa.literal_column(f"'{prefix}'", sa.Text) for prefix in ("ord_", "onr_")]
NOT_OF_AN_ORDER = sa.func.substr(ISSUANCE.c.key, ONE, FOUR).not_in(OF_ORDERS)  # as the index issuance_ended spells it
NONE = sa.literal_column("''", sa.Text)
# As that index spells it: SQLite would take the index of `held` for a bare column.
HOLDS_NOTHING = sa.func.coalesce(ISSUANCE.c.held, NONE) == NONE
HAS_ENDED = (
    HOLDS_NOTHING
    & (ISSUANCE.c.updated < sa.bindparam("before", type_=sa.Double))
    & unindexed(ISSUANCE.c.state).in_(["failed", "rolled_back", "released"])
    & NOT_OF_AN_ORDER
    & sa.not_(
        sa.exists().where(
            CLAIM.c.organisation == ISSUANCE.c.organisation, CLAIM.c.operation == ISSUANCE.c.operation, CLAIM.c.key == ISSUANCE.c.claim_key
        )
    )
)
NAMES = (ISSUANCE.c.organisation, ISSUANCE.c.key)
ENDED_FIRST = sa.select(*NAMES).where(HAS_ENDED).order_by(ISSUANCE.c.updated).limit(sa.bindparam("most"))
REMOVE = Query(
    Ended,
    sa.delete(ISSUANCE)
    .where(sa.tuple_(*NAMES).in_(ENDED_FIRST), HOLDS_NOTHING, ISSUANCE.c.updated < sa.bindparam("before", type_=sa.Double))
    .returning(*NAMES, ISSUANCE.c.iccid, ISSUANCE.c.dispatched),
)


def already_sent() -> Conflict:
    """The key has its row, so nothing is sent under it again."""
    return Conflict(
        "An eSIM was asked for under this key before; nothing was sent now", code="idempotency_in_progress", hint="Repeat it in a second"
    )


def begin_issuance(connection: Connection, *, row: NewIssuance, now: float) -> None:
    """The row, before the call is sent. A second one under the same key is refused, whatever became of the first."""
    if connection.first(INSERT, **row._asdict(), now=now) is None:
        raise already_sent()
    # After the INSERT, which waits for whoever removes a row of this key: what they kept of it is seen now.
    if is_expired(connection, organisation=row.organisation, operation=LEDGER, key=row.key):
        raise expired()


def unsend(connection: Connection, *, organisation: str, key: str, lease: str) -> bool:
    """The call surely never left: the key is as it was. False when this very call has no row."""
    return connection.run(UNSEND, of=organisation, named=key, mine=lease) == 1


def find_issuance(connection: Connection, *, organisation: str, key: str) -> IssuanceRow | None:
    """A row of the ledger."""
    return connection.first(FIND, of=organisation, named=key)


def find_spelled(connection: Connection, *, organisation: str, keys: Sequence[str]) -> IssuanceRow | None:
    """The row of the first of these spellings of a key that has one."""
    rows = (find_issuance(connection, organisation=organisation, key=key) for key in keys)
    return next((row for row in rows if row is not None), None)


def issuance_of_claim(connection: Connection, *, organisation: str, operation: str, claim_key: str) -> IssuanceRow | None:
    """The row that a call with this idempotency key began."""
    return connection.first(OF_CLAIM, of=organisation, operation=operation, claim_key=claim_key)


def holder_of(connection: Connection, *, iccid: str) -> Holder | None:
    """Who has an ICCID now."""
    return connection.first(HOLDER, iccid=iccid)


def holders_of(connection: Connection, *, iccids: Sequence[str]) -> list[Holder]:
    """Who has any of these."""
    return connection.all(HOLDERS, iccids=packed([[iccid] for iccid in iccids])) if iccids else []


def release_holder(connection: Connection, *, holder: Holder, now: float, note: str) -> bool:
    """The ICCID is back in stock: whoever had it has it no more."""
    return connection.first(RELEASE, of=holder.organisation, named=holder.key, iccid=holder.held, now=now, note=note) is not None


def issue(connection: Connection, *, organisation: str, key: str, drawn: Drawn, now: float, note: str | None = None) -> IssuanceRow | None:
    """The eSIM is this key's; None when the row was settled before. `held` decides between two keys."""
    return connection.first(ISSUE, of=organisation, named=key, **drawn._asdict(), now=now, note=note)


def fail(connection: Connection, *, organisation: str, key: str, now: float, note: str) -> IssuanceRow | None:
    """Nothing was drawn; None when the row was settled before."""
    return connection.first(FAIL, of=organisation, named=key, now=now, note=note)


def lose(connection: Connection, *, organisation: str, key: str, now: float, replied: str | None = None) -> IssuanceRow | None:
    """Nobody knows what came of it; None when the row was settled before. `replied` names an eSIM that was not believed."""
    return connection.first(LOSE, of=organisation, named=key, replied=replied, now=now, due_ms=int(now * 1000))


def dispute(connection: Connection, *, organisation: str, key: str, replied: str, now: float) -> IssuanceRow | None:
    """It was settled as failed, and a late answer names an eSIM: only a person can tell; None when it is not failed."""
    return connection.first(DISPUTE, of=organisation, named=key, replied=replied, now=now)


def unresolved_like(
    connection: Connection, *, organisation: str, principal: str, account_id: int, template_id: int, since: float, key: str
) -> str | None:
    """The newest other key of the same caller, account and template whose outcome is unknown (abuse case 4)."""
    found = connection.first(
        UNRESOLVED,
        organisation=organisation,
        principal=principal,
        account_id=account_id,
        template_id=template_id,
        since=since,
        key=key,
    )
    return found.key if found else None


def issuance_of_package(connection: Connection, *, package_id: int) -> IssuanceRow | None:
    """The row that put a package on a line."""
    return connection.first(OF_PACKAGE, package_id=package_id)


def sweep_issuances(connection: Connection, *, before: float, most: int, now: float) -> int:
    """Remove the oldest rows that ended without an eSIM, and keep their keys; 0 while an older program runs beside. Unix seconds."""
    if not older_are_gone(connection, now=now):
        return 0
    removed = connection.all(REMOVE, before=before, most=most)
    for row in removed:
        kept = SweptAnswer(row.organisation, LEDGER, row.key, b"", None, int(row.dispatched))
        keep_expired(connection, swept=kept, iccid=row.iccid)
    return len(removed)
