"""The own token that another one replaced: kept for a day, sealed as it was, so that one undo is possible."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import StatementBuild, TableDescription, changes_one, changes_rows, first_row, upsert, writes


class FormerToken(NamedTuple):
    """A replaced token; `expires_at` is in Unix seconds."""

    sealed: str
    expires_at: Annotated[float, Field(index=True)]


class FormerTokenTable(TableDescription, row=FormerToken, table=True):
    """The own token that another own token replaced, sealed as it was, until `expires_at` (Unix seconds)."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id")


FORMER_TOKEN = FormerTokenTable.table

FORMER_TOKEN_SECONDS = 86_400.0

FORMER_TOKEN_OF = FORMER_TOKEN.c.organisation == sa.bindparam("organisation")

FORMER_TOKEN_LIVES = FORMER_TOKEN.c.expires_at > sa.bindparam("now")


@first_row(FormerToken)
def find_former_token(*, organisation: str, now: float) -> sa.Executable:
    """The token that an organisation may still go back to at `now` (Unix seconds)."""
    return sa.select(FORMER_TOKEN.c.sealed, FORMER_TOKEN.c.expires_at).where(FORMER_TOKEN_OF, FORMER_TOKEN_LIVES)


@writes
def keep_former_token(*, organisation: str, sealed: str, now: Annotated[float, FORMER_TOKEN_SECONDS.__add__]) -> StatementBuild:
    """Keeps a replaced token for a day from `now`; one that was kept before is erased, since only the last change can be undone."""
    return upsert(FORMER_TOKEN, key=["organisation"], organisation=organisation, sealed=sealed, expires_at=now)


@changes_one
def take_former_token(*, organisation: str, sealed: str, now: float) -> sa.Executable:
    """Erases the token that is about to be used again. False: it is not there any more, or another one is. `now`: Unix seconds."""
    return sa.delete(FORMER_TOKEN).where(FORMER_TOKEN_OF, FORMER_TOKEN_LIVES, FORMER_TOKEN.c.sealed == sealed)


@writes
def erase_former_token(*, organisation: str) -> sa.Executable:
    return sa.delete(FORMER_TOKEN).where(FORMER_TOKEN_OF)


@changes_rows
def sweep_former_tokens(*, now: float) -> sa.Executable:
    """Erases the tokens whose day is over; how many they were. `now`: Unix seconds."""
    return sa.delete(FORMER_TOKEN).where(FORMER_TOKEN.c.expires_at <= now)
