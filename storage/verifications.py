"""Codes that were mailed and are waited for. Neither the client's token nor the code is here: who reads the table can use no row of it."""

import hmac
from typing import Annotated, Literal, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import Connection, Query, TableDescription, changes_rows, first_row, writes

VerificationPurpose = Literal["sign_up", "sign_in"]


class Verification(NamedTuple):
    """A code on its way. `digest` is of the client's token, `code_digest` of token and code together."""

    digest: Annotated[bytes, Field(primary_key=True)]
    purpose: VerificationPurpose
    address: str
    code_digest: bytes
    details: str
    expires_at: Annotated[float, Field(index=True)]


class VerificationTable(TableDescription, row=Verification, table=True):
    """A code that was mailed: a sign-up or a sign-in that waits for it. `code_digest` covers the client's token too, which is not kept."""

    tries: int


VERIFICATION = VerificationTable.table

MOST_CODE_TRIES = 5


class VerifiedAddress(NamedTuple):
    """Who has proved to read an address' mail, and what they were about to do."""

    address: str
    details: str


VERIFICATION_IS_WAITING = (
    VERIFICATION.c.digest == sa.bindparam("digest"),
    VERIFICATION.c.purpose == sa.bindparam("purpose"),
    VERIFICATION.c.expires_at > sa.bindparam("now"),
)

# Counted before it is compared: of any number of guesses at once five are looked at.
TRY_CODE = Query(
    bytes,
    sa.update(VERIFICATION)
    .where(*VERIFICATION_IS_WAITING, VERIFICATION.c.tries < MOST_CODE_TRIES)
    .values(tries=VERIFICATION.c.tries + 1)
    .returning(VERIFICATION.c.code_digest),
)


@writes
def insert_verification(*, verification: Verification) -> sa.Executable:
    return sa.insert(VERIFICATION).values({**verification._asdict(), "tries": 0})


def try_verification_code(connection: Connection, *, digest: bytes, purpose: VerificationPurpose, code_digest: bytes, now: float) -> bool:
    """Spend a try; whether it was the code. The try is spent only when this commits, so a wrong guess must not undo it."""
    tried = connection.first(TRY_CODE, digest=digest, purpose=purpose, now=now)
    return tried is not None and hmac.compare_digest(tried, code_digest)


@first_row(VerifiedAddress)
def use_verification(*, digest: bytes, purpose: VerificationPurpose, now: float) -> sa.Executable:
    """Use it up, after the right code was tried; nothing for the second of two who come at once. `now`: Unix seconds."""
    return sa.delete(VERIFICATION).where(*VERIFICATION_IS_WAITING)


@changes_rows
def sweep_verifications(*, now: float) -> sa.Executable:
    """Delete codes that have expired at `now` (Unix seconds); returns how many."""
    return sa.delete(VERIFICATION).where(VERIFICATION.c.expires_at <= now)
