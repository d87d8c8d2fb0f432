"""Who may act for whom, as the database has it: memberships, invitations, keys, logins and browsers."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from storage.access_grants import AccessGrantTable
from storage.api_keys import ApiKeyTable
from storage.browser_sessions import BrowserSessionTable
from storage.engine.sql import Connection, Query
from storage.invitations import InvitationTable
from storage.organisations import MembershipTable

MEMBERSHIP, INVITATION, KEY = MembershipTable.table, InvitationTable.table, ApiKeyTable.table
GRANT, SESSION = AccessGrantTable.table, BrowserSessionTable.table
NOTHING = sa.literal_column("''", sa.Text)


class Right(NamedTuple):
    """One of them: what it is, and what of it decides who may do what."""

    kind: str
    id: str
    organisation: str
    may: str
    ended: str


def right(kind: str, *columns: sa.ColumnElement[Any]) -> sa.Select[*tuple[Any, ...]]:
    texts = [sa.func.coalesce(sa.cast(column, sa.Text), NOTHING) for column in columns]
    named = [text.label(name) for name, text in zip(Right._fields[1:], texts, strict=True)]
    return sa.select(sa.literal_column(f"'{kind}'", sa.Text).label("kind"), *named)


ALL = sa.union_all(
    right("member", MEMBERSHIP.c.person_id, MEMBERSHIP.c.organisation_id, MEMBERSHIP.c.role, NOTHING),
    right("invited", INVITATION.c.id, INVITATION.c.organisation_id, INVITATION.c.role, INVITATION.c.expires_at),
    right("key", KEY.c.id, KEY.c.organisation_id, KEY.c.restrictions, sa.func.coalesce(KEY.c.revoked_at, KEY.c.expires_at)),
    right("login", GRANT.c.id, GRANT.c.organisation_id, GRANT.c.scopes, sa.func.coalesce(GRANT.c.revoked_at, GRANT.c.expires_at)),
    right("browser", SESSION.c.id, SESSION.c.organisation_id, NOTHING, SESSION.c.expires_at),
).subquery("rights")
RIGHTS = Query(Right, sa.select(*(ALL.c[name] for name in Right._fields)))


def who_may(connection: Connection) -> frozenset[Right]:
    return frozenset(connection.all(RIGHTS))
