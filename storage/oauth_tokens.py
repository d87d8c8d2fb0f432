"""What a login hands its program: the consent as a code, then refresh tokens. Each is used once, and a second use ends the grant."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import NotFound
from registry.ports import AuditRecord
from storage.access_grants import ACCESS_GRANT, AccessGrant, find_grant, grant_to_member, prolong_grant, revoke_grant
from storage.api_keys import LogEndedKeys
from storage.audit import append_audit_record
from storage.engine.sql import Command, Connection, TableDescription, changes_rows, first_row
from storage.oauth_clients import SWEEP_REQUESTS, end_authorization_request, note_client_use


class AuthorizationCode(NamedTuple):
    """A consent that waits for its program, or was fetched already."""

    grant_id: Annotated[str, Field(foreign_key="access_grant.id")]
    client_id: str
    details: str
    used_at: float | None


class AuthorizationCodeTable(TableDescription, row=AuthorizationCode, table=True):
    """A consent on its way to the program; used once, and a second use ends the grant."""

    digest: bytes = Field(primary_key=True)
    expires_at: float = Field(index=True)


class RefreshToken(NamedTuple):
    """A refresh token that has not expired, used or not."""

    grant_id: Annotated[str, Field(foreign_key="access_grant.id", index=True)]
    client_id: str
    scopes: str
    used_at: float | None


class RefreshTokenTable(TableDescription, row=RefreshToken, table=True):
    """A refresh token: used once, and a second use ends the grant."""

    digest: bytes = Field(primary_key=True)
    expires_at: float = Field(index=True)


USED_CODES_KEPT = 86_400.0
"""How long after its 60 seconds a code that is used again is still known."""

AUTHORIZATION_CODE = AuthorizationCodeTable.table

ANSWERED = "This login has been answered already, or it took too long"


class NewCode(NamedTuple):
    digest: bytes
    details: str
    expires_at: float


CODE_FIELDS = ("digest", "grant_id", "client_id", "details", "expires_at")

INSERT_CODE = Command(lambda _: sa.insert(AUTHORIZATION_CODE).values({name: sa.bindparam(name) for name in CODE_FIELDS}))


def use_command(table: sa.Table) -> Command:
    """Use up what a client presents, unless it was used before or has expired."""
    is_good = (table.c.used_at.is_(None), table.c.expires_at > sa.bindparam("now"))
    of_client = (table.c.digest == sa.bindparam("presented"), table.c.client_id == sa.bindparam("client"))
    return Command(sa.update(table).where(*of_client, *is_good).values(used_at=sa.bindparam("at")))


USE_CODE = use_command(AUTHORIZATION_CODE)

SWEEP_CODES = Command(lambda _: sa.delete(AUTHORIZATION_CODE).where(AUTHORIZATION_CODE.c.expires_at < sa.bindparam("before")))


def keep_consent(
    connection: Connection, *, request: bytes, grant: AccessGrant, code: NewCode, line: AuditRecord | None, now: float
) -> None:
    """A person said yes: the request ends, the grant, its code and its audit row begin. NotFound undoes all of it. `now`: Unix seconds."""
    if not end_authorization_request(connection, digest=request, now=now):
        raise NotFound(ANSWERED, hint="Begin the login again in the program that asked")
    grant_to_member(connection, grant)
    if line is not None:
        append_audit_record(connection, line)
    connection.run(
        INSERT_CODE, digest=code.digest, grant_id=grant.id, client_id=grant.client_id, details=code.details, expires_at=code.expires_at
    )
    note_client_use(connection, client=grant.client_id, now=now)


@first_row(AuthorizationCode)
def find_authorization_code(*, digest: bytes) -> sa.Executable:
    """The code with this digest, whether it is fresh, used or expired; None where there is none."""
    return sa.select(*(AUTHORIZATION_CODE.c[name] for name in AuthorizationCode._fields)).where(AUTHORIZATION_CODE.c.digest == digest)


def use_authorization_code(
    connection: Connection, *, digest: bytes, client: str, refresh: bytes | None, until: float, now: float, log: LogEndedKeys | None = None
) -> AccessGrant | None:
    """The grant behind a code, for whoever comes first; a second use ends it. `refresh`: what it is renewed with; `until`: its end.

    `log` gets the keys that have ended with the grant.
    """
    if connection.run(USE_CODE, presented=digest, client=client, now=now, at=now) != 1:
        end_reused_code(connection, digest=digest, client=client, now=now, log=log)
        return None
    code = find_authorization_code(connection, digest=digest)
    if code is not None:
        prolong_grant(connection, grant=code.grant_id, until=until, now=now)
    found = None if code is None else find_grant(connection, grant=code.grant_id, now=now)
    if found is None:
        return None
    if refresh is not None:
        insert_refresh_token(connection, digest=refresh, grant=found[0], now=now)
    return found[0]


def end_reused_code(connection: Connection, *, digest: bytes, client: str, now: float, log: LogEndedKeys | None = None) -> None:
    """Two have this code, so one of them stole it: what came of it ends (RFC 6749 section 4.1.2). `now`: Unix seconds."""
    code = find_authorization_code(connection, digest=digest)
    if code is not None and code.client_id == client and code.used_at is not None:
        revoke_grant(connection, grant=code.grant_id, now=now, log=log)


def sweep_authorizations(connection: Connection, *, now: float) -> int:
    """Forget requests and codes that have expired. `now`: Unix seconds."""
    return connection.run(SWEEP_REQUESTS, now=now) + connection.run(SWEEP_CODES, before=now - USED_CODES_KEPT)


REFRESH_TOKEN = RefreshTokenTable.table

REFRESH_TOKEN_SECONDS = 30 * 86_400.0

# Choice: a program whose threads renew at the same moment sends one token twice. Within 10 s of its use the second is refused and nothing
# else happens; later it was stolen from one of two, and the grant ends. Nobody gets two successors of one token.
SAME_MOMENT_SECONDS = 10.0

REFRESH_TOKEN_FIELDS = ("digest", "grant_id", "client_id", "scopes", "expires_at")

INSERT_REFRESH_TOKEN = Command(lambda _: sa.insert(REFRESH_TOKEN).values({name: sa.bindparam(name) for name in REFRESH_TOKEN_FIELDS}))

USE_REFRESH_TOKEN = use_command(REFRESH_TOKEN)


def insert_refresh_token(connection: Connection, *, digest: bytes, grant: AccessGrant, now: float) -> None:
    """Keep a token of a grant: it lives 30 days from now, and never beyond the grant. `now`: Unix seconds."""
    expires_at = min(now + REFRESH_TOKEN_SECONDS, grant.expires_at)
    connection.run(
        INSERT_REFRESH_TOKEN, digest=digest, grant_id=grant.id, client_id=grant.client_id, scopes=grant.scopes, expires_at=expires_at
    )


@first_row(RefreshToken)
def find_refresh_token(*, digest: bytes, now: float) -> sa.Executable:
    """The token with this digest, unless it has expired at `now` (Unix seconds)."""
    token = (REFRESH_TOKEN.c.digest == digest, REFRESH_TOKEN.c.expires_at > now)
    return sa.select(*(REFRESH_TOKEN.c[name] for name in RefreshToken._fields)).where(*token)


def use_refresh_token(
    connection: Connection, *, digest: bytes, client: str, successor: bytes, now: float, log: LogEndedKeys | None = None
) -> AccessGrant | None:
    """The live grant of a token that is used for the first time, with its successor kept; None refuses it. `now`: Unix seconds.

    `log` gets the keys that end with the grant of a token that was stolen.
    """
    used = connection.run(USE_REFRESH_TOKEN, presented=digest, client=client, now=now, at=now) == 1
    token = find_refresh_token(connection, digest=digest, now=now)
    if token is None or token.client_id != client:
        return None
    if not used:
        if token.used_at is not None and now - token.used_at > SAME_MOMENT_SECONDS:
            revoke_grant(connection, grant=token.grant_id, now=now, log=log)
        return None
    found = find_grant(connection, grant=token.grant_id, now=now)
    if found is None:
        return None
    insert_refresh_token(connection, digest=successor, grant=found[0], now=now)
    return found[0]


@changes_rows
def sweep_refresh_tokens(*, now: float) -> sa.Executable:
    """Forget what has expired; until then a used one must be known again. `now`: Unix seconds."""
    return sa.delete(REFRESH_TOKEN).where(REFRESH_TOKEN.c.expires_at < now)


GRANT_HAS_ENDED = (ACCESS_GRANT.c.revoked_at <= sa.bindparam("before")) | (ACCESS_GRANT.c.expires_at <= sa.bindparam("before"))

ENDED_GRANTS = sa.select(ACCESS_GRANT.c.id).where(GRANT_HAS_ENDED)

END_CODES = Command(lambda _: sa.delete(AUTHORIZATION_CODE).where(AUTHORIZATION_CODE.c.grant_id.in_(ENDED_GRANTS)))

END_TOKENS = Command(lambda _: sa.delete(REFRESH_TOKEN).where(REFRESH_TOKEN.c.grant_id.in_(ENDED_GRANTS)))

END_GRANTS = Command(lambda _: sa.delete(ACCESS_GRANT).where(GRANT_HAS_ENDED))


def sweep_grants(connection: Connection, *, before: float) -> int:
    """Forget grants that ended before then, with the codes and tokens that belong to them. `before`: Unix seconds."""
    connection.run(END_CODES, before=before)
    connection.run(END_TOKENS, before=before)
    return connection.run(END_GRANTS, before=before)
