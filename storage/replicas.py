"""Living processes: each renews a lease; what one of them held when its lease ran out has an unknown outcome."""

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import ReplicaTable
from storage.statement import Command, table

REPLICA = table(ReplicaTable)
RENEW = Command(
    lambda dialect: (
        dialect.insert(REPLICA)
        .values(id=sa.bindparam("id"), expires_at=sa.bindparam("expires_at"))
        .on_conflict_do_update(index_elements=["id"], set_={"expires_at": sa.bindparam("expires_at")})
    )
)
LEAVE = Command(sa.delete(REPLICA).where(REPLICA.c.id == sa.bindparam("replica")))
FORGET = Command(sa.delete(REPLICA).where(REPLICA.c.expires_at < sa.bindparam("before")))
LEASE_SECONDS = 30.0
KEPT_SECONDS = 86_400.0


def renew(connection: Connection, *, replica: str, now: float) -> None:
    """Say that this process lives for another half minute."""
    connection.run(RENEW, id=replica, expires_at=now + LEASE_SECONDS)


def leave(connection: Connection, *, replica: str, now: float) -> None:
    """This process has ended: it has no lease any more, and what it left behind is nobody's. Forget also those that died long ago."""
    connection.run(LEAVE, replica=replica)
    connection.run(FORGET, before=now - KEPT_SECONDS)
