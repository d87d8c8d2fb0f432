"""Tags that organisations give their lines. They are ours: the charging system knows nothing of them.

A tag is an organisation's and a line's, by the ICCID in use, and ends when the line leaves: it is in none of the organisation's accounts
any more, it has ended for good, or its SIM went back to stock. Whoever sets or removes tags holds the organisation's row, so that no line
gets more tags than it may have, and a key that names a tag is made either before or after.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import Restricted
from storage.api_keys import guarded_tags
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    TableDescription,
    all_rows,
    bound_list,
    json_rows,
    pack_rows,
    runs_in_thread,
)
from storage.fleets import FLEET
from storage.organisations import lock_organisation

MOST_TAGS_OF_LINE = 20


class TagOfLine(NamedTuple):
    """A tag of a line; fleets find the line by its subscriber id. `tagged_by`: the principal who set it, `tagged`: when, Unix seconds."""

    organisation: Key
    iccid: Key
    tag: Key
    subscriber_id: BigInt
    tagged_by: str
    tagged: BigInt


class LineTagTable(TableDescription, row=TagOfLine, table=True):
    """The tags of an organisation's lines."""

    __table_args__ = (sa.Index("line_tag_lines", "organisation", "tag", "subscriber_id"), CLUSTERED)


LINE_TAG = LineTagTable.table

TAGGER = sa.bindparam("organisation", type_=sa.Text)

BOUND_TAG = sa.bindparam("tag", type_=sa.Text)

# One row of a short table, so that a statement about a fleet need not be told whose it is.
OWNER_OF_BOUND_FLEET = sa.select(FLEET.c.organisation).where(FLEET.c.id == sa.bindparam("fleet", type_=sa.BigInteger)).scalar_subquery()


def lines_with_tag(tag: sa.ColumnElement[str]) -> sa.Select[int]:
    """The subscriber ids of lines that the organisation of the bound `fleet` has given the tag."""
    return sa.select(LINE_TAG.c.subscriber_id).where(LINE_TAG.c.organisation == OWNER_OF_BOUND_FLEET, LINE_TAG.c.tag == tag)


def lines_with_any_tag(dialect: Dialect, bind: str) -> sa.Select[int]:
    """The subscriber ids of lines that the organisation of the bound `fleet` has given one of the tags bound as `bind`."""
    return sa.select(LINE_TAG.c.subscriber_id).where(
        LINE_TAG.c.organisation == OWNER_OF_BOUND_FLEET, LINE_TAG.c.tag.in_(bound_list(dialect, bind))
    )


@all_rows(str)
def iccids_with_tag(*, organisation: str, tag: str, most: int) -> sa.Executable:
    """At most `most` ICCIDs that the organisation has given the tag, in their order."""
    chosen = sa.select(LINE_TAG.c.iccid).where(LINE_TAG.c.organisation == organisation, LINE_TAG.c.tag == tag)
    return chosen.order_by(LINE_TAG.c.iccid).limit(most)


class TaggedLine(NamedTuple):
    """A line's ICCID and one of its tags."""

    iccid: str
    tag: str


TAGS_OF_LINES = Query(
    TaggedLine,
    lambda dialect: (
        sa.select(LINE_TAG.c.iccid, LINE_TAG.c.tag)
        .where(LINE_TAG.c.organisation == TAGGER, LINE_TAG.c.iccid.in_(bound_list(dialect, "iccids")))
        .order_by(LINE_TAG.c.iccid, LINE_TAG.c.tag)
    ),
)


def tags_of_lines(connection: Connection, *, organisation: str, iccids: Sequence[str]) -> list[TaggedLine]:
    """Every tag of the lines with these ICCIDs, sorted."""
    return connection.all(TAGS_OF_LINES, organisation=organisation, iccids=packed_texts(iccids))


def packed_texts(texts: Collection[str]) -> str:
    return pack_rows([[text] for text in texts])


LINES_WITH_THIS = Query(
    str,
    lambda dialect: sa.select(LINE_TAG.c.iccid).where(
        LINE_TAG.c.organisation == TAGGER, LINE_TAG.c.tag == BOUND_TAG, LINE_TAG.c.iccid.in_(bound_list(dialect, "iccids"))
    ),
)

FULL_LINES = Query(
    str,
    lambda dialect: (
        sa.select(LINE_TAG.c.iccid)
        .where(LINE_TAG.c.organisation == TAGGER, LINE_TAG.c.iccid.in_(bound_list(dialect, "iccids")))
        .group_by(LINE_TAG.c.iccid)
        .having(sa.func.count() >= MOST_TAGS_OF_LINE)
    ),
)


