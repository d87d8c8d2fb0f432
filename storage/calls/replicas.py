"""Living processes: each renews a lease; what one of them held when its lease ran out has an unknown outcome."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import ReplicaTable
from storage.statement import Command, Query, table

REPLICA = table(ReplicaTable)
RENEW = Command(
    lambda dialect: (
        dialect.insert(REPLICA)
        .values(id=sa.bindparam("id"), expires_at=sa.bindparam("expires_at"), key_ids=sa.bindparam("key_ids"))
        .on_conflict_do_update(index_elements=["id"], set_={"expires_at": sa.bindparam("expires_at"), "key_ids": sa.bindparam("key_ids")})
    )
)
LEAVE = Command(sa.delete(REPLICA).where(REPLICA.c.id == sa.bindparam("replica")))
FORGET = Command(sa.delete(REPLICA).where(REPLICA.c.expires_at < sa.bindparam("before")))


class Living(NamedTuple):
    """When the last lease ends."""

    until: float | None


LIVING = Query(Living, sa.select(sa.func.max(REPLICA.c.expires_at).label("until")))


class ReplicaKeys(NamedTuple):
    """A running process and the ids of the encryption keys that it knows, as the table has them; `expires_at`: Unix seconds."""

    id: str
    expires_at: float
    key_ids: str

    @property
    def known(self) -> tuple[str, ...]:
        """The ids, the one that seals first; none where the process has not said."""
        return tuple(self.key_ids.split(",")) if self.key_ids else ()


KEYS = Query(
    ReplicaKeys,
    sa.select(REPLICA.c.id, REPLICA.c.expires_at, REPLICA.c.key_ids)
    .where(REPLICA.c.expires_at > sa.bindparam("now", type_=sa.Double))
    .order_by(REPLICA.c.id),
)
LEASE_SECONDS = 30.0
KEPT_SECONDS = 86_400.0


def renew(connection: Connection, *, replica: str, now: float, key_ids: Sequence[str] = ()) -> None:
    """Say that this process lives for another half minute, and which encryption keys it knows, the one that seals first."""
    connection.run(RENEW, id=replica, expires_at=now + LEASE_SECONDS, key_ids=",".join(key_ids))


def running_keys(connection: Connection, *, now: float) -> list[ReplicaKeys]:
    """The processes that run, and the encryption keys that each knows."""
    return connection.all(KEYS, now=now)


def leave(connection: Connection, *, replica: str, now: float) -> None:
    """This process has ended: it has no lease any more, and what it left behind is nobody's. Forget also those that died long ago."""
    connection.run(LEAVE, replica=replica)
    connection.run(FORGET, before=now - KEPT_SECONDS)


def living_until(connection: Connection) -> float:
    """When the last process that uses this database will have ended for certain; 0 when none has a lease."""
    row = connection.first(LIVING)
    return row.until or 0.0 if row else 0.0
