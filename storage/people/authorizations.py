"""A login on its way: the program's request, then the person's consent as a code, which is used once."""

from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import NotFound
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.people.grants import Grant, find_grant, grant_to_member, prolong_grant, revoke_grant
from storage.people.oauth_clients import note_use
from storage.people.refresh_tokens import insert_refresh_token
from storage.schema import AuthorizationCodeTable, AuthorizationRequestTable
from storage.statement import Command, Query, table

USED_CODES_KEPT = 86_400.0
"""How long after its 60 seconds a code that is used again is still known."""
REQUEST, CODE = table(AuthorizationRequestTable), table(AuthorizationCodeTable)
ANSWERED = "This login has been answered already, or it took too long"


class AuthorizationRequest(NamedTuple):
    """A request that waits for consent; `details` can be read with its token alone."""

    client_id: str
    details: str


class AuthorizationCode(NamedTuple):
    """A consent that waits for its program, or was fetched already."""

    grant_id: str
    client_id: str
    details: str
    used_at: float | None


class NewCode(NamedTuple):
    """A code about to be kept."""

    digest: bytes
    details: str
    expires_at: float


REQUEST_FIELDS = ("digest", "client_id", "details", "expires_at")
CODE_FIELDS = ("digest", "grant_id", "client_id", "details", "expires_at")
INSERT_REQUEST = Command(sa.insert(REQUEST).values({name: sa.bindparam(name) for name in REQUEST_FIELDS}))
FIND_REQUEST = Query(
    AuthorizationRequest,
    sa.select(REQUEST.c.client_id, REQUEST.c.details).where(
        REQUEST.c.digest == sa.bindparam("digest"), REQUEST.c.expires_at > sa.bindparam("now")
    ),
)
END_REQUEST = Command(sa.delete(REQUEST).where(REQUEST.c.digest == sa.bindparam("digest"), REQUEST.c.expires_at > sa.bindparam("now")))
SWEEP_REQUESTS = Command(sa.delete(REQUEST).where(REQUEST.c.expires_at < sa.bindparam("now")))
INSERT_CODE = Command(sa.insert(CODE).values({name: sa.bindparam(name) for name in CODE_FIELDS}))
FIND_CODE = Query(
    AuthorizationCode,
    sa.select(*(CODE.c[name] for name in AuthorizationCode._fields)).where(CODE.c.digest == sa.bindparam("digest")),
)
USE_CODE = Command(
    sa.update(CODE)
    .where(
        CODE.c.digest == sa.bindparam("code"),
        CODE.c.client_id == sa.bindparam("client"),
        CODE.c.used_at.is_(None),
        CODE.c.expires_at > sa.bindparam("now"),
    )
    .values(used_at=sa.bindparam("at"))
)
SWEEP_CODES = Command(sa.delete(CODE).where(CODE.c.expires_at < sa.bindparam("before")))


def insert_request(connection: Connection, *, digest: bytes, client: str, details: str, expires_at: float) -> None:
    """A program asks for consent."""
    connection.run(INSERT_REQUEST, digest=digest, client_id=client, details=details, expires_at=expires_at)


def find_request(connection: Connection, *, digest: bytes, now: float) -> AuthorizationRequest | None:
    """A request that waits."""
    return connection.first(FIND_REQUEST, digest=digest, now=now)


def end_request(connection: Connection, *, digest: bytes, now: float) -> bool:
    """Answer a request; False when somebody has, or it has expired."""
    return connection.run(END_REQUEST, digest=digest, now=now) == 1


def keep_consent(connection: Connection, *, request: bytes, grant: Grant, code: NewCode, line: Line | None, now: float) -> None:
    """A person said yes: the request ends, the grant, its code and its audit row begin. NotFound undoes all of it."""
    if not end_request(connection, digest=request, now=now):
        raise NotFound(ANSWERED, hint="Begin the login again in the program that asked")
    grant_to_member(connection, grant)
    if line is not None:
        append_line(connection, line)
    connection.run(
        INSERT_CODE, digest=code.digest, grant_id=grant.id, client_id=grant.client_id, details=code.details, expires_at=code.expires_at
    )
    note_use(connection, client=grant.client_id, now=now)


def find_code(connection: Connection, *, digest: bytes) -> AuthorizationCode | None:
    """A code, fresh, used or expired."""
    return connection.first(FIND_CODE, digest=digest)


def use_code(connection: Connection, *, digest: bytes, client: str, refresh: bytes | None, until: float, now: float) -> Grant | None:
    """The grant behind a code, for whoever comes first; a second use ends it. `refresh`: what it is renewed with; `until`: its end."""
    if connection.run(USE_CODE, code=digest, client=client, now=now, at=now) != 1:
        end_reused_code(connection, digest=digest, client=client, now=now)
        return None
    code = connection.first(FIND_CODE, digest=digest)
    if code is not None:
        prolong_grant(connection, grant=code.grant_id, until=until, now=now)
    found = None if code is None else find_grant(connection, grant=code.grant_id, now=now)
    if found is None:
        return None
    if refresh is not None:
        insert_refresh_token(connection, digest=refresh, grant=found[0], now=now)
    return found[0]


def end_reused_code(connection: Connection, *, digest: bytes, client: str, now: float) -> None:
    """Two have this code, so one of them stole it: what came of it ends (RFC 6749 section 4.1.2)."""
    code = connection.first(FIND_CODE, digest=digest)
    if code is not None and code.client_id == client and code.used_at is not None:
        revoke_grant(connection, grant=code.grant_id, now=now)


def sweep_authorizations(connection: Connection, *, now: float) -> int:
    """Forget requests and codes that have expired."""
    return connection.run(SWEEP_REQUESTS, now=now) + connection.run(SWEEP_CODES, before=now - USED_CODES_KEPT)
