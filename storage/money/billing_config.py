"""How an organisation bills: one row each, made with defaults when it is first asked for."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import BillingConfigTable
from storage.statement import Command, Query, table

CONFIG = table(BillingConfigTable)


class BillingConfig(NamedTuple):
    """An organisation's row, whole."""

    organisation: str
    currency: str
    billing_cycle_day: int
    price_per_gb_cents: int
    invoice_prefix: str
    connect_account: str | None
    connect_kind: str | None
    connect_status: str
    connect_as_of: float
    connect_was_active: int
    updated: int


COLUMNS = tuple(CONFIG.c[name] for name in BillingConfig._fields)
MINE = CONFIG.c.organisation == sa.bindparam("of")
FIND = Query(BillingConfig, sa.select(*COLUMNS).where(CONFIG.c.organisation == sa.bindparam("organisation")))
DEFAULTS = {
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
MAKE = Command(
    lambda dialect: (
        dialect.insert(CONFIG)
        .values({name: sa.bindparam(name) for name in BillingConfig._fields})
        .on_conflict_do_nothing(index_elements=["organisation"])
    )
)


def kept(name: str, kind: type[sa.types.TypeEngine[str]] | type[sa.types.TypeEngine[int]]) -> sa.ColumnElement[object]:
    """The value that was given, or the one that is there; PostgreSQL asks what type a null is."""
    return sa.func.coalesce(sa.cast(sa.bindparam(name), kind), CONFIG.c[name])


CHANGE = Query(
    BillingConfig,
    sa.update(CONFIG)
    .where(MINE)
    .values(
        currency=kept("currency", sa.Text),
        price_per_gb_cents=kept("price_per_gb_cents", sa.BigInteger),
        invoice_prefix=kept("invoice_prefix", sa.Text),
        updated=sa.bindparam("now"),
    )
    .returning(*COLUMNS),
)


def find_config(connection: Connection, *, organisation: str) -> BillingConfig | None:
    """The row, where it was made."""
    return connection.first(FIND, organisation=organisation)


def ensure_config(connection: Connection, *, organisation: str, now: float) -> BillingConfig:
    """The row, made with the defaults where there was none."""
    found = find_config(connection, organisation=organisation)
    if found is None:
        connection.run(MAKE, **DEFAULTS, organisation=organisation, updated=int(now))
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
    """Set what is given; None keeps what is there."""
    ensure_config(connection, organisation=organisation, now=now)
    given = {"currency": currency, "price_per_gb_cents": price_per_gb_cents, "invoice_prefix": invoice_prefix}
    changed = connection.first(CHANGE, of=organisation, **given, now=int(now))
    if changed is None:
        raise RuntimeError("a row that was just made is not there")
    return changed
