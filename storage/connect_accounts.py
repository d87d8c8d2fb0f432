"""An organisation's account at the payment processor. Whose an account is, and how it stands, is decided by conditional writes alone.

`as_of` counts whole seconds, as the processor's events do: of two words of one second the one that comes later is believed.
A connect state is an OAuth consent that a person is about to give there: each `state` is good once, for whoever began it.
"""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.billing_config import BILLING_CONFIG, ensure_config
from storage.engine.sql import Command, Connection, Key, Query, TableDescription, changes_rows, first_row, row_exists, writes


class ConnectState(NamedTuple):
    """A consent under way; `digest` is the SHA-256 of its `state`, in hexadecimal digits."""

    digest: Key
    organisation: str
    person: str
    expires_at: Annotated[float, Field(index=True)]


class ConnectStateTable(TableDescription, row=ConnectState, table=True):
    """An OAuth consent under way: the SHA-256 of its `state`, single use."""


class ConnectAccount(NamedTuple):
    """An organisation that has an account: `kind` is express or standard, `status` pending or active.

    `was_active` is 1 once the account was active: a processor that restricts a live account makes it pending, and it stays as
    protected as it was.
    """

    organisation: str
    account: str
    kind: str
    status: str
    was_active: int


class ConnectStanding(NamedTuple):
    """An organisation's account, and as of when that is known: without an account, since when the last one is gone, or 0."""

    connected: ConnectAccount | None
    as_of: float


CONFIG_OF_ORGANISATION = BILLING_CONFIG.c.organisation == sa.bindparam("organisation")

CONFIG_OF_ACCOUNT = BILLING_CONFIG.c.connect_account == sa.bindparam("account")

FIND_CONNECT_MOMENT = Query(float, lambda _: sa.select(BILLING_CONFIG.c.connect_as_of).where(CONFIG_OF_ORGANISATION))

OTHER_CONFIG = BILLING_CONFIG.alias("other")

# On PostgreSQL two organisations may both see the account free; the later one is refused as a duplicate, runs again, and sees the first.
ACCOUNT_IS_TAKEN = sa.exists(
    sa.select(OTHER_CONFIG.c.organisation).where(
        OTHER_CONFIG.c.connect_account == sa.bindparam("account"), OTHER_CONFIG.c.organisation != sa.bindparam("of")
    )
)

ATTACH_CONNECT_ACCOUNT = Query(
    str,
    sa.update(BILLING_CONFIG)
    .where(
        BILLING_CONFIG.c.organisation == sa.bindparam("of"),
        BILLING_CONFIG.c.connect_account.is_(None)
        | ((BILLING_CONFIG.c.connect_account == sa.bindparam("replacing")) & (BILLING_CONFIG.c.connect_was_active == 0))
        | ((BILLING_CONFIG.c.connect_account == sa.bindparam("gone")) & (BILLING_CONFIG.c.connect_as_of <= sa.bindparam("as_of"))),
        ~ACCOUNT_IS_TAKEN,
    )
    .values(
        connect_account=sa.bindparam("account"),
        connect_kind=sa.bindparam("kind"),
        connect_status=sa.bindparam("status"),
        connect_as_of=sa.bindparam("as_of"),
        connect_was_active=sa.case((sa.bindparam("status") == "active", 1), else_=0),
        updated=sa.bindparam("now"),
    )
    .returning(BILLING_CONFIG.c.organisation),
)

# What an organisation reads as `updated_at` moves with the status alone.
WRITE_CONNECT_STATUS = Command(
    sa.update(BILLING_CONFIG)
    .where(CONFIG_OF_ACCOUNT, BILLING_CONFIG.c.connect_as_of <= sa.bindparam("as_of"))
    .values(
        connect_as_of=sa.bindparam("as_of"),
        connect_status=sa.bindparam("status"),
        updated=sa.case(
            (BILLING_CONFIG.c.connect_status == sa.bindparam("status"), BILLING_CONFIG.c.updated),
            else_=sa.bindparam("now", type_=sa.BigInteger),
        ),
    )
)

# Whatever order the words come in: an older one that the account was active is true, too.
NOTE_ACTIVE = Command(
    lambda _: sa.update(BILLING_CONFIG).where(CONFIG_OF_ACCOUNT, BILLING_CONFIG.c.connect_was_active == 0).values(connect_was_active=1)
)

