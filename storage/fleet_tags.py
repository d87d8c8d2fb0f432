"""Tags beside what is known of a fleet's lines: how many lines within a credential's bounds have each, and tags of lines that have left."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Command, Connection, Dialect, Query, bound_list, pack_rows, runs_in_thread, unindexed
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleet_search import FleetBounds, FleetFilter, filter_values, is_filtered
from storage.fleets import FLEET
from storage.line_tags import LINE_TAG, OWNER_OF_BOUND_FLEET, TAGGER, TagCount, packed_texts

TAG_OF_LINE = sa.and_(LINE_TAG.c.organisation == OWNER_OF_BOUND_FLEET, LINE_TAG.c.subscriber_id == FLEET_LINE.c.subscriber_id)


@lru_cache(maxsize=8)
def tags_within(names: frozenset[str]) -> Query[TagCount]:
    """The tags of the lines with these filters, each with how many of them have it."""

    def build(dialect: Dialect) -> sa.Executable:
        behind = LINE_TAG.c.tag > sa.bindparam("after", type_=sa.Text)
        return (
            sa.select(LINE_TAG.c.tag, sa.func.count().label("lines"))
            .select_from(FLEET_LINE.join(LINE_TAG, TAG_OF_LINE))
            .where(OF_FLEET, LINE_IS_THERE, *is_filtered(dialect, names), behind)
            .group_by(LINE_TAG.c.tag)
            .order_by(LINE_TAG.c.tag)
            .limit(sa.bindparam("most", type_=sa.Integer))
        )

    return Query(TagCount, build)


@runs_in_thread
def count_tags_within(connection: Connection, *, fleet: int, bounds: FleetBounds, after: str, most: int) -> list[TagCount]:
    """As `count_tags`, of the lines within `bounds` that have been listed. None of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    names, values = filter_values(FleetFilter(), bounds, 0.0)
    return connection.all(tags_within(names), **values, fleet=fleet, after=after, most=most)


STRAY_LINES_A_LISTING = 1000


class FleetReach(NamedTuple):
    """A fleet, when it was listed last (Unix seconds, 0: never), and whether its lists lack lines."""

    id: int
    listed: float
    cut: int


# A simulated network has a fleet in each process, and another fleet may show the line.
FLEETS_OF_OWNER = Query(
    FleetReach,
    lambda _: sa.select(FLEET.c.id, FLEET.c.listed, FLEET.c.cut).where(
        FLEET.c.organisation == sa.bindparam("organisation", type_=sa.Text), unindexed(FLEET.c.ended) == 0
    ),
)

STRAY_TAGS = Query(
    str,
    lambda dialect: (
        sa.select(LINE_TAG.c.iccid)
        .distinct()
        .where(
            LINE_TAG.c.organisation == TAGGER,
            LINE_TAG.c.tagged < sa.bindparam("before", type_=sa.Double),
            ~sa.exists().where(
                FLEET_LINE.c.iccid == LINE_TAG.c.iccid,
                LINE_IS_THERE,
                FLEET_LINE.c.status != "END_OF_LIFE",
                FLEET_LINE.c.fleet.in_(bound_list(dialect, "fleets", sa.BigInteger)),
            ),
        )
        .order_by(LINE_TAG.c.iccid)
        .limit(sa.bindparam("most", type_=sa.Integer))
    ),
)

END_STRAY_TAGS = Command(
    lambda dialect: sa.delete(LINE_TAG).where(
        LINE_TAG.c.organisation == TAGGER,
        LINE_TAG.c.tagged < sa.bindparam("before", type_=sa.Double),
        LINE_TAG.c.iccid.in_(bound_list(dialect, "iccids")),
    )
)


@runs_in_thread
def stray_tags(connection: Connection, *, organisation: str, before: float) -> Sequence[str]:
    """At most 1000 ICCIDs of lines that were tagged before a moment (Unix seconds), and that no list of the organisation's shows now.

    A line leaves unseen while its organisation has no connection, or before it was ever listed. Nothing where some lists are not whole.
    """
    fleets = connection.all(FLEETS_OF_OWNER, organisation=organisation)
    if not fleets or any(fleet.cut or not fleet.listed for fleet in fleets):
        return []
    numbers = pack_rows([[fleet.id] for fleet in fleets])
    return connection.all(STRAY_TAGS, organisation=organisation, fleets=numbers, before=before, most=STRAY_LINES_A_LISTING)


def end_stray_tags(connection: Connection, *, organisation: str, iccids: Collection[str], before: float) -> None:
    """Ends the tags of these lines that were set before a moment, Unix seconds."""
    connection.run(END_STRAY_TAGS, organisation=organisation, iccids=packed_texts(iccids), before=before)
