"""Organisations: their tier, their share of the service's fees, and whether their webhooks may lead into the operator's own network.

What caches hold of organisations and of who acts for them is good while the change counter stands still.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Key,
    StatementBuild,
    TableDescription,
    all_rows,
    changes_one,
    first_row,
    row_exists,
    value_or,
    writes,
)


class ChangeTable(TableDescription, table=True):
    """Counters that caches compare: `callers` moves with every key, membership, tier and connection."""

    name: str = Field(primary_key=True)
    value: BigInt


CHANGE = ChangeTable.table

CALLERS = "callers"


@value_or(0)
def read_change_count(*, name: str = CALLERS) -> sa.Executable:
    """The counter's value; 0 before the first change."""
    return sa.select(CHANGE.c.value).where(CHANGE.c.name == name)


@writes
def count_change(*, name: str = CALLERS) -> StatementBuild:
    """Move the counter `name`, in the transaction that changes what caches hold."""
    return lambda dialect: (
        dialect.insert(CHANGE).values(name=name, value=1).on_conflict_do_update(index_elements=["name"], set_={"value": CHANGE.c.value + 1})
    )


class Organisation(NamedTuple):
    """An organisation as the command line lists it."""

    id: Key
    name: str
    tier: str
    mode: str | None
    account_id: BigInt | None
    assigned_account_id: BigInt | None


class OrganisationTable(TableDescription, row=Organisation, table=True):
    """A reseller. `mode` and `account_id` are its connection to the upstream; `own_token` is sealed; `simulated`: no real upstream.

    `assigned_account_id` is the sub-account that whoever runs the service opened for it: it stays when an own token takes over.
    `private_receivers`: its webhooks may lead into the operator's own network, to what SERVICE_WEBHOOK_PRIVATE names.
    """

    own_token: str | None
    service_own: int
    simulated: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    platform_fee_bps: int | None
    private_receivers: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    created: BigInt


class MemberRole(NamedTuple):
    person_id: Annotated[str, Field(primary_key=True, foreign_key="person.id")]
    organisation_id: Annotated[str, Field(primary_key=True, foreign_key="organisation.id", index=True)]
    role: str


class MembershipTable(TableDescription, row=MemberRole, table=True):
    """A person's role in an organisation."""

    created: BigInt


ORGANISATION = OrganisationTable.table

SET_TIER = Command(sa.update(ORGANISATION).where(ORGANISATION.c.id == sa.bindparam("organisation")).values(tier=sa.bindparam("new_tier")))

THIS_ORGANISATION = ORGANISATION.c.id == sa.bindparam("organisation")


@writes
def create_organisation(
    *,
    id: str,
    name: str,
    tier: str,
    now: Annotated[float, int],
    mode: str | None = None,
    account_id: int | None = None,
    service_own: Annotated[bool, int] = False,
    simulated: Annotated[bool, int] = False,
) -> sa.Executable:
    """A new organisation; `service_own` marks the one whose account is the service's, `simulated` one whose account is no real one.

    `now`: Unix seconds.
    """
    account = {"mode": mode, "account_id": account_id, "assigned_account_id": account_id}
    values = {"service_own": service_own, "simulated": simulated, "private_receivers": 0, "created": now}
    return sa.insert(ORGANISATION).values(id=id, name=name, tier=tier, **account, **values)


def set_tier(connection: Connection, *, organisation: str, tier: str) -> bool:
    """Change the tier of `organisation`, which counts from the next call on; False where there is none such."""
    changed = connection.run(SET_TIER, organisation=organisation, new_tier=tier) == 1
    count_change(connection)
    return changed


@first_row(str)
def lock_organisation(*, organisation: str) -> sa.Executable:
    """Makes transactions that count what an organisation has, and add to it, wait for each other; on SQLite the write lock does."""
    return sa.select(ORGANISATION.c.id).where(THIS_ORGANISATION).with_for_update(key_share=True)


@all_rows(Organisation)
def list_organisations() -> sa.Executable:
    """Every organisation, oldest first."""
    return sa.select(*(ORGANISATION.c[name] for name in Organisation._fields)).order_by(ORGANISATION.c.id)


@row_exists
def may_receive_privately(*, organisation: str) -> sa.Executable:
    """Whether webhooks of the organisation may lead to what SERVICE_WEBHOOK_PRIVATE names."""
    return sa.select(ORGANISATION.c.id).where(THIS_ORGANISATION, ORGANISATION.c.private_receivers != 0)


