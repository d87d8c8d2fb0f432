"""The own token that another one replaced: kept for a day, sealed as it was, so that one undo is possible."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of


class FormerTokenTable(TableDescription, table=True):
    """The own token that another own token replaced, sealed as it was, until `expires_at` (Unix seconds)."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id", sa_type=sa.Text)
    sealed: str = Field(sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double, index=True)


FORMER_TOKEN = table_of(FormerTokenTable)

FORMER_TOKEN_SECONDS = 86_400.0


class FormerToken(NamedTuple):
    """A replaced token; `expires_at` is in Unix seconds."""

    sealed: str
    expires_at: float


FORMER_TOKEN_OF = FORMER_TOKEN.c.organisation == sa.bindparam("organisation")

FORMER_TOKEN_LIVES = FORMER_TOKEN.c.expires_at > sa.bindparam("now")

FIND_FORMER_TOKEN = Query(
    FormerToken, sa.select(FORMER_TOKEN.c.sealed, FORMER_TOKEN.c.expires_at).where(FORMER_TOKEN_OF, FORMER_TOKEN_LIVES)
)

PUT_FORMER_TOKEN = Command(
    lambda dialect: (
        dialect.insert(FORMER_TOKEN)
        .values({name: sa.bindparam(name) for name in ("organisation", "sealed", "expires_at")})
        .on_conflict_do_update(
            index_elements=["organisation"], set_={"sealed": sa.bindparam("sealed"), "expires_at": sa.bindparam("expires_at")}
        )
    )
)

TAKE_FORMER_TOKEN = Command(
    sa.delete(FORMER_TOKEN).where(FORMER_TOKEN_OF, FORMER_TOKEN_LIVES, FORMER_TOKEN.c.sealed == sa.bindparam("sealed"))
)

ERASE_FORMER_TOKEN = Command(sa.delete(FORMER_TOKEN).where(FORMER_TOKEN_OF))

SWEEP_FORMER_TOKENS = Command(sa.delete(FORMER_TOKEN).where(FORMER_TOKEN.c.expires_at <= sa.bindparam("now")))


def find_former_token(connection: Connection, *, organisation: str, now: float) -> FormerToken | None:
    """The token that an organisation may still go back to at `now` (Unix seconds)."""
    return connection.first(FIND_FORMER_TOKEN, organisation=organisation, now=now)


def keep_former_token(connection: Connection, *, organisation: str, sealed: str, now: float) -> None:
    """Keeps a replaced token for a day from `now`; one that was kept before is erased, since only the last change can be undone."""
    connection.run(PUT_FORMER_TOKEN, organisation=organisation, sealed=sealed, expires_at=now + FORMER_TOKEN_SECONDS)


def take_former_token(connection: Connection, *, organisation: str, sealed: str, now: float) -> bool:
    """Erases the token that is about to be used again. False: it is not there any more, or another one is."""
    return connection.run(TAKE_FORMER_TOKEN, organisation=organisation, sealed=sealed, now=now) == 1


def erase_former_token(connection: Connection, *, organisation: str) -> None:
    """Erases the former token, where there is one."""
    connection.run(ERASE_FORMER_TOKEN, organisation=organisation)


def sweep_former_tokens(connection: Connection, *, now: float) -> int:
    """Erases the tokens whose day is over; how many they were."""
    return connection.run(SWEEP_FORMER_TOKENS, now=now)
