"""Work that one replica at a time does: a row per job, claimed by a lease and given back with the time it is due next.

`due_ms` is also the visibility timeout: a job whose holder died is due again when its lease ends.
"""

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Command, Connection, TableDescription, changes_one, insert_once, value_or


class JobTable(TableDescription, table=True):
    """Work that one replica at a time does: when it is due next, and who does it now. `due_ms` ends a lease, too."""

    name: str = Field(primary_key=True)
    due_ms: BigInt
    lease: str | None


JOB = JobTable.table

BOUND_JOB_NAME = sa.bindparam("name", type_=sa.Text)

ENSURE_JOB = Command(insert_once(JOB, ("name", "due_ms"), key=["name"], lease=None))

# PostgreSQL skips the row while another replica holds it; on SQLite the clause renders nothing, and the write lock excludes.
JOB_IS_DUE = (JOB.c.due_ms <= sa.bindparam("now_ms")) | (JOB.c.due_ms > sa.bindparam("latest_ms"))

PICK_JOB = sa.select(JOB.c.name).where(JOB.c.name == BOUND_JOB_NAME, JOB_IS_DUE).with_for_update(skip_locked=True)

CLAIM_JOB = Command(
    sa.update(JOB).where(JOB.c.name.in_(PICK_JOB.scalar_subquery())).values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"))
)


@value_or(0)
def job_due_at(*, name: str) -> sa.Executable:
    """When the job may be claimed; 0 before it was ever claimed. A read, so that an idle replica never takes the write lock."""
    return sa.select(JOB.c.due_ms).where(JOB.c.name == BOUND_JOB_NAME)


def claim_job(connection: Connection, *, name: str, token: str, now_ms: int, lease_ms: int, latest_ms: int) -> bool:
    """Take the job for the length of a lease; False when it is not due, or another has it.

    One that is due after `latest_ms` was put off by a clock that was ahead, and is due now.
    """
    connection.run(ENSURE_JOB, name=name, due_ms=now_ms)
    return connection.run(CLAIM_JOB, name=name, token=token, now_ms=now_ms, latest_ms=latest_ms, lease_end=now_ms + lease_ms) == 1


@changes_one
def finish_job(*, name: str, token: str, next_ms: int) -> sa.Executable:
    """Let go of the job until it is due again; False when the lease was lost meanwhile, and nothing has changed."""
    return sa.update(JOB).where(JOB.c.name == BOUND_JOB_NAME, JOB.c.lease == token).values(lease=None, due_ms=next_ms)