def insert_tags(dialect: Dialect) -> sa.Executable:
    """Gives the tag to every line that is bound by its ICCID and subscriber id."""
    given = json_rows(dialect, "lines", "given", iccid=sa.Text, subscriber_id=sa.BigInteger)
    by, at = sa.bindparam("by", type_=sa.Text), sa.bindparam("now", type_=sa.BigInteger)
    rows = sa.select(TAGGER, given.c.iccid, BOUND_TAG, given.c.subscriber_id, by, at).where(sa.true())
    return dialect.insert(LINE_TAG).from_select(list(TagOfLine._fields), rows).on_conflict_do_nothing()


INSERT_TAGS = Command(insert_tags)

DELETE_TAG = Command(
    lambda dialect: sa.delete(LINE_TAG).where(
        LINE_TAG.c.organisation == TAGGER, LINE_TAG.c.tag == BOUND_TAG, LINE_TAG.c.iccid.in_(bound_list(dialect, "iccids"))
    )
)

DELETE_TAGS_OF_LINES = Command(
    lambda dialect: sa.delete(LINE_TAG).where(LINE_TAG.c.organisation == TAGGER, LINE_TAG.c.iccid.in_(bound_list(dialect, "iccids")))
)


def require_unguarded(connection: Connection, *, organisation: str, tag: str, now: float) -> None:
    """Raises Restricted for a tag that a restriction of a live key names, and holds the organisation until the commit.

    Nobody makes such a key meanwhile. `now`: Unix seconds.
    """
    lock_organisation(connection, organisation=organisation)
    if tag in guarded_tags(connection, organisation=organisation, now=now):
        raise Restricted(
            f"tag: {tag} is guarded, since an API key is restricted to lines that have it; nothing was done",
            param="tag",
            hint="An admin sets or removes it, with a credential that has no restrictions; or use another tag",
        )


class TagOutcome(NamedTuple):
    """What became of lines: how many have changed, how many were so already; `full`: ICCIDs of lines with as many tags as one may have."""

    changed: int
    already: int
    full: list[str]


class TagAuthor(NamedTuple):
    """Who sets or removes a tag of lines of `organisation`, and when: Unix seconds. `guardian`: they may set and remove guarded ones."""

    organisation: str
    principal: str
    guardian: bool
    now: float


def hold_tag(connection: Connection, author: TagAuthor, tag: str) -> None:
    if author.guardian:
        lock_organisation(connection, organisation=author.organisation)
    else:
        require_unguarded(connection, organisation=author.organisation, tag=tag, now=author.now)


@runs_in_thread
def set_tag(connection: Connection, *, author: TagAuthor, tag: str, lines: Mapping[str, int]) -> TagOutcome:
    """Gives the tag to the author's `lines`, ICCIDs with subscriber ids. Raises Restricted for a guarded one."""
    hold_tag(connection, author, tag)
    organisation = author.organisation
    packed = packed_texts(lines)
    already = set(connection.all(LINES_WITH_THIS, organisation=organisation, tag=tag, iccids=packed))
    full = {iccid for iccid in connection.all(FULL_LINES, organisation=organisation, iccids=packed) if iccid not in already}
    fresh = pack_rows([[iccid, number] for iccid, number in lines.items() if iccid not in already and iccid not in full])
    by, now = author.principal, int(author.now)
    set_now = connection.run(INSERT_TAGS, organisation=organisation, tag=tag, lines=fresh, by=by, now=now)
    return TagOutcome(set_now, len(already), [iccid for iccid in lines if iccid in full])


@runs_in_thread
def remove_tag(connection: Connection, *, author: TagAuthor, tag: str, iccids: Collection[str]) -> TagOutcome:
    """Removes the tag from the author's lines with these ICCIDs, each given once. Raises Restricted for a guarded one."""
    hold_tag(connection, author, tag)
    removed = connection.run(DELETE_TAG, organisation=author.organisation, tag=tag, iccids=packed_texts(iccids))
    return TagOutcome(removed, len(iccids) - removed, [])


def end_tags(connection: Connection, *, organisation: str, iccids: Collection[str]) -> None:
    """Ends every tag of lines that have left, have ended for good, or whose SIMs are in stock again."""
    if iccids:
        connection.run(DELETE_TAGS_OF_LINES, organisation=organisation, iccids=packed_texts(sorted(iccids)))


class TagCount(NamedTuple):
    """A tag, and how many lines have it."""

    tag: str
    lines: int


@runs_in_thread
def count_tags(connection: Connection, *, organisation: str, after: str, most: int) -> list[TagCount]:
    """At most `most` tags behind `after` in the order of their letters, each with how many lines have it."""
    return connection.all(COUNT_TAGS, organisation=organisation, after=after, most=most)


COUNT_TAGS = Query(
    TagCount,
    sa.select(LINE_TAG.c.tag, sa.func.count().label("lines"))
    .where(LINE_TAG.c.organisation == TAGGER, LINE_TAG.c.tag > sa.bindparam("after", type_=sa.Text))
    .group_by(LINE_TAG.c.tag)
    .order_by(LINE_TAG.c.tag)
    .limit(sa.bindparam("most", type_=sa.Integer)),
)
