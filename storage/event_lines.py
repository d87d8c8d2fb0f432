"""What bounds a restricted credential's view of events: of a line, in which accounts it is now and which tags it has."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Query, bound_list, pack_rows, unindexed
from storage.fleet_lines import FLEET_LINE
from storage.fleets import FLEET
from storage.line_tags import LINE_TAG


class LinePlace(NamedTuple):
    """A line and an account that it is in, as the read model has it."""

    line: str
    account_id: int


class LineTagged(NamedTuple):
    """A line and a tag of it."""

    line: str
    tag: str


class LineBounds(NamedTuple):
    """The accounts that a line is in, and its tags."""

    account_ids: frozenset[int]
    tags: frozenset[str]


UNKNOWN_LINE = LineBounds(frozenset(), frozenset())

LINE_PLACES = Query(
    LinePlace,
    lambda dialect: (
        sa.select(FLEET_LINE.c.iccid.label("line"), FLEET_LINE.c.account_id)
        # Else SQLite would go through all lines of the organisation's fleets.
        .join_from(FLEET_LINE, FLEET, FLEET.c.id == unindexed(FLEET_LINE.c.fleet))
        .where(
            FLEET_LINE.c.iccid.in_(bound_list(dialect, "lines")),
            FLEET.c.organisation == sa.bindparam("organisation"),
            FLEET.c.ended == 0,
            FLEET_LINE.c.gone == 0,
        )
    ),
)

TAGS_OF_EVENT_LINES = Query(
    LineTagged,
    lambda dialect: sa.select(LINE_TAG.c.iccid.label("line"), LINE_TAG.c.tag).where(
        LINE_TAG.c.organisation == sa.bindparam("organisation"), LINE_TAG.c.iccid.in_(bound_list(dialect, "lines"))
    ),
)


def bounds_of_lines(connection: Connection, *, organisation: str, lines: Sequence[str]) -> dict[str, LineBounds]:
    """The accounts and tags of these lines (ICCIDs) of an organisation; one that nobody knows is in no account and has no tags."""
    if not lines:
        return {}
    given = {"organisation": organisation, "lines": pack_rows([[line] for line in lines])}
    places = connection.all(LINE_PLACES, **given)
    tags = connection.all(TAGS_OF_EVENT_LINES, **given)
    return {
        line: LineBounds(
            frozenset(place.account_id for place in places if place.line == line), frozenset(tag.tag for tag in tags if tag.line == line)
        )
        for line in lines
    }
