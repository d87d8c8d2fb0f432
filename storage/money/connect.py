"""An organisation's account at the payment processor. Whose an account is, and how it stands, is decided by conditional writes alone.

`as_of` counts whole seconds, as the processor's events do: of two words of one second the one that comes later is believed.
"""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.billing_config import CONFIG, ensure_config
from storage.statement import Command, Query


class Connected(NamedTuple):
    """An organisation that has an account: `kind` is express or standard, `status` pending or active.

    `was_active` is 1 once the account was active: a processor that restricts a live account makes it pending, and it stays as
    protected as it was.
    """

    organisation: str
    account: str
    kind: str
    status: str
    was_active: int


class Standing(NamedTuple):
    """An organisation's account, and as of when that is known: without an account, since when the last one is gone, or 0."""

    connected: Connected | None
    as_of: float


class Moment(NamedTuple):
    """As of when an organisation's status is."""

    connect_as_of: float


class Owner(NamedTuple):
    """Whose an account is."""

    organisation: str


OF_ORGANISATION = CONFIG.c.organisation == sa.bindparam("organisation")
OF_ACCOUNT = CONFIG.c.connect_account == sa.bindparam("account")
FIND = Query(
    Connected,
    sa.select(
        CONFIG.c.organisation,
        CONFIG.c.connect_account.label("account"),
        CONFIG.c.connect_kind.label("kind"),
        CONFIG.c.connect_status.label("status"),
        CONFIG.c.connect_was_active.label("was_active"),
    ).where(OF_ORGANISATION, CONFIG.c.connect_account.is_not(None)),
)
AS_OF = Query(Moment, sa.select(CONFIG.c.connect_as_of).where(OF_ORGANISATION))
OWNER = Query(Owner, sa.select(CONFIG.c.organisation).where(OF_ACCOUNT))
OTHER = CONFIG.alias("other")
# On PostgreSQL two organisations may both see the account free; the later one is refused as a duplicate, runs again, and sees the first.
TAKEN = sa.exists(
    sa.select(OTHER.c.organisation).where(OTHER.c.connect_account == sa.bindparam("account"), OTHER.c.organisation != sa.bindparam("of"))
)
ATTACH = Query(
    Owner,
    sa.update(CONFIG)
    .where(
        CONFIG.c.organisation == sa.bindparam("of"),
        CONFIG.c.connect_account.is_(None)
        | ((CONFIG.c.connect_account == sa.bindparam("replacing")) & (CONFIG.c.connect_was_active == 0))
        | ((CONFIG.c.connect_account == sa.bindparam("gone")) & (CONFIG.c.connect_as_of <= sa.bindparam("as_of"))),
        ~TAKEN,
    )
    .values(
        connect_account=sa.bindparam("account"),
        connect_kind=sa.bindparam("kind"),
        connect_status=sa.bindparam("status"),
        connect_as_of=sa.bindparam("as_of"),
        connect_was_active=sa.case((sa.bindparam("status") == "active", 1), else_=0),
        updated=sa.bindparam("now"),
    )
    .returning(CONFIG.c.organisation),
)
# What an organisation reads as `updated_at` moves with the status alone.
WRITE = Command(
    sa.update(CONFIG)
    .where(OF_ACCOUNT, CONFIG.c.connect_as_of <= sa.bindparam("as_of"))
    .values(
        connect_as_of=sa.bindparam("as_of"),
        connect_status=sa.bindparam("status"),
        updated=sa.case(
            (CONFIG.c.connect_status == sa.bindparam("status"), CONFIG.c.updated), else_=sa.bindparam("now", type_=sa.BigInteger)
        ),
    )
)
# Whatever order the words come in: an older one that the account was active is true, too.
NOTE_ACTIVE = Command(sa.update(CONFIG).where(OF_ACCOUNT, CONFIG.c.connect_was_active == 0).values(connect_was_active=1))
DETACH = Command(
    sa.update(CONFIG)
    .where(OF_ACCOUNT, CONFIG.c.connect_as_of <= sa.bindparam("as_of"))
    .values(
        connect_account=None,
        connect_kind=None,
        connect_status="not_connected",
        connect_was_active=0,
        connect_as_of=sa.bindparam("as_of"),
        updated=sa.bindparam("now"),
    )
)


def connected(connection: Connection, *, organisation: str) -> Connected | None:
    """The organisation's account; nothing where it has none."""
    return connection.first(FIND, organisation=organisation)


def standing_of(connection: Connection, *, organisation: str) -> Standing:
    """The organisation's account or none, and as of when."""
    moment = connection.first(AS_OF, organisation=organisation)
    return Standing(connected(connection, organisation=organisation), 0.0 if moment is None else moment.connect_as_of)


def organisation_of_account(connection: Connection, *, account: str) -> str | None:
    """Whose the account is; nothing for one that nobody has."""
    found = connection.first(OWNER, account=account)
    return None if found is None else found.organisation


def attach_account(
    connection: Connection,
    *,
    organisation: str,
    account: str,
    kind: str,
    status: str,
    as_of: float,
    now: float,
    replacing: str | None = None,
    gone: str | None = None,
) -> bool:
    """Make the account this organisation's; True where it is now, also when it was before.

    False: it is another organisation's, or this one has another account; `replacing` is one that gives way because it
    was never active, and `gone` one that was let go, however it stands, unless something newer than `as_of` is known of it.
    """
    ensure_config(connection, organisation=organisation, now=now)
    if organisation_of_account(connection, account=account) == organisation:
        write_status(connection, account=account, status=status, as_of=as_of, now=now)
        return True
    values = {"account": account, "kind": kind, "status": status, "as_of": float(int(as_of)), "now": int(now)}
    return connection.first(ATTACH, of=organisation, replacing=replacing, gone=gone, **values) is not None


def write_status(connection: Connection, *, account: str, status: str, as_of: float, now: float) -> None:
    """How the account stands, unless something newer is known. An account that nobody has changes nothing."""
    connection.run(WRITE, account=account, status=status, as_of=float(int(as_of)), now=int(now))
    if status == "active":
        connection.run(NOTE_ACTIVE, account=account)


def forget_account(connection: Connection, *, account: str, as_of: float, now: float) -> None:
    """The account is nobody's any more, unless it was attached after that."""
    connection.run(DETACH, account=account, as_of=float(int(as_of)), now=int(now))
