"""OAuth consents that people are about to give at the payment processor: each `state` is good once, for whoever began it."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import ConnectStateTable
from storage.statement import Command, Query, table

STATE = table(ConnectStateTable)


class ConnectState(NamedTuple):
    """A consent under way; `digest` is the SHA-256 of its `state`, in hexadecimal digits."""

    digest: str
    organisation: str
    person: str
    expires_at: float


class Used(NamedTuple):
    """The state was good, and is used up."""

    digest: str


INSERT = Command(sa.insert(STATE).values({name: sa.bindparam(name) for name in ConnectState._fields}))
USE = Query(
    Used,
    sa.delete(STATE)
    .where(
        STATE.c.digest == sa.bindparam("digest"),
        STATE.c.organisation == sa.bindparam("organisation"),
        STATE.c.person == sa.bindparam("person"),
        STATE.c.expires_at > sa.bindparam("now"),
    )
    .returning(STATE.c.digest),
)
SWEEP = Command(sa.delete(STATE).where(STATE.c.expires_at <= sa.bindparam("now")))


def insert_state(connection: Connection, *, state: ConnectState) -> None:
    """A consent begins."""
    connection.run(INSERT, **state._asdict())


def use_state(connection: Connection, *, digest: str, organisation: str, person: str, now: float) -> bool:
    """Use it up; of any number at once one gets True. Another organisation or person uses nothing up."""
    return connection.first(USE, digest=digest, organisation=organisation, person=person, now=now) is not None


def sweep_states(connection: Connection, *, now: float) -> int:
    """Forget those whose time has passed."""
    return connection.run(SWEEP, now=now)
