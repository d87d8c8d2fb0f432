"""The audit rows of what pages do."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.calls.audit import AUDIT
from storage.connection import Connection
from storage.statement import Query
from tests.pages.site import Site


class Row(NamedTuple):
    """What a row says of who did what."""

    operation: str
    organisation: str
    principal: str
    surface: str
    outcome: str


ROWS = Query(Row, sa.select(*(AUDIT.c[name] for name in Row._fields)).order_by(AUDIT.c.id))


def read_rows(connection: Connection) -> list[Row]:
    return connection.all(ROWS)


async def trail(site: Site, *operations: str) -> list[Row]:
    """The rows of these operations, oldest first."""
    await site.service.flush()
    return [row for row in await site.service.store.read(read_rows) if row.operation in operations]
