"""What processes that are gone left behind: it is freed where nothing was sent, and unknown where something may have been."""

import math

import sqlalchemy as sa

from storage.claims import freeze_orphans
from storage.connection import Connection
from storage.intents import LOST_ERROR
from storage.issuance import ISSUANCE
from storage.replicas import LEASE_SECONDS, REPLICA
from storage.schema import IntentTable
from storage.statement import Command, table

INTENT = table(IntentTable)
# A row's owner has no lease any more, and the row is older than one: a process that missed its lease may have gone on for a while.
ORPHANED = ISSUANCE.c.owner.not_in(
    sa.select(REPLICA.c.id).where((REPLICA.c.expires_at >= sa.bindparam("now")) | (ISSUANCE.c.updated >= sa.bindparam("before")))
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
MARK_INTENTS = Command(
    sa.update(INTENT)
    .where(
        INTENT.c.status == "processing",
        INTENT.c.error.is_(None),
        INTENT.c.id.in_(sa.select(ISSUANCE.c.intent).where(ISSUANCE.c.state == "outcome_unknown", ISSUANCE.c.intent.is_not(None))),
    )
    .values(error=LOST_ERROR)
)


def recover_orphans(connection: Connection, *, now: float) -> int:
    """Judge it all; how many issuances and releases have an unknown outcome from now on."""
    before = math.ceil(now - LEASE_SECONDS)
    freeze_orphans(connection, now=now)
    lost = connection.run(LOSE, now=now, before=before, at=now, due_ms=int(now * 1000))
    if lost:
        connection.run(MARK_INTENTS)
    return lost + connection.run(LOSE_ROLLBACK, now=now, before=before, at=now)
