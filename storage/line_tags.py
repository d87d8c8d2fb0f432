"""Tags that organisations give their lines. They are ours: the charging system knows nothing of them."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import CLUSTERED, BigInt, Key, TableDescription, all_rows
from storage.fleets import FLEET


class TagOfLine(NamedTuple):
    """A tag of a line. `tagged_by`: the principal who set it, `tagged`: when, Unix seconds."""

    organisation: Key
    iccid: Key
    tag: Key
    tagged_by: str
    tagged: BigInt


class LineTagTable(TableDescription, row=TagOfLine, table=True):
    """The tags of an organisation's lines."""

    __table_args__ = (sa.Index("line_tag_lines", "organisation", "tag", "iccid"), CLUSTERED)


LINE_TAG = LineTagTable.table

BOUND_FLEET_NUMBER = sa.bindparam("fleet", type_=sa.BigInteger)

# One row of a short table, so that a statement about a fleet need not be told whose it is.
OWNER_OF_BOUND_FLEET = sa.select(FLEET.c.organisation).where(FLEET.c.id == BOUND_FLEET_NUMBER).scalar_subquery()


def lines_with_tag(tag: sa.ColumnElement[str]) -> sa.Select[str]:
    """The ICCIDs that the organisation of the bound `fleet` has given the tag."""
    return sa.select(LINE_TAG.c.iccid).where(LINE_TAG.c.organisation == OWNER_OF_BOUND_FLEET, LINE_TAG.c.tag == tag)


@all_rows(str)
def iccids_with_tag(*, organisation: str, tag: str, most: int) -> sa.Executable:
    """At most `most` ICCIDs that the organisation has given the tag, in their order."""
    chosen = sa.select(LINE_TAG.c.iccid).where(LINE_TAG.c.organisation == organisation, LINE_TAG.c.tag == tag)
    return chosen.order_by(LINE_TAG.c.iccid).limit(most)
