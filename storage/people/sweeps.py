"""What is forgotten of logins and invitations that ended long ago."""

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import AccessGrantTable, AuthorizationCodeTable, InvitationTable, OauthClientTable, RefreshTokenTable
from storage.statement import Command, table

GRANT, CODE, TOKEN = table(AccessGrantTable), table(AuthorizationCodeTable), table(RefreshTokenTable)
INVITATION, CLIENT = table(InvitationTable), table(OauthClientTable)

ENDED = sa.select(GRANT.c.id).where((GRANT.c.revoked_at <= sa.bindparam("before")) | (GRANT.c.expires_at <= sa.bindparam("before")))
END_CODES = Command(sa.delete(CODE).where(CODE.c.grant_id.in_(ENDED)))
END_TOKENS = Command(sa.delete(TOKEN).where(TOKEN.c.grant_id.in_(ENDED)))
END_GRANTS = Command(
    sa.delete(GRANT).where((GRANT.c.revoked_at <= sa.bindparam("before")) | (GRANT.c.expires_at <= sa.bindparam("before")))
)
END_INVITATIONS = Command(sa.delete(INVITATION).where(INVITATION.c.expires_at <= sa.bindparam("before")))
LIVE = sa.select(GRANT.c.client_id).where(GRANT.c.revoked_at.is_(None), GRANT.c.expires_at > sa.bindparam("now"))
END_CLIENTS = Command(sa.delete(CLIENT).where(CLIENT.c.used <= sa.bindparam("before"), CLIENT.c.id.not_in(LIVE)))


def sweep_grants(connection: Connection, *, before: float) -> int:
    """Forget grants that ended before then, with the codes and tokens that belong to them."""
    connection.run(END_CODES, before=before)
    connection.run(END_TOKENS, before=before)
    return connection.run(END_GRANTS, before=before)


def sweep_invitations(connection: Connection, *, before: float) -> int:
    """Forget invitations that expired before then."""
    return connection.run(END_INVITATIONS, before=before)


def sweep_unused_clients(connection: Connection, *, before: float, now: float) -> int:
    """Forget registered programs that got their last consent before then, unless they still have one that counts."""
    return connection.run(END_CLIENTS, before=before, now=now)
