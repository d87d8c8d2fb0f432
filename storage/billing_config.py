"""How an organisation bills: one row each, made with defaults when it is first asked for."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Command, Connection, Key, Query, TableDescription, first_row, insert_once


class BillingConfig(NamedTuple):
    """An organisation's row, whole."""

    organisation: Key
    currency: str
    billing_cycle_day: int
    price_per_gb_cents: BigInt
    invoice_prefix: str
    connect_account: Annotated[str, Field(unique=True)] | None
    connect_kind: str | None
    connect_status: str
    connect_as_of: float
    connect_was_active: int
    updated: BigInt


class BillingConfigTable(TableDescription, row=BillingConfig, table=True):
    """How an organisation bills, and its account at the payment processor.

    `connect_status`: not_connected, pending or active; `connect_kind`: express or standard. An account belongs to one organisation.
    `connect_as_of`: the moment of the processor's word that the status comes from; what is older changes nothing.
    `connect_was_active` is 1 once the account was active, whatever its status is now.
    """


BILLING_CONFIG = BillingConfigTable.table

CONFIG_COLUMNS = tuple(BILLING_CONFIG.c[name] for name in BillingConfig._fields)

CONFIG_DEFAULTS = {
    "currency": "USD",
    "billing_cycle_day": 1,
    "price_per_gb_cents": 0,
    "invoice_prefix": "INV",
    "connect_account": None,
    "connect_kind": None,
    "connect_status": "not_connected",
    "connect_as_of": 0.0,
    "connect_was_active": 0,
}

INSERT_CONFIG = Command(insert_once(BILLING_CONFIG, BillingConfig._fields, key=["organisation"]))


def given_or_stored(name: str, kind: type[sa.types.TypeEngine[str]] | type[sa.types.TypeEngine[int]]) -> sa.ColumnElement[object]:
    """The value that was given, or the one that is there; PostgreSQL asks what type a null is."""
    return sa.func.coalesce(sa.cast(sa.bindparam(name), kind), BILLING_CONFIG.c[name])


CHANGE_CONFIG = Query(
    BillingConfig,
    sa.update(BILLING_CONFIG)
    .where(BILLING_CONFIG.c.organisation == sa.bindparam("of"))
    .values(
        currency=given_or_stored("currency", sa.Text),
        price_per_gb_cents=given_or_stored("price_per_gb_cents", sa.BigInteger),
        invoice_prefix=given_or_stored("invoice_prefix", sa.Text),
        updated=sa.bindparam("now"),
    ),
)


@first_row(BillingConfig)
def find_config(*, organisation: str) -> sa.Executable:
    """The row of `organisation`, or None where it was not made yet."""
    return sa.select(*CONFIG_COLUMNS).where(BILLING_CONFIG.c.organisation == organisation)


@first_row(BillingConfig)
def hold_config(*, organisation: str) -> sa.Executable:
    """The same, for a transaction that goes on to change it: nobody else does so meanwhile."""
    return sa.select(*CONFIG_COLUMNS).where(BILLING_CONFIG.c.organisation == organisation).with_for_update()


def ensure_config(connection: Connection, *, organisation: str, now: float) -> BillingConfig:
    """The row of `organisation`, made with the defaults where there was none. `now`: Unix seconds."""
    found = find_config(connection, organisation=organisation)
    if found is None:
        connection.run(INSERT_CONFIG, **CONFIG_DEFAULTS, organisation=organisation, updated=int(now))
        found = find_config(connection, organisation=organisation)
    if found is None:
        raise RuntimeError("a row that was just inserted is not there")
    return found


def change_config(
    connection: Connection,
    *,
    organisation: str,
    currency: str | None,
    price_per_gb_cents: int | None,
    invoice_prefix: str | None,
    now: float,
) -> BillingConfig:
    """Set the values that are not None, and return the row. `price_per_gb_cents`: minor units; `now`: Unix seconds."""
    ensure_config(connection, organisation=organisation, now=now)
    given = {"currency": currency, "price_per_gb_cents": price_per_gb_cents, "invoice_prefix": invoice_prefix}
    changed = connection.first(CHANGE_CONFIG, of=organisation, **given, now=int(now))
    if changed is None:
        raise RuntimeError("a row that was just made is not there")
    return changed
