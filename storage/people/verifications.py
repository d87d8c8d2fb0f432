"""Codes that were mailed and are waited for. Neither the client's token nor the code is here: who reads the table can use no row of it."""

import hmac
from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import VerificationTable
from storage.statement import Command, Query, table

VERIFICATION = table(VerificationTable)
MOST_TRIES = 5
Purpose = Literal["sign_up", "sign_in"]


class Verification(NamedTuple):
    """A code on its way. `digest` is of the client's token, `code_digest` of token and code together."""

    digest: bytes
    purpose: Purpose
    address: str
    code_digest: bytes
    details: str
    expires_at: float


class Tried(NamedTuple):
    """What a guess is compared with."""

    code_digest: bytes


class Verified(NamedTuple):
    """Who has proved to read an address' mail, and what they were about to do."""

    address: str
    details: str


INSERT = Command(sa.insert(VERIFICATION).values({**{name: sa.bindparam(name) for name in Verification._fields}, "tries": 0}))
WAITING = (
    VERIFICATION.c.digest == sa.bindparam("token"),
    VERIFICATION.c.purpose == sa.bindparam("kind"),
    VERIFICATION.c.expires_at > sa.bindparam("now"),
)
# Counted before it is compared: of any number of guesses at once five are looked at.
TRY = Query(
    Tried,
    sa.update(VERIFICATION)
    .where(*WAITING, VERIFICATION.c.tries < MOST_TRIES)
    .values(tries=VERIFICATION.c.tries + 1)
    .returning(VERIFICATION.c.code_digest),
)
USE = Query(Verified, sa.delete(VERIFICATION).where(*WAITING).returning(*(VERIFICATION.c[name] for name in Verified._fields)))
SWEEP = Command(sa.delete(VERIFICATION).where(VERIFICATION.c.expires_at <= sa.bindparam("now")))


def keep_verification(connection: Connection, *, verification: Verification) -> None:
    """A code was mailed."""
    connection.run(INSERT, **verification._asdict())


def try_code(connection: Connection, *, digest: bytes, purpose: Purpose, code_digest: bytes, now: float) -> bool:
    """Spend a try; whether it was the code. The try is spent only when this commits, so a wrong guess must not undo it."""
    tried = connection.first(TRY, token=digest, kind=purpose, now=now)
    return tried is not None and hmac.compare_digest(tried.code_digest, code_digest)


def use_verification(connection: Connection, *, digest: bytes, purpose: Purpose, now: float) -> Verified | None:
    """Use it up, after the right code was tried; nothing for the second of two who come at once."""
    return connection.first(USE, token=digest, kind=purpose, now=now)


def sweep_verifications(connection: Connection, *, now: float) -> int:
    """Forget those whose time has passed."""
    return connection.run(SWEEP, now=now)
