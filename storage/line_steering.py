"""What an organisation did to the steering of its lines through us: which list a line was given, and when a list was pushed to its SIM.

The charging system tells neither, and the audit log names no lines; without this, advice would repeat a push that was just made.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, StatementBuild, TableDescription, all_rows, changes_rows, delete_oldest, first_row, upsert, writes

LINE_STEERING_KEPT_SECONDS = 30 * 86_400
"""Choice: a line that was pushed to a month ago is as any other."""


class LineSteering(NamedTuple):
    """Times are Unix seconds; None: not in the last thirty days, or not since. `list_id` is what the line was given at `assigned`."""

    iccid: str
    list_id: BigInt | None
    assigned: float | None
    pushed: float | None


class LineSteeringTable(TableDescription, row=LineSteering, without=("iccid",), table=True):
    """When an organisation gave a line a steering list, and when it pushed the list to the SIM. `changed` is the later of both."""

    organisation: str = Field(primary_key=True)
    iccid: str = Field(primary_key=True)
    changed: float = Field(index=True)
    __table_args__ = (sa.Index("line_steering_latest", "organisation", "changed"),)


LINE_STEERING = LineSteeringTable.table

LINE_STEERING_KEY = ["organisation", "iccid"]


@writes
def record_steering_list(*, organisation: str, iccid: str, list_id: int | None, now: float) -> StatementBuild:
    """Records that a line was given a list, or that its list was removed. `now`: Unix seconds."""
    # Another list has not been pushed yet, whatever was pushed before.
    return upsert(
        LINE_STEERING,
        key=LINE_STEERING_KEY,
        organisation=organisation,
        iccid=iccid,
        list_id=list_id,
        assigned=now,
        pushed=sa.null(),
        changed=now,
    )


@writes
def record_steering_push(*, organisation: str, iccid: str, now: float) -> StatementBuild:
    """Records that the list of a line was pushed to its SIM. `now`: Unix seconds."""
    return upsert(LINE_STEERING, key=LINE_STEERING_KEY, organisation=organisation, iccid=iccid, pushed=now, changed=now)


@all_rows(LineSteering)
def latest_line_steering(*, organisation: str, since: float, most: int) -> sa.Executable:
    """The lines whose steering the organisation changed from `since` (Unix seconds) on, the latest first, at most `most`."""
    return (
        sa.select(*(LINE_STEERING.c[name] for name in LineSteering._fields))
        .where(LINE_STEERING.c.organisation == organisation, LINE_STEERING.c.changed >= since)
        .order_by(LINE_STEERING.c.changed.desc())
        .limit(most)
    )


@first_row(LineSteering)
def steering_of_line(*, organisation: str, iccid: str) -> sa.Executable:
    """What the organisation did to the steering of the line in thirty days."""
    return sa.select(*(LINE_STEERING.c[name] for name in LineSteering._fields)).where(
        LINE_STEERING.c.organisation == organisation, LINE_STEERING.c.iccid == iccid
    )


@changes_rows
def sweep_line_steering(*, before: float, most: int) -> sa.Executable:
    """Delete the oldest rows; returns how many. `before`: Unix seconds."""
    return delete_oldest(LINE_STEERING, LINE_STEERING.c.changed < before, LINE_STEERING.c.changed, most)