@changes_one
def set_private_access(*, organisation: str, opened: Annotated[bool, int]) -> sa.Executable:
    """Allow webhooks into the operator's own network, or end that; False when there is no such organisation."""
    return sa.update(ORGANISATION).where(THIS_ORGANISATION).values(private_receivers=opened)


@first_row(int)
def own_fee_bps(*, organisation: str) -> sa.Executable:
    """The organisation's own fee in hundredths of a per cent; None where it has none."""
    return sa.select(ORGANISATION.c.platform_fee_bps).where(ORGANISATION.c.id == organisation)


@changes_one
def set_fee_bps(*, organisation: str, bps: int | None) -> sa.Executable:
    """Give an organisation a fee of its own, or with None take it away; False: there is no such organisation."""
    return sa.update(ORGANISATION).where(ORGANISATION.c.id == organisation).values(platform_fee_bps=bps)


MEMBERSHIP = MembershipTable.table


class Membership(NamedTuple):
    """A person in an organisation, with what the organisation may do."""

    person_id: str
    organisation_id: str
    name: str
    tier: str
    mode: str | None
    account_id: int | None
    role: str


class ConnectedOrganisation(NamedTuple):
    id: str
    name: str


MEMBERSHIP_COLUMNS: Sequence[sa.ColumnElement[object]] = (
    MEMBERSHIP.c.person_id,
    MEMBERSHIP.c.organisation_id,
    ORGANISATION.c.name,
    ORGANISATION.c.tier,
    ORGANISATION.c.mode,
    ORGANISATION.c.account_id,
    MEMBERSHIP.c.role,
)

SELECT_MEMBERSHIPS = sa.select(*MEMBERSHIP_COLUMNS).join_from(MEMBERSHIP, ORGANISATION, MEMBERSHIP.c.organisation_id == ORGANISATION.c.id)

MEMBERSHIPS_OF_PERSON = SELECT_MEMBERSHIPS.where(MEMBERSHIP.c.person_id == sa.bindparam("person")).order_by(
    MEMBERSHIP.c.created, MEMBERSHIP.c.organisation_id
)


@first_row(Membership)
def find_member(*, person: str, organisation: str) -> sa.Executable:
    return SELECT_MEMBERSHIPS.where(MEMBERSHIP.c.person_id == person, MEMBERSHIP.c.organisation_id == organisation)


@first_row(Membership)
def first_membership(*, person: str) -> sa.Executable:
    """The membership that `person` acts in where none is named: the oldest; None where there is none."""
    return MEMBERSHIPS_OF_PERSON


@all_rows(Membership)
def memberships_of(*, person: str) -> sa.Executable:
    """Every organisation of `person`, the oldest membership first."""
    return MEMBERSHIPS_OF_PERSON


@all_rows(ConnectedOrganisation)
def list_connected(*, person: str) -> sa.Executable:
    """The organisations of `person` that have an upstream account."""
    return (
        sa.select(ORGANISATION.c.id, ORGANISATION.c.name)
        .join_from(MEMBERSHIP, ORGANISATION, MEMBERSHIP.c.organisation_id == ORGANISATION.c.id)
        .where(MEMBERSHIP.c.person_id == person, ORGANISATION.c.mode.is_not(None))
        .order_by(ORGANISATION.c.id)
    )


INSERT_MEMBER = Command(
    lambda dialect: (
        dialect.insert(MEMBERSHIP)
        .values({name: sa.bindparam(name) for name in ("person_id", "organisation_id", "role", "created")})
        .on_conflict_do_update(index_elements=["person_id", "organisation_id"], set_={"role": sa.bindparam("role")})
    )
)


def add_member(connection: Connection, *, person: str, organisation: str, role: str, now: float) -> None:
    """Make `person` a member, or change the role of one. `now`: Unix seconds."""
    connection.run(INSERT_MEMBER, person_id=person, organisation_id=organisation, role=role, created=int(now))
    count_change(connection)


@all_rows(MemberRole)
def list_members(*, organisation: str) -> sa.Executable:
    """An organisation's members, admins first."""
    return (
        sa.select(MEMBERSHIP.c.person_id, MEMBERSHIP.c.organisation_id, MEMBERSHIP.c.role)
        .where(MEMBERSHIP.c.organisation_id == organisation)
        .order_by(MEMBERSHIP.c.role, MEMBERSHIP.c.created, MEMBERSHIP.c.person_id)
    )
