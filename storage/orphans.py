"""What processes that are gone left behind: it is freed where nothing was sent, and unknown where something may have been."""

import math
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from storage.claims import CLAIM, CLAIM_RUNNING_STATES, IN_THE_LEDGER, release_orphaned_claims
from storage.claims import CLAIM_IS_ORPHANED as ORPHANED_CLAIMS
from storage.engine.sql import Command, Connection, Query, unindexed
from storage.intents import INTENT, LOST_ERROR
from storage.issuance import ISSUANCE, IssuanceRow
from storage.replicas import REPLICA, REPLICA_LEASE_SECONDS
from storage.spending import give_back_call

# A row's owner has no lease any more, and the row is older than one: a process that missed its lease may have gone on for a while.
ISSUANCE_IS_ORPHANED = ISSUANCE.c.owner.not_in(
    sa.select(REPLICA.c.id).where((REPLICA.c.expires_at >= sa.bindparam("now")) | (ISSUANCE.c.updated >= sa.bindparam("before")))
)

# Opened, and surely not sent: what such a call took from limits of money is given back.
ORPHANED_CALLS = Query(str, sa.select(CLAIM.c.lease).where(CLAIM.c.state == "claimed", CLAIM.c.lease.is_not(None), ORPHANED_CLAIMS))

# One statement, since every worker asks every few seconds and there is hardly ever anything.
ANY_ORPHAN = Query(
    str,
    lambda _: sa.union_all(
        sa.select(ISSUANCE.c.key).where(ISSUANCE.c.state.in_(["dispatching", "rollback_pending"]), ISSUANCE_IS_ORPHANED),
        sa.select(CLAIM.c.key).where(CLAIM.c.state.in_(CLAIM_RUNNING_STATES), ORPHANED_CLAIMS),
    ).limit(1),
)

MARK_ORPHANS_LOST = Query(
    IssuanceRow,
    sa.update(ISSUANCE)
    .where(ISSUANCE.c.state == "dispatching", ISSUANCE_IS_ORPHANED)
    .values(state="outcome_unknown", updated=sa.bindparam("at"), due_ms=sa.bindparam("due_ms"), lease=None),
)

LogLost = Callable[[Connection, Sequence[IssuanceRow], float], None]
"""Writes the events of issuances whose outcome has just become unknown, at a moment in Unix seconds."""

MARK_ROLLBACKS_LOST = Command(
    sa.update(ISSUANCE)
    .where(ISSUANCE.c.state == "rollback_pending", ISSUANCE_IS_ORPHANED)
    .values(state="rollback_unknown", updated=sa.bindparam("at"), lease=None)
)

# A process whose clock was set meanwhile may have dated its claim and its row differently: the claim goes with the row.
MARK_LOST_CLAIMS = Command(
    sa.update(CLAIM)
    .where(
        CLAIM.c.state == "dispatching",
        IN_THE_LEDGER.where(unindexed(ISSUANCE.c.state) == "outcome_unknown"),
    )
    .values(state="unknown")
)

MARK_LOST_INTENTS = Command(
    sa.update(INTENT)
    .where(
        INTENT.c.status == "processing",
        INTENT.c.error.is_(None),
        INTENT.c.id.in_(sa.select(ISSUANCE.c.intent).where(ISSUANCE.c.state == "outcome_unknown", ISSUANCE.c.intent.is_not(None))),
    )
    .values(error=LOST_ERROR)
)


def any_orphans(connection: Connection, *, now: float) -> bool:
    """Whether dead processes left anything behind; a read, so that an idle worker never takes the write lock. `now`: Unix seconds."""
    before = math.ceil(now - REPLICA_LEASE_SECONDS)
    return connection.first(ANY_ORPHAN, now=now, before=before) is not None


def recover_orphans(connection: Connection, *, now: float, log: LogLost | None = None) -> int:
    """Free or mark as unknown what dead processes left; returns how many issuances and releases became unknown. `now`: Unix seconds.

    `log` gets the issuances among them.
    """
    before = math.ceil(now - REPLICA_LEASE_SECONDS)
    for call in connection.all(ORPHANED_CALLS, now=now, before=before):
        give_back_call(connection, call=call)
    release_orphaned_claims(connection, now=now)
    lost = connection.all(MARK_ORPHANS_LOST, now=now, before=before, at=now, due_ms=int(now * 1000))
    if lost:
        connection.run(MARK_LOST_CLAIMS)
        connection.run(MARK_LOST_INTENTS)
        if log is not None:
            log(connection, lost, now)
    return len(lost) + connection.run(MARK_ROLLBACKS_LOST, now=now, before=before, at=now)
