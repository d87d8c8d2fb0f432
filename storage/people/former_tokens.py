"""The own token that another one replaced: kept for a day, sealed as it was, so that one undo is possible."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.people.setup_tables import FormerTokenTable
from storage.statement import Command, Query, table

FORMER = table(FormerTokenTable)
FORMER_TOKEN_SECONDS = 86_400.0


class FormerToken(NamedTuple):
    """A replaced token; `expires_at` is in Unix seconds."""

    sealed: str
    expires_at: float


ITS = FORMER.c.organisation == sa.bindparam("organisation")
LIVES = FORMER.c.expires_at > sa.bindparam("now")
FIND = Query(FormerToken, sa.select(FORMER.c.sealed, FORMER.c.expires_at).where(ITS, LIVES))
KEEP = Command(
    lambda dialect: (
        dialect.insert(FORMER)
        .values({name: sa.bindparam(name) for name in ("organisation", "sealed", "expires_at")})
        .on_conflict_do_update(
            index_elements=["organisation"], set_={"sealed": sa.bindparam("sealed"), "expires_at": sa.bindparam("expires_at")}
        )
    )
)
TAKE = Command(sa.delete(FORMER).where(ITS, LIVES, FORMER.c.sealed == sa.bindparam("sealed")))
ERASE = Command(sa.delete(FORMER).where(ITS))
SWEEP = Command(sa.delete(FORMER).where(FORMER.c.expires_at <= sa.bindparam("now")))


def find_former_token(connection: Connection, *, organisation: str, now: float) -> FormerToken | None:
    """The token that an organisation may still go back to at `now` (Unix seconds)."""
    return connection.first(FIND, organisation=organisation, now=now)


def keep_former_token(connection: Connection, *, organisation: str, sealed: str, now: float) -> None:
    """Keeps a replaced token for a day from `now`; one that was kept before is erased, since only the last change can be undone."""
    connection.run(KEEP, organisation=organisation, sealed=sealed, expires_at=now + FORMER_TOKEN_SECONDS)


def take_former_token(connection: Connection, *, organisation: str, sealed: str, now: float) -> bool:
    """Erases the token that is about to be used again. False: it is not there any more, or another one is."""
    return connection.run(TAKE, organisation=organisation, sealed=sealed, now=now) == 1


def erase_former_token(connection: Connection, *, organisation: str) -> None:
    """Erases the former token, where there is one."""
    connection.run(ERASE, organisation=organisation)


def sweep_former_tokens(connection: Connection, *, now: float) -> int:
    """Erases the tokens whose day is over; how many they were."""
    return connection.run(SWEEP, now=now)
