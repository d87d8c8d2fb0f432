"""What the log of events has of an organisation, each with the data that its type declares."""

from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from pydantic import TypeAdapter

from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import AnyEventType
from storage.engine.sql import Connection, Query
from storage.engine.store import Store
from storage.event_log import EVENT_LOG

Data = dict[str, Any]


class LoggedRow(NamedTuple):
    """A row of the log; `line` is the ICCID that it is about."""

    type: str
    data: str
    line: str | None
    livemode: int


ROWS_OF_ORGANISATION = Query(
    LoggedRow,
    sa.select(*(EVENT_LOG.c[name] for name in LoggedRow._fields))
    .where(EVENT_LOG.c.organisation == sa.bindparam("organisation"))
    .order_by(EVENT_LOG.c.arrival),
)


def rows_of_organisation(connection: Connection, *, organisation: str) -> list[LoggedRow]:
    return connection.all(ROWS_OF_ORGANISATION, organisation=organisation)


def declared_data(event_type: AnyEventType, data: Data) -> Data:
    """The data, after a check that it has every member that its type declares, and no other."""
    declared: Data = TypeAdapter[Any](event_type.data).validate_python(data, strict=True)
    assert declared == data, f"{event_type.name} declares no {sorted(data.keys() - declared.keys())}"
    return declared


async def logged_rows(store: Store, organisation: str) -> list[LoggedRow]:
    """The rows in the order in which they were written; each fits its type, and names the line that its type says."""
    rows = await store.read(rows_of_organisation, organisation=organisation)
    for row in rows:
        event_type = EVENT_TYPES[row.type]
        data = declared_data(event_type, orjson.loads(row.data))
        assert row.line == (data[event_type.line] if event_type.line else None)
    return rows


async def logged_events(store: Store, organisation: str, *types: str) -> list[tuple[str, Data]]:
    """(type, data) of every event of the organisation, or of these types alone, in the order in which they were written."""
    rows = await logged_rows(store, organisation)
    return [(row.type, orjson.loads(row.data)) for row in rows if not types or row.type in types]
