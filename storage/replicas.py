"""Living processes: each renews a lease; what one of them held when its lease ran out has an unknown outcome.

A process says for which schema its program was written, and each schema version beside which programs it may be in use.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.revision import HEAD
from storage.engine.sql import Command, Connection, Key, Query, TableDescription, all_rows, changes_rows, row_exists, upsert, value_or


class ReplicaKeys(NamedTuple):
    """A running process and the ids of the encryption keys that it knows, as the table has them; `expires_at`: Unix seconds."""

    id: Key
    expires_at: float
    key_ids: Annotated[str, Field(default="", sa_column_kwargs={"server_default": ""})]

    @property
    def known(self) -> tuple[str, ...]:
        """The ids, the one that seals first; none where the process has not said."""
        return tuple(self.key_ids.split(",")) if self.key_ids else ()


class ReplicaTable(TableDescription, row=ReplicaKeys, table=True):
    """A living process: claims of one whose lease has run out are unknown.

    `key_ids`: the ids of the encryption keys that it knows, separated by commas, the one that seals first; empty where it has not said.
    `revision`: the schema that its program was written for; empty for programs before 0019.
    """

    revision: str = Field(default="", sa_column_kwargs={"server_default": ""})


class SchemaStepTable(TableDescription, table=True):
    """A migration that was made. `works_from`: the oldest version whose programs work on what it left."""

    revision: str = Field(primary_key=True)
    works_from: str


REPLICA = ReplicaTable.table

RENEW_REPLICA = Command(upsert(REPLICA, REPLICA.c.keys(), key=["id"]))

LEAVE_REPLICA = Command(lambda _: sa.delete(REPLICA).where(REPLICA.c.id == sa.bindparam("replica")))

FORGET_REPLICA = Command(lambda _: sa.delete(REPLICA).where(REPLICA.c.expires_at < sa.bindparam("before")))

OLDER_REPLICAS = Query(
    float,
    sa.select(REPLICA.c.expires_at.label("until"))
    .where(REPLICA.c.revision < sa.bindparam("revision", type_=sa.Text), REPLICA.c.expires_at > sa.bindparam("now", type_=sa.Double))
    .limit(1),
)

REPLICA_LEASE_SECONDS = 30.0

REPLICA_KEPT_SECONDS = 86_400.0


def renew_replica(connection: Connection, *, replica: str, now: float, key_ids: Sequence[str] = ()) -> None:
    """Say that this process lives for another half minute, and which encryption keys it knows, the one that seals first."""
    connection.run(RENEW_REPLICA, id=replica, expires_at=now + REPLICA_LEASE_SECONDS, key_ids=",".join(key_ids), revision=HEAD)


def all_programs_know(connection: Connection, *, revision: str, now: float) -> bool:
    """Whether every process that runs was written for this schema revision or a later one. `now`: Unix seconds.

    Choice: a process counts for one lease longer than its lease, since one that missed it may go on.
    """
    return connection.first(OLDER_REPLICAS, revision=revision, now=now - REPLICA_LEASE_SECONDS) is None


@all_rows(ReplicaKeys)
def running_keys(*, now: float) -> sa.Executable:
    """The processes that run at `now` (Unix seconds), and the encryption keys that each knows."""
    return (
        sa.select(REPLICA.c.id, REPLICA.c.expires_at, REPLICA.c.key_ids)
        .where(REPLICA.c.expires_at > sa.bindparam("now", type_=sa.Double))
        .order_by(REPLICA.c.id)
    )


def end_replica(connection: Connection, *, replica: str, now: float) -> None:
    """End the lease of the process `replica`, and delete those that died a day ago. `now`: Unix seconds."""
    connection.run(LEAVE_REPLICA, replica=replica)
    connection.run(FORGET_REPLICA, before=now - REPLICA_KEPT_SECONDS)


@value_or(0.0)
def last_lease_end() -> sa.Executable:
    """When the last process that uses this database will have ended, Unix seconds; 0 when none has a lease."""
    return sa.select(sa.func.max(REPLICA.c.expires_at).label("until"))


SCHEMA_STEP = SchemaStepTable.table

EXPIRED_KEYS_REVISION = "0019"
"""The schema from which on programs look here before they draw: nothing is swept beside an older one."""


def older_programs_are_gone(connection: Connection, *, now: float, revision: str = EXPIRED_KEYS_REVISION) -> bool:
    """Whether no program runs, or will start, that does not know the small tables of `revision`. `now`: Unix seconds.

    Choice: the first call closes the database to such programs and says no. One that had just looked whether it may start is a running
    process by the next call, a minute later.
    """
    if close_to_older_programs(connection, revision=revision):
        return False
    return is_closed_to_older_programs(connection, revision=revision) and all_programs_know(connection, revision=revision, now=now)


@changes_rows
def close_to_older_programs(*, revision: str) -> sa.Executable:
    """Let no program start any more that was written for a schema before this revision; False where none could."""
    return (
        sa.update(SCHEMA_STEP)
        .where(
            SCHEMA_STEP.c.revision >= sa.bindparam("revision", type_=sa.Text),
            SCHEMA_STEP.c.works_from < sa.bindparam("revision", type_=sa.Text),
        )
        .values(works_from=sa.bindparam("revision", type_=sa.Text))
    )


@row_exists
def is_closed_to_older_programs(*, revision: str) -> sa.Executable:
    """Whether only programs that know `revision` may start: no where the schema is older, and before anything was to be removed."""
    return sa.select(SCHEMA_STEP.c.revision).where(SCHEMA_STEP.c.works_from >= sa.bindparam("revision", type_=sa.Text)).limit(1)
