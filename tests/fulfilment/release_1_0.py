"""The database of a floor as release 1.0 would have left it, and the upgrade of it: an order had one id then, under which all was kept."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

import anyio.to_thread
import orjson
import sqlalchemy as sa
from pydantic import TypeAdapter

from operations.ledger.esims import open_esim_profile, seal_esim_profile
from registry.ids import without_order_tokens
from simulators.processor.state import ProcessorState
from storage.engine.migrate import downgrade_database, upgrade_database
from storage.engine.migration_lock import migration_lock
from storage.engine.sql import Connection, Query
from storage.orders import STOREFRONT_ORDER, find_order
from storage.rekey import rebind_esims
from tests.fulfilment.floor import Floor

FORMER = "0008"


class Number(NamedTuple):
    id: str


ORDERS = Query(Number, sa.select(STOREFRONT_ORDER.c.id).where(STOREFRONT_ORDER.c.top_up_of.is_(None)).order_by(STOREFRONT_ORDER.c.id))
REPLACED = (
    "UPDATE storefront_order SET top_up_of = :id WHERE top_up_of = :number",
    "UPDATE storefront_order SET id = :id, esim = :sealed WHERE id = :number",
    "UPDATE issuance SET key = :id WHERE key = :number",
    "UPDATE event SET dedup = REPLACE(dedup, :number, :id), data = REPLACE(data, :number, :id)",
    "UPDATE payment_record SET body = REPLACE(body, :number, :id)",
    "UPDATE payment_attempt SET processor_key = REPLACE(processor_key, :number, :id)",
)
TABLES = {
    "sqlite": "select name from sqlite_master where type = 'table'",
    "postgresql": "select tablename from pg_tables where schemaname = 'public'",
}


async def as_release_1_0(floor: Floor, url: str) -> Mapping[str, str]:
    """The ids that the orders have there, by their numbers of before. The processor knows them by these ids as well."""
    world, keyring = floor.shop.world, floor.deps.keyring
    ids = {row.id: world.ids.secret("ord_") for row in await world.store.read(orders)}
    changes: list[dict[str, str | None]] = []
    for number, id in ids.items():
        row = await world.store.read(find_order, order=number)
        assert row is not None
        sealed = row.esim
        if sealed is not None:
            profile = open_esim_profile(row.iccid or "", sealed, keyring=keyring, organisation=row.organisation, intent=number)
            sealed = seal_esim_profile(profile, keyring=keyring, organisation=row.organisation, intent=id)
        changes.append({"number": number, "id": id, "sealed": sealed})
    async with world.payments.turn(writes=True) as state:
        replace_all(state, ids)
    await anyio.to_thread.run_sync(downgrade_database, url, FORMER)
    await anyio.to_thread.run_sync(rename, url, changes)
    return ids


async def upgraded(floor: Floor, url: str) -> None:
    """The new release is started on it; the simulated processor's file was cleaned by being read."""
    await anyio.to_thread.run_sync(upgrade_database, url)
    assert await rebind_esims(floor.deps.store, floor.deps.keyring) == 0
    async with floor.shop.world.payments.turn(writes=True) as state:
        take_over(state, orjson.loads(without_order_tokens(orjson.dumps(asdict(state)).decode())))


def orders(connection: Connection) -> list[Number]:
    return connection.all(ORDERS)


def replace_all(state: ProcessorState, ids: Mapping[str, str]) -> None:
    """The processor was told of orders by their ids."""
    text = orjson.dumps(asdict(state)).decode()
    for number, id in ids.items():
        text = text.replace(number, id)
    take_over(state, orjson.loads(text))


def take_over(state: ProcessorState, members: dict[str, object]) -> None:
    """The state is another from now on."""
    other = TypeAdapter(ProcessorState).validate_python(members)
    for name in asdict(other):
        setattr(state, name, getattr(other, name))


def rename(url: str, changes: list[dict[str, str | None]]) -> None:
    """In the tables of release 1.0."""
    with migration_lock(url) as database:
        for statement in REPLACED:
            for change in changes:
                database.connection.execute(sa.text(statement), change)


def every_text(url: str) -> str:
    """All that the database holds, in one text."""
    with migration_lock(url) as database:
        connection = database.connection
        names = connection.execute(sa.text(TABLES[connection.dialect.name])).scalars().all()
        return "\n".join(str(connection.execute(sa.text(f'select * from "{name}"')).all()) for name in names)
