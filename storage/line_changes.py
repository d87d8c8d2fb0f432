"""Who suspended lines, or switched their data off or on, through us: of each line the latest change of each kind.

The charging system does not say who did it, and the audit log names no lines; without this nobody could say who barred a line.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import StatementBuild, TableDescription, all_rows, changes_rows, delete_oldest, upsert, writes

LINE_CHANGES_KEPT_SECONDS = 400 * 86_400
"""Choice: as long as the countries of a line are kept."""


class LineChange(NamedTuple):
    """`kind`: `status` or `data`; `value`: the new status, or `on` or `off`. `at`: Unix seconds.

    `actor_kind`: what called, such as key or session; `actor`: the id of the person or the service behind it; `key_id`: of the key or
    login that was presented, '' without one.
    """

    kind: str
    value: str
    at: float
    actor_kind: str
    actor: str
    key_id: str


class LineChangeTable(TableDescription, row=LineChange, without=("kind", "at"), table=True):
    """The latest change of a kind that an organisation made to a line."""

    organisation: str = Field(primary_key=True)
    iccid: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    at: float = Field(index=True)


LINE_CHANGE = LineChangeTable.table


@writes
def record_line_change(*, organisation: str, iccid: str, change: LineChange) -> StatementBuild:
    """Records what was done to a line, in the commit that ends the call."""
    return upsert(LINE_CHANGE, key=["organisation", "iccid", "kind"], organisation=organisation, iccid=iccid, **change._asdict())


@all_rows(LineChange)
def changes_of_line(*, organisation: str, iccid: str) -> sa.Executable:
    """The latest change of each kind that the organisation made to the line."""
    return sa.select(*(LINE_CHANGE.c[name] for name in LineChange._fields)).where(
        LINE_CHANGE.c.organisation == organisation, LINE_CHANGE.c.iccid == iccid
    )


@changes_rows
def sweep_line_changes(*, before: float, most: int) -> sa.Executable:
    """Delete the oldest rows; returns how many. `before`: Unix seconds."""
    return delete_oldest(LINE_CHANGE, LINE_CHANGE.c.at < before, LINE_CHANGE.c.at, most)
