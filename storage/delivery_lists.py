"""Deliveries of an organisation, those of the newest events first, by endpoint, state, type and time.

Event ids begin with the time. An index for each thing that is asked for has them in this order, so that a page is read from its beginning.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.deliveries import DELIVERY
from storage.engine.drivers import Value
from storage.engine.sql import Connection, Query, first_row, unindexed
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
    """What is asked for; None: all. `types` are names; `hidden` types are not shown. `above`: the smallest event id."""

    endpoint: str | None
    state: int | None
    types: Sequence[str] | None
    hidden: Sequence[str]
    above: str
    below: DeliveryPosition


TYPE_OF_DELIVERY = sa.func.coalesce(
    sa.select(EVENT_LOG.c.type).where(EVENT_LOG.c.id == DELIVERY.c.event_id).scalar_subquery(),
    sa.select(EVENT.c.type).where(EVENT.c.id == DELIVERY.c.event_id).scalar_subquery(),
)

LISTED_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(
    TYPE_OF_DELIVERY.label("type") if name == "type" else DELIVERY.c[name] for name in ListedDelivery._fields
)

BELOW, BELOW_ID, ABOVE = (sa.bindparam(name, type_=sa.Text) for name in ("below", "below_id", "above"))

MOST = sa.bindparam("most", type_=sa.Integer)


@first_row(DeliveryPosition)
def find_place(*, delivery: str, organisation: str) -> sa.Executable:
    """The place of a delivery of the organisation, to go on behind it."""
    return sa.select(DELIVERY.c.event_id, DELIVERY.c.id).where(DELIVERY.c.id == delivery, DELIVERY.c.organisation == organisation)


def within(event_id: sa.ColumnElement[str]) -> list[sa.ColumnElement[bool]]:
    """The part of the list that a page is of."""
    before = (event_id < BELOW) | ((event_id == BELOW) & (DELIVERY.c.id < BELOW_ID))
    return [event_id <= BELOW, before, event_id >= ABOVE]


@lru_cache
def page_query(*, endpoint: bool, state: bool, types: int, hidden: int) -> Query[ListedDelivery]:
    """The newest deliveries, of an endpoint or a state where they are asked for, of so many types, without those of so many."""
    owner, bound_endpoint = DELIVERY.c.organisation == sa.bindparam("organisation"), sa.bindparam("endpoint", type_=sa.Text)
    conditions = [unindexed(DELIVERY.c.organisation) == sa.bindparam("organisation") if endpoint else owner, *within(DELIVERY.c.event_id)]
    if endpoint:
        conditions.append(DELIVERY.c.endpoint_id == bound_endpoint)
    if state:
        conditions.append((unindexed(DELIVERY.c.state) if endpoint else DELIVERY.c.state) == sa.bindparam("state", type_=sa.Integer))
    if types:
        conditions.append(TYPE_OF_DELIVERY.in_([sa.bindparam(f"type_{number}", type_=sa.Text) for number in range(types)]))
    if hidden:
        names = [sa.bindparam(f"hidden_{number}", type_=sa.Text) for number in range(hidden)]
        conditions.append(~sa.exists().where(EVENT_LOG.c.id == DELIVERY.c.event_id, EVENT_LOG.c.type.in_(names)))
    found = sa.select(*LISTED_COLUMNS).where(*conditions)
    return Query(ListedDelivery, found.order_by(DELIVERY.c.event_id.desc(), DELIVERY.c.id.desc()).limit(MOST))


@lru_cache
def page_of_types(*, state: bool, types: int) -> Query[ListedDelivery]:
    """The newest deliveries of so many types: of each type those of its newest events."""
    parts = list[sa.Subquery]()
    for number in range(types):
        conditions = [
            EVENT_LOG.c.organisation == sa.bindparam("organisation"),
            EVENT_LOG.c.type == sa.bindparam(f"type_{number}", type_=sa.Text),
            *within(EVENT_LOG.c.id),
        ]
        if state:
            conditions.append(unindexed(DELIVERY.c.state) == sa.bindparam("state", type_=sa.Integer))
        columns = [EVENT_LOG.c.type if name == "type" else DELIVERY.c[name] for name in ListedDelivery._fields]
        found = sa.select(*columns).join_from(EVENT_LOG, DELIVERY, DELIVERY.c.event_id == EVENT_LOG.c.id).where(*conditions)
        parts.append(found.order_by(EVENT_LOG.c.id.desc(), DELIVERY.c.id.desc()).limit(MOST).subquery(f"part_{number}"))
    united = sa.union_all(*(sa.select(part) for part in parts)).subquery("found")
    return Query(ListedDelivery, sa.select(united).order_by(united.c.event_id.desc(), united.c.id.desc()).limit(MOST))


def list_all_deliveries(connection: Connection, *, organisation: str, asked: DeliveryFilter, most: int) -> list[ListedDelivery]:
    """At most `most` deliveries of the organisation that fit, those of the newest events first."""
    types = None if asked.types is None else [name for name in asked.types if name not in asked.hidden]
    if types == []:
        return []
    values: dict[str, Value] = {"organisation": organisation, "above": asked.above, "most": most}
    values |= {"below": asked.below.event_id, "below_id": asked.below.id}
    values |= {} if asked.state is None else {"state": asked.state}
    values |= {f"type_{number}": name for number, name in enumerate(types or ())}
    if types is not None and asked.endpoint is None:
        return connection.all(page_of_types(state=asked.state is not None, types=len(types)), **values)
    values |= {} if asked.endpoint is None else {"endpoint": asked.endpoint}
    hidden: Sequence[str] = () if types is not None else asked.hidden
    values |= {f"hidden_{number}": name for number, name in enumerate(hidden)}
    wanted = {"endpoint": asked.endpoint is not None, "state": asked.state is not None}
    return connection.all(page_query(**wanted, types=len(types or ()), hidden=len(hidden)), **values)
