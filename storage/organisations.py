"""Organisations: their tier, their share of the service's fees, and whether their webhooks may lead into the operator's own network."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.change_counters import CALLERS, count_change
from storage.engine.connection import Command, Connection, all_rows, changes_one, first_row, row_exists, writes
from storage.engine.table import BigInt, Key, TableDescription, table_of


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


ORGANISATION = table_of(OrganisationTable)

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
    count_change(connection, name=CALLERS)
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
