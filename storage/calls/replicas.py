"""Living processes: each renews a lease; what one of them held when its lease ran out has an unknown outcome."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.revision import HEAD
from storage.schema import ReplicaTable
from storage.statement import Command, Query, table

REPLICA = table(ReplicaTable)
COLUMNS = ("expires_at", "key_ids", "revision")
RENEW = Command(
    lambda dialect: (
        dialect.insert(REPLICA)
        .values({name: sa.bindparam(name) for name in ("id", *COLUMNS)})
        .on_conflict_do_update(index_elements=["id"], set_={name: sa.bindparam(name) for name in COLUMNS})
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
OLDER = Query(
    Living,
    sa.select(REPLICA.c.expires_at.label("until"))
    .where(REPLICA.c.revision < sa.bindparam("revision", type_=sa.Text), REPLICA.c.expires_at > sa.bindparam("now", type_=sa.Double))
    .limit(1),
)
LEASE_SECONDS = 30.0
KEPT_SECONDS = 86_400.0


def renew(connection: Connection, *, replica: str, now: float, key_ids: Sequence[str] = ()) -> None:
    """Say that this process lives for another half minute, and which encryption keys it knows, the one that seals first."""
    connection.run(RENEW, id=replica, expires_at=now + LEASE_SECONDS, key_ids=",".join(key_ids), revision=HEAD)


def all_know(connection: Connection, *, revision: str, now: float) -> bool:
    """Whether every process that runs was written for this schema revision or a later one. `now`: Unix seconds.

    Choice: a process counts for one lease longer than its lease, since one that missed it may go on.
    """
    return connection.first(OLDER, revision=revision, now=now - LEASE_SECONDS) is None


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
