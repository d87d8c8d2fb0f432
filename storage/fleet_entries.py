"""Lines that entered a country that is unusual for them: a page of them, newest first, within what a credential may see."""

from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import Connection, Query, runs_in_thread
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleet_scores import WITH_FIGURES
from storage.fleet_search import NOTHING_KNOWN, FleetBounds, FleetFilter, FleetKnowledge, filter_values, is_filtered, knowledge_within


class EnteredLine(NamedTuple):
    """A line, the unusual country that it entered last, and when, Unix seconds; JSON of what tells so."""

    subscriber_id: int
    iccid: str
    account_id: int
    entry_country: str
    entry_at: float
    entry_facts: str


class EntryPlace(NamedTuple):
    """Where a page begins: behind this line."""

    at: float
    subscriber_id: int


ENTERED_SINCE = sa.bindparam("since", type_=sa.Double)

HAS_ENTERED = sa.and_(
    OF_FLEET, LINE_IS_THERE, FLEET_FIGURE.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger), FLEET_FIGURE.c.entry_at >= ENTERED_SINCE
)


@lru_cache(maxsize=16)
def entered_page(names: frozenset[str], *, further: bool) -> Query[EnteredLine]:
    """The lines that entered such a country, the newest entry first."""
    at, number = FLEET_FIGURE.c.entry_at, FLEET_LINE.c.subscriber_id
    last_at, last = sa.bindparam("last_at", type_=sa.Double), sa.bindparam("last", type_=sa.BigInteger)
    behind = [sa.or_(at < last_at, sa.and_(at == last_at, number > last))] if further else []
    columns = [(FLEET_FIGURE if name.startswith("entry_") else FLEET_LINE).c[name] for name in EnteredLine._fields]
    return Query(
        EnteredLine,
        lambda dialect: (
            sa.select(*columns)
            .select_from(WITH_FIGURES)
            .where(HAS_ENTERED, *is_filtered(dialect, names), *behind)
            .order_by(at.desc(), number)
            .limit(sa.bindparam("most", type_=sa.Integer))
        ),
    )


@lru_cache(maxsize=16)
def count_entered(names: frozenset[str]) -> Query[int]:
    """How many lines entered such a country."""
    return Query(
        int,
        lambda dialect: (
            sa.select(sa.func.count().label("lines")).select_from(WITH_FIGURES).where(HAS_ENTERED, *is_filtered(dialect, names))
        ),
    )


class FleetEntries(NamedTuple):
    """A page of lines, how many there are in all, and how far the lines within the bounds are known."""

    page: list[EnteredLine]
    lines: int
    known: FleetKnowledge


@runs_in_thread
def entered_lines(
    connection: Connection, *, fleet: int, bounds: FleetBounds, since: float, first: int, after: EntryPlace | None, most: int, now: float
) -> FleetEntries:
    """At most `most` lines that entered an unusual country at `since` or later (Unix seconds), behind the place `after`.

    `first`: the oldest day that is needed to tell what is usual, an ordinal. Nothing of a fleet that has ended.
    """
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return FleetEntries([], 0, NOTHING_KNOWN)
    names, values = filter_values(FleetFilter(), bounds, now)
    place: dict[str, Value] = {} if after is None else {"last_at": after.at, "last": after.subscriber_id}
    return FleetEntries(
        connection.all(entered_page(names, further=after is not None), **values, **place, fleet=fleet, since=since, most=most),
        connection.first(count_entered(names), **values, fleet=fleet, since=since) or 0,
        knowledge_within(connection, fleet=fleet, bounds=bounds, first=first, now=now),
    )
