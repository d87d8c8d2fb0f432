"""What processes that are gone left behind: it is freed where nothing was sent, and unknown where something may have been."""

import math
from typing import NamedTuple

import sqlalchemy as sa

from storage.calls.claims import CLAIM, IN_THE_LEDGER, UNDER_WAY, freeze_orphans
from storage.calls.claims import ORPHANED as ORPHANED_CLAIMS
from storage.calls.replicas import LEASE_SECONDS, REPLICA
from storage.connection import Connection
from storage.issuing.intents import LOST_ERROR
from storage.issuing.issuance import ISSUANCE
from storage.schema import IntentTable
from storage.statement import Command, Query, table

INTENT = table(IntentTable)


class Orphan(NamedTuple):
    """Something a dead process left behind."""

    key: str


# A row's owner has no lease any more, and the row is older than one: a process that missed its lease may have gone on for a while.
ORPHANED = ISSUANCE.c.owner.not_in(
    sa.select(REPLICA.c.id).where((REPLICA.c.expires_at >= sa.bindparam("now")) | (ISSUANCE.c.updated >= sa.bindparam("before")))
)
# One statement, since every worker asks every few seconds and there is hardly ever anything.
ANY = Query(
    Orphan,
    sa.union_all(
        sa.select(ISSUANCE.c.key).where(ISSUANCE.c.state.in_(["dispatching", "rollback_pending"]), ORPHANED),
        sa.select(CLAIM.c.key).where(CLAIM.c.state.in_(UNDER_WAY), ORPHANED_CLAIMS),
    ).limit(1),
)
LOSE = Command(
    sa.update(ISSUANCE)
    .where(ISSUANCE.c.state == "dispatching", ORPHANED)
    .values(state="outcome_unknown", updated=sa.bindparam("at"), due_ms=sa.bindparam("due_ms"), lease=None)
)
LOSE_ROLLBACK = Command(
    sa.update(ISSUANCE)
    .where(ISSUANCE.c.state == "rollback_pending", ORPHANED)
    .values(state="rollback_unknown", updated=sa.bindparam("at"), lease=None)
)
# A process whose clock was set meanwhile may have dated its claim and its row differently: the claim goes with the row.
FREEZE_LOST = Command(
    sa.update(CLAIM)
    .where(
        CLAIM.c.state == "dispatching",
        IN_THE_LEDGER.where(ISSUANCE.c.state == "outcome_unknown"),
    )
    .values(state="unknown")
)
MARK_INTENTS = Command(
    sa.update(INTENT)
    .where(
        INTENT.c.status == "processing",
        INTENT.c.error.is_(None),
        INTENT.c.id.in_(sa.select(ISSUANCE.c.intent).where(ISSUANCE.c.state == "outcome_unknown", ISSUANCE.c.intent.is_not(None))),
    )
    .values(error=LOST_ERROR)
)


def any_orphans(connection: Connection, *, now: float) -> bool:
    """Whether there is anything to judge; a read, so that an idle worker never takes the write lock."""
    before = math.ceil(now - LEASE_SECONDS)
    return connection.first(ANY, now=now, before=before) is not None


def recover_orphans(connection: Connection, *, now: float) -> int:
    """Judge it all; how many issuances and releases have an unknown outcome from now on."""
    before = math.ceil(now - LEASE_SECONDS)
    freeze_orphans(connection, now=now)
    lost = connection.run(LOSE, now=now, before=before, at=now, due_ms=int(now * 1000))
    if lost:
        connection.run(FREEZE_LOST)
        connection.run(MARK_INTENTS)
    return lost + connection.run(LOSE_ROLLBACK, now=now, before=before, at=now)
