"""Giving an issued eSIM back: a conditional claim of the ledger's row before the provider is asked (api.md 3.6)."""

from collections.abc import Sequence

import sqlalchemy as sa

from registry.errors import Conflict
from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE, ROW, IssuanceRow
from storage.shop.top_ups import added_to, has_top_up_under_way
from storage.statement import Command, Query

COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ISSUANCE.c[name] for name in IssuanceRow._fields)
HELD: sa.ColumnElement[bool] = (ISSUANCE.c.state == "rollback_pending") & (ISSUANCE.c.lease == sa.bindparam("mine"))
STEPS: sa.ColumnElement[str] = sa.func.coalesce(sa.bindparam("steps", type_=sa.Text), ISSUANCE.c.steps)
BEGIN = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, ISSUANCE.c.state == "issued", ISSUANCE.c.package_id.is_not(None))
    .values(
        state="rollback_pending",
        owner=sa.bindparam("owner"),
        lease=sa.bindparam("lease"),
        steps=sa.bindparam("steps"),
        updated=sa.bindparam("now"),
    )
    .returning(*COLUMNS),
)
KEEP = Query(
    IssuanceRow,
    sa.update(ISSUANCE).where(ROW, HELD).values(state="issued", lease=None, steps=STEPS, updated=sa.bindparam("now")).returning(*COLUMNS),
)
RESUME = Command(
    sa.update(ISSUANCE)
    .where(ROW, ISSUANCE.c.state == "rollback_unknown")
    .values(state="issued", lease=None, note=sa.bindparam("note"), updated=sa.bindparam("now"))
)
STEP = Command(sa.update(ISSUANCE).where(ROW, HELD).values(steps=sa.bindparam("steps"), updated=sa.bindparam("now")))
FINISH = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, (ISSUANCE.c.state == "rollback_pending") | (ISSUANCE.c.state == "rollback_unknown"))
    .values(
        state="rolled_back",
        held=None,
        lease=None,
        steps=STEPS,
        note=sa.bindparam("note"),
        updated=sa.bindparam("now"),
    )
    .returning(*COLUMNS),
)
LOSE = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ROW, HELD)
    .values(state="rollback_unknown", lease=None, steps=STEPS, updated=sa.bindparam("now"))
    .returning(*COLUMNS),
)


def begin_rollback(
    connection: Connection, *, organisation: str, key: str, owner: str, lease: str, steps: str, added: frozenset[int], now: float
) -> None:
    """Of all who want it at once one gives the eSIM back; the others are refused before anything is sent.

    A top-up that is on its way would come onto a SIM that is whoever's draws next: it holds the row while it begins, and is seen here;
    so is one that came since the line was looked at, where `added` were there.
    """
    if connection.first(BEGIN, of=organisation, named=key, owner=owner, lease=lease, steps=steps, now=now) is None:
        raise rollback_running()
    if has_top_up_under_way(connection, order=key) or added_to(connection, order=key) != added:
        raise Conflict(
            "A top-up of this eSIM is under way, or it is not known yet whether it was added; nothing was sent",
            code="top_up_under_way",
            hint="Try again when it is settled, at the latest in a day",
        )


def rollback_running() -> Conflict:
    """Another call does it now, or has done it just now."""
    refusal = Conflict(
        "This issuance is being rolled back by another call, or has just been", code="idempotency_in_progress", hint="Repeat it in a second"
    )
    refusal.headers["Retry-After"] = "1"
    return refusal


def keep_issued(
    connection: Connection, *, organisation: str, key: str, lease: str, now: float, steps: str | None = None
) -> IssuanceRow | None:
    """Nothing was given back: it is issued as before."""
    return connection.first(KEEP, of=organisation, named=key, mine=lease, steps=steps, now=now)


def note_steps(connection: Connection, *, organisation: str, key: str, lease: str, steps: str, now: float) -> bool:
    """What has been done so far; False when the row was taken away from this call."""
    return connection.run(STEP, of=organisation, named=key, mine=lease, steps=steps, now=now) == 1


def finish_rollback(
    connection: Connection, *, organisation: str, key: str, steps: str | None, note: str | None, now: float
) -> IssuanceRow | None:
    """The eSIM was given back; None when the row is neither being rolled back nor unknown."""
    return connection.first(FINISH, of=organisation, named=key, steps=steps, note=note, now=now)


def lose_rollback(
    connection: Connection, *, organisation: str, key: str, lease: str, now: float, steps: str | None = None
) -> IssuanceRow | None:
    """Nobody knows what was given back; a person has to look."""
    return connection.first(LOSE, of=organisation, named=key, mine=lease, steps=steps, now=now)


def resume_issued(connection: Connection, *, organisation: str, key: str, note: str, now: float) -> bool:
    """A person found that nothing was given back."""
    return connection.run(RESUME, of=organisation, named=key, note=note, now=now) == 1
