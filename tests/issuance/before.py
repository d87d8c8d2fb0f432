"""Keys as the release before stored them: as they were sent, quotes and all."""

import sqlalchemy as sa

from storage.claims import CLAIM
from storage.engine.sql import Command, Connection, Query
from storage.issuance import ISSUANCE
from storage.sealing import Keyring, claim_field
from tests.registry.ledgers import SealedRow

SEALED = Query(SealedRow, sa.select(CLAIM.c.body).where(CLAIM.c.operation == sa.bindparam("op"), CLAIM.c.key == sa.bindparam("was")))
CLAIMED = Command(
    sa.update(CLAIM)
    .where(CLAIM.c.operation == sa.bindparam("op"), CLAIM.c.key == sa.bindparam("was"))
    .values(key=sa.bindparam("now"), body=sa.bindparam("sealed"))
)
DRAWN = Command(
    sa.update(ISSUANCE)
    .where(ISSUANCE.c.claim_key == sa.bindparam("was"))
    .values(claim_key=sa.bindparam("now"), key=sa.case((ISSUANCE.c.key == sa.bindparam("was"), sa.bindparam("now")), else_=ISSUANCE.c.key))
)


def spell(connection: Connection, *, keyring: Keyring, organisation: str, operation: str, key: str, spelling: str) -> None:
    """What was done under `key` was done under `spelling`."""
    row = connection.first(SEALED, op=operation, was=key)
    assert row is not None
    was, now = claim_field(operation, key), claim_field(operation, spelling)
    sealed = keyring.seal(keyring.open(row.body, org_id=organisation, field=was), org_id=organisation, field=now)
    assert connection.run(CLAIMED, op=operation, was=key, now=spelling, sealed=sealed) == 1
    connection.run(DRAWN, was=key, now=spelling)
