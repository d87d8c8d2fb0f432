"""Deliveries of an organisation, those of the newest events first, by endpoint, state, type and time.

Event ids begin with the time. Where types are asked for, a page is made of parts, each of one type: an index has each part in this order,
so that it is read from its beginning and no further than a page is long. What is pending or has failed is few beside what is delivered:
an index has it alone, and is looked through where an endpoint or types are asked for. So are deliveries that were queued before types
were kept with them, where their types are asked for. Who asks for what is delivered alone passes over what is not.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from heapq import nlargest
from typing import NamedTuple

import sqlalchemy as sa

from storage.deliveries import DELIVERED_STATE, DELIVERY, FAILED_STATE, PENDING_STATE
from storage.engine.drivers import Value
from storage.engine.sql import Connection, Dialect, Query, bound_list, first_row, json_rows, pack_rows, unindexed
from storage.event_log import EVENT_LOG
from storage.events import EVENT


class ListedDelivery(NamedTuple):
    """A delivery with the type of its event, how often it was tried, and when the next attempt of a pending one is due."""

    id: str
    event_id: str
    type: str | None
    endpoint_id: str
    state: int
    created_ms: int
    attempts: int
    due_ms: int


class DeliveryPosition(NamedTuple):
    """Where a page begins: behind this delivery of this event."""

    event_id: str
    id: str


class DeliveryFilter(NamedTuple):
    """What is asked for; None: all. `types` are names. `above`: the smallest event id.

    `untyped`: the types that deliveries without a type of their own may have, which programs of before 0026 queued.
    """

    endpoint: str | None
    state: int | None
    types: Sequence[str] | None
    above: str
    below: DeliveryPosition
    untyped: Sequence[str]


TYPE_OF_DELIVERY = sa.func.coalesce(
    DELIVERY.c.type,
    sa.select(EVENT_LOG.c.type).where(EVENT_LOG.c.id == DELIVERY.c.event_id, EVENT_LOG.c.position.is_not(None)).scalar_subquery(),
    sa.select(EVENT.c.type).where(EVENT.c.id == DELIVERY.c.event_id).scalar_subquery(),
)

LISTED_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(
    TYPE_OF_DELIVERY.label("type") if name == "type" else DELIVERY.c[name] for name in ListedDelivery._fields
)

BELOW, BELOW_ID, ABOVE = (sa.bindparam(name, type_=sa.Text) for name in ("below", "below_id", "above"))

MOST = sa.bindparam("most", type_=sa.Integer)

IS_WITHIN_STATES = unindexed(DELIVERY.c.state).between(sa.bindparam("least", type_=sa.Integer), sa.bindparam("greatest", type_=sa.Integer))
"""No index has the state of what is delivered: of all rows of a list it is looked at."""


@first_row(DeliveryPosition)
def find_place(*, delivery: str, organisation: str) -> sa.Executable:
    """The place of a delivery of the organisation, to go on behind it."""
    return sa.select(DELIVERY.c.event_id, DELIVERY.c.id).where(DELIVERY.c.id == delivery, DELIVERY.c.organisation == organisation)


def newest_of_part(*conditions: sa.ColumnElement[bool]) -> sa.Select[str, str]:
    """The places of the newest deliveries of a part, within the bounds of the page."""
    before = (DELIVERY.c.event_id < BELOW) | ((DELIVERY.c.event_id == BELOW) & (DELIVERY.c.id < BELOW_ID))
    return (
        sa.select(DELIVERY.c.event_id, DELIVERY.c.id)
        .where(*conditions, DELIVERY.c.event_id <= BELOW, before, DELIVERY.c.event_id >= ABOVE)
        .order_by(DELIVERY.c.event_id.desc(), DELIVERY.c.id.desc())
        .limit(MOST)
    )


def owned(*, endpoint: bool) -> sa.ColumnElement[bool]:
    """Whose deliveries: of an endpoint, or of the organisation."""
    column = DELIVERY.c.endpoint_id if endpoint else DELIVERY.c.organisation
    return column == sa.bindparam("owner", type_=sa.Text)


BOUND_TYPE = sa.bindparam("type", type_=sa.Text)


@lru_cache
def page_of_owner(*, endpoint: bool) -> Query[DeliveryPosition]:
    """The newest places of all types."""
    return Query(DeliveryPosition, newest_of_part(owned(endpoint=endpoint), IS_WITHIN_STATES))


@lru_cache
def page_of_type(*, endpoint: bool) -> Query[DeliveryPosition]:
    """The newest places of one type."""
    return Query(DeliveryPosition, newest_of_part(owned(endpoint=endpoint), DELIVERY.c.type == BOUND_TYPE, IS_WITHIN_STATES))


def undelivered_query(dialect: Dialect, *, endpoint: bool, typed: bool) -> sa.Executable:
    """The newest places of what is in one state, which is not that of what is delivered. `typed`: whose events have one of `types`."""
    return newest_of_part(
        DELIVERY.c.organisation == sa.bindparam("organisation", type_=sa.Text),
        DELIVERY.c.state == sa.bindparam("state", type_=sa.Integer),
        DELIVERY.c.state != sa.literal_column(str(DELIVERED_STATE), sa.Integer),  # spelled as in the index of those rows alone
        *([unindexed(DELIVERY.c.endpoint_id) == sa.bindparam("endpoint", type_=sa.Text)] if endpoint else []),
        *([TYPE_OF_DELIVERY.in_(bound_list(dialect, "types"))] if typed else []),
    )


@lru_cache
def page_of_undelivered(*, endpoint: bool, typed: bool) -> Query[DeliveryPosition]:
    return Query(DeliveryPosition, partial(undelivered_query, endpoint=endpoint, typed=typed))


def types_query(dialect: Dialect, *, endpoint: bool) -> sa.Executable:
    """The newest places of many types, in one statement. SQLite has no LATERAL."""
    given = json_rows(dialect, "types", "given", type=sa.Text)
    places = newest_of_part(owned(endpoint=endpoint), DELIVERY.c.type == given.c.type, IS_WITHIN_STATES).lateral("places")
    found = sa.select(places.c.event_id, places.c.id).select_from(given.join(places, sa.true()))
    return found.order_by(places.c.event_id.desc(), places.c.id.desc()).limit(MOST)


@lru_cache
def page_of_types(*, endpoint: bool) -> Query[DeliveryPosition]:
    return Query(DeliveryPosition, partial(types_query, endpoint=endpoint))


class TypeHead(NamedTuple):
    """A type, and the newest event within the bounds of the page that it has a delivery of; None: of none."""

    type: str
    newest: str | None


def type_heads_query(dialect: Dialect, *, endpoint: bool) -> sa.Executable:
    given = json_rows(dialect, "types", "given", type=sa.Text)
    of_part = (owned(endpoint=endpoint), DELIVERY.c.type == given.c.type)
    newest = sa.select(sa.func.max(DELIVERY.c.event_id)).where(*of_part, DELIVERY.c.event_id <= BELOW, DELIVERY.c.event_id >= ABOVE)
    return sa.select(given.c.type, newest.scalar_subquery().label("newest"))


@lru_cache
def heads_of_types(*, endpoint: bool) -> Query[TypeHead]:
    return Query(TypeHead, partial(type_heads_query, endpoint=endpoint))


def untyped_query(dialect: Dialect, *, endpoint: bool) -> sa.Executable:
    """The newest places of deliveries that have no type themselves, whose events have one of `types`."""
    of_types = (DELIVERY.c.type.is_(None), TYPE_OF_DELIVERY.in_(bound_list(dialect, "types")))
    return newest_of_part(owned(endpoint=endpoint), *of_types, IS_WITHIN_STATES)


@lru_cache
def page_of_untyped(*, endpoint: bool) -> Query[DeliveryPosition]:
    return Query(DeliveryPosition, partial(untyped_query, endpoint=endpoint))


# Choice: no bounds for the ids, which tell PostgreSQL the partitions: a page may reach far back, and it would read all between them.
DELIVERIES_AT = Query(
    ListedDelivery,
    lambda dialect: (
        sa.select(*LISTED_COLUMNS)
        .where(
            DELIVERY.c.id.in_(bound_list(dialect, "ids")),
            unindexed(DELIVERY.c.organisation) == sa.bindparam("organisation"),
        )
        .order_by(DELIVERY.c.event_id.desc(), DELIVERY.c.id.desc())
    ),
)


def list_all_deliveries(connection: Connection, *, organisation: str, asked: DeliveryFilter, most: int) -> list[ListedDelivery]:
    """At most `most` deliveries of the organisation that fit, those of the newest events first."""
    if asked.types is not None and not asked.types:
        return []
    bounds: dict[str, Value] = {"above": asked.above, "below": asked.below.event_id, "below_id": asked.below.id, "most": most}
    if asked.state in {PENDING_STATE, FAILED_STATE}:
        found = undelivered_places(connection, organisation, asked, bounds)
    else:
        least, greatest = (PENDING_STATE, FAILED_STATE) if asked.state is None else (DELIVERED_STATE, DELIVERED_STATE)
        bounds |= {"owner": asked.endpoint or organisation, "least": least, "greatest": greatest}
        found = places_of_owner(connection, asked, bounds, most)
    ids = [place.id for place in found]
    return connection.all(DELIVERIES_AT, ids=pack_rows([[id] for id in ids]), organisation=organisation) if ids else []


def undelivered_places(
    connection: Connection, organisation: str, asked: DeliveryFilter, bounds: dict[str, Value]
) -> list[DeliveryPosition]:
    """The newest places of what is pending, or has failed."""
    query = page_of_undelivered(endpoint=asked.endpoint is not None, typed=asked.types is not None)
    named: dict[str, Value] = {"organisation": organisation, "state": asked.state, **bounds}
    named |= {} if asked.endpoint is None else {"endpoint": asked.endpoint}
    return connection.all(query, **named, **({} if asked.types is None else {"types": pack_types(asked.types)}))


def places_of_owner(connection: Connection, asked: DeliveryFilter, bounds: dict[str, Value], most: int) -> list[DeliveryPosition]:
    """The newest places of an endpoint or an organisation, whatever has become of them, or of what is delivered."""
    endpoint = asked.endpoint is not None
    if asked.types is None:
        return connection.all(page_of_owner(endpoint=endpoint), **bounds)
    found = places_of_types(connection, asked.types, bounds, most, endpoint=endpoint)
    untyped = [name for name in asked.types if name in asked.untyped]
    if not untyped:
        return found
    return with_part(connection, page_of_untyped(endpoint=endpoint), found, {**bounds, "types": pack_types(untyped)}, most)


def pack_types(types: Sequence[str]) -> str:
    return pack_rows([[name] for name in types])


def with_part(
    connection: Connection, query: Query[DeliveryPosition], found: list[DeliveryPosition], bounds: dict[str, Value], most: int
) -> list[DeliveryPosition]:
    """The `most` newest places of those that were found and those of another part, which is read no further than they reach."""
    last = {"above": found[-1].event_id} if len(found) == most else {}
    return nlargest(most, found + connection.all(query, **{**bounds, **last}))


def places_of_types(
    connection: Connection, types: Sequence[str], bounds: dict[str, Value], most: int, *, endpoint: bool
) -> list[DeliveryPosition]:
    """The newest places of many types."""
    packed = pack_types(types)
    if connection.dialect_name != "sqlite":
        return connection.all(page_of_types(endpoint=endpoint), types=packed, **bounds)
    named = {name: bounds[name] for name in ("owner", "above", "below")}
    heads = [head for head in connection.all(heads_of_types(endpoint=endpoint), types=packed, **named) if head.newest is not None]
    found = list[DeliveryPosition]()
    for head in sorted(heads, key=lambda head: head.newest or "", reverse=True):
        if len(found) == most and (head.newest or "") < found[-1].event_id:
            break
        found = with_part(connection, page_of_type(endpoint=endpoint), found, {**bounds, "type": head.type}, most)
    return found
