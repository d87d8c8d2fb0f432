"""The audit rows of what pages do."""

from typing import NamedTuple

from storage.engine.sql import Connection
from tests.pages.site import Site
from tests.registry.ledgers import audited


class TrailRow(NamedTuple):
    operation: str
    organisation: str
    principal: str
    surface: str
    outcome: str


def read_rows(connection: Connection) -> list[TrailRow]:
    return [TrailRow(*(getattr(row, name) for name in TrailRow._fields)) for row in audited(connection)]


async def trail(site: Site, *operations: str) -> list[TrailRow]:
    await site.service.flush()
    return [row for row in await site.service.store.read(read_rows) if row.operation in operations]
