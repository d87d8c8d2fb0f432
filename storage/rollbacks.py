"""Giving an issued eSIM back: a conditional claim of the ledger's row before the provider is asked."""

import sqlalchemy as sa

from registry.errors import Conflict
from storage.engine.sql import ARGUMENT, Connection, Query, changes_one, first_row
from storage.issuance import ISSUANCE, THIS_ISSUANCE, IssuanceRow
from storage.top_ups import has_top_up_under_way, packages_added_to

ROLLBACK_IS_MINE: sa.ColumnElement[bool] = (ISSUANCE.c.state == "rollback_pending") & (ISSUANCE.c.lease == sa.bindparam("lease" + ARGUMENT))
ROLLBACK_STEPS: sa.ColumnElement[str] = sa.func.coalesce(sa.bindparam("steps", type_=sa.Text), ISSUANCE.c.steps)
BEGIN_ROLLBACK = Query(
    IssuanceRow,
    (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.state == "issued", ISSUANCE.c.package_id.is_not(None))
        .values(
            state="rollback_pending",
            owner=sa.bindparam("owner"),
            lease=sa.bindparam("lease"),
            steps=sa.bindparam("steps"),
            updated=sa.bindparam("now"),
        )
    ),
)


def begin_rollback(
    connection: Connection, *, organisation: str, key: str, owner: str, lease: str, steps: str, added: frozenset[int], now: float
) -> None:
    """Of all who want it at once one gives the eSIM back; the others are refused before anything is sent.

    A top-up that is on its way would come onto a SIM that is whoever's draws next: it holds the row while it begins, and is seen here;
    so is one that came since the line was looked at, where `added` were there. `now`: Unix seconds.
    """
    if connection.first(BEGIN_ROLLBACK, organisation=organisation, key=key, owner=owner, lease=lease, steps=steps, now=now) is None:
        raise rollback_is_running()
    if has_top_up_under_way(connection, order=key) or packages_added_to(connection, order=key) != added:
        raise Conflict(
            "A top-up of this eSIM is under way, or it is not known yet whether it was added; nothing was sent",
            code="top_up_under_way",
            hint="Try again when it is settled, at the latest in a day",
        )


def rollback_is_running() -> Conflict:
    """Another call does it now, or has done it just now."""
    refusal = Conflict(
        "This issuance is being rolled back by another call, or has just been", code="idempotency_in_progress", hint="Repeat it in a second"
    )
    refusal.headers["Retry-After"] = "1"
    return refusal


@first_row(IssuanceRow)
def keep_issued(*, organisation: str, key: str, lease: str, now: float, steps: str | None = None) -> sa.Executable:
    """The row, issued as before, because nothing was given back; None where it is not this call's. `now`: Unix seconds."""
    return sa.update(ISSUANCE).where(THIS_ISSUANCE, ROLLBACK_IS_MINE).values(state="issued", lease=None, steps=ROLLBACK_STEPS, updated=now)


@changes_one
def note_steps(*, organisation: str, key: str, lease: str, steps: str, now: float) -> sa.Executable:
    """Store the `steps` done so far as JSON text; False when the row is not this call's any more. `now`: Unix seconds."""
    return sa.update(ISSUANCE).where(THIS_ISSUANCE, ROLLBACK_IS_MINE).values(steps=steps, updated=now)


@first_row(IssuanceRow)
def finish_rollback(*, organisation: str, key: str, steps: str | None, note: str | None, now: float) -> sa.Executable:
    """The row after its eSIM was given back; None when it is neither being rolled back nor unknown. `now`: Unix seconds."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, (ISSUANCE.c.state == "rollback_pending") | (ISSUANCE.c.state == "rollback_unknown"))
        .values(
            state="rolled_back",
            held=None,
            lease=None,
            steps=ROLLBACK_STEPS,
            note=note,
            updated=now,
        )
    )


@first_row(IssuanceRow)
def mark_rollback_unknown(*, organisation: str, key: str, lease: str, now: float, steps: str | None = None) -> sa.Executable:
    """The row of which nobody knows what was given back; None where it is not this call's. `now`: Unix seconds."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ROLLBACK_IS_MINE)
        .values(state="rollback_unknown", lease=None, steps=ROLLBACK_STEPS, updated=now)
    )


@changes_one
def resume_issued(*, organisation: str, key: str, note: str, now: float) -> sa.Executable:
    """A person found that nothing was given back; False where the row is not unknown. `now`: Unix seconds."""
    return (
        sa.update(ISSUANCE)
        .where(THIS_ISSUANCE, ISSUANCE.c.state == "rollback_unknown")
        .values(state="issued", lease=None, note=note, updated=now)
    )