DETACH_CONNECT_ACCOUNT = Command(
    sa.update(BILLING_CONFIG)
    .where(CONFIG_OF_ACCOUNT, BILLING_CONFIG.c.connect_as_of <= sa.bindparam("as_of"))
    .values(
        connect_account=None,
        connect_kind=None,
        connect_status="not_connected",
        connect_was_active=0,
        connect_as_of=sa.bindparam("as_of"),
        updated=sa.bindparam("now"),
    )
)


@first_row(ConnectAccount)
def find_connect_account(*, organisation: str) -> sa.Executable:
    """The account of `organisation` at the payment processor, or None."""
    return sa.select(
        BILLING_CONFIG.c.organisation,
        BILLING_CONFIG.c.connect_account.label("account"),
        BILLING_CONFIG.c.connect_kind.label("kind"),
        BILLING_CONFIG.c.connect_status.label("status"),
        BILLING_CONFIG.c.connect_was_active.label("was_active"),
    ).where(CONFIG_OF_ORGANISATION, BILLING_CONFIG.c.connect_account.is_not(None))


def connect_standing(connection: Connection, *, organisation: str) -> ConnectStanding:
    """The account of `organisation` or None, and as of when that is known."""
    moment = connection.first(FIND_CONNECT_MOMENT, organisation=organisation)
    return ConnectStanding(find_connect_account(connection, organisation=organisation), moment or 0.0)


@first_row(str)
def organisation_of_account(*, account: str) -> sa.Executable:
    return sa.select(BILLING_CONFIG.c.organisation).where(CONFIG_OF_ACCOUNT)


def attach_connect_account(
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
        write_connect_status(connection, account=account, status=status, as_of=as_of, now=now)
        return True
    values = {"account": account, "kind": kind, "status": status, "as_of": float(int(as_of)), "now": int(now)}
    return connection.first(ATTACH_CONNECT_ACCOUNT, of=organisation, replacing=replacing, gone=gone, **values) is not None


def write_connect_status(connection: Connection, *, account: str, status: str, as_of: float, now: float) -> None:
    """Store how the account stood at `as_of`, unless something newer is known. Both moments: Unix seconds."""
    connection.run(WRITE_CONNECT_STATUS, account=account, status=status, as_of=float(int(as_of)), now=int(now))
    if status == "active":
        connection.run(NOTE_ACTIVE, account=account)


@first_row(str)
def restrict_connect_account(*, account: str, as_of: Annotated[float, int], now: Annotated[float, int]) -> sa.Executable:
    """An active account is pending as of `as_of`; whose it is, None where it was not active, or something newer is known of it."""
    return (
        sa.update(BILLING_CONFIG)
        .where(CONFIG_OF_ACCOUNT, BILLING_CONFIG.c.connect_status == "active", BILLING_CONFIG.c.connect_as_of <= as_of)
        .values(connect_status="pending", connect_as_of=as_of, updated=now)
        .returning(BILLING_CONFIG.c.organisation)
    )


def detach_connect_account(connection: Connection, *, account: str, as_of: float, now: float) -> None:
    """Take the account from its organisation, unless it was attached after `as_of`. Both moments: Unix seconds."""
    connection.run(DETACH_CONNECT_ACCOUNT, account=account, as_of=float(int(as_of)), now=int(now))


CONNECT_STATE = ConnectStateTable.table


@writes
def insert_connect_state(*, state: ConnectState) -> sa.Executable:
    """Store a consent that begins."""
    return sa.insert(CONNECT_STATE).values(state._asdict())


@row_exists
def use_connect_state(*, digest: str, organisation: str, person: str, now: float) -> sa.Executable:
    """Use up a consent that has not expired; of several calls at once one gets True. Others' consents stay. `now`: Unix seconds."""
    return (
        sa.delete(CONNECT_STATE)
        .where(
            CONNECT_STATE.c.digest == digest,
            CONNECT_STATE.c.organisation == organisation,
            CONNECT_STATE.c.person == person,
            CONNECT_STATE.c.expires_at > now,
        )
        .returning(CONNECT_STATE.c.digest)
    )


@changes_rows
def sweep_connect_states(*, now: float) -> sa.Executable:
    """Delete consents that have expired at `now` (Unix seconds); returns how many."""
    return sa.delete(CONNECT_STATE).where(CONNECT_STATE.c.expires_at <= now)
