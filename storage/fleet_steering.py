"""Where the lines of a fleet are, counted by the steering list that holds for them: from this follows which network a list prefers."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Query, runs_in_thread
from storage.fleet_coverage import IN_ACCOUNT
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, OF_FLEET, THERE_IN_TABLE_ORDER
from storage.fleet_scores import WITH_FIGURES
from storage.line_steering import LINE_STEERING


class SteeredLines(NamedTuple):
    """Lines on a network. `steering_list` is their own, 0: none; `account_id`: whose list holds then, 0 for lines with one of their own.

    `sponsor`: whose SIMs they are, -1: not known.
    """

    steering_list: int
    account_id: int
    sponsor: int
    mcc: int
    mnc: int
    lines: int


LIST_OF_ACCOUNT = sa.case((FLEET_LINE.c.steering_list == 0, FLEET_LINE.c.account_id), else_=0)

# Where a line was before its list was changed or pushed says nothing of the list.
WAS_STEERED_SINCE = (
    sa.exists()
    .where(
        LINE_STEERING.c.organisation == sa.bindparam("organisation", type_=sa.Text),
        LINE_STEERING.c.iccid == FLEET_LINE.c.iccid,
        LINE_STEERING.c.changed >= FLEET_FIGURE.c.main_at,
    )
    .correlate(FLEET_LINE, FLEET_FIGURE)
)

STEERED_LINES = Query(
    SteeredLines,
    sa.select(
        FLEET_LINE.c.steering_list,
        LIST_OF_ACCOUNT.label("account_id"),
        FLEET_FIGURE.c.sponsor,
        FLEET_FIGURE.c.main_mcc.label("mcc"),
        FLEET_FIGURE.c.main_mnc.label("mnc"),
        sa.func.count().label("lines"),
    )
    .select_from(WITH_FIGURES)
    .where(
        OF_FLEET,
        THERE_IN_TABLE_ORDER,
        IN_ACCOUNT,
        FLEET_LINE.c.status == "ACTIVE",
        FLEET_LINE.c.last_used >= sa.bindparam("since", type_=sa.Double),
        FLEET_FIGURE.c.main_mcc > 0,
        ~WAS_STEERED_SINCE,
    )
    .group_by(FLEET_LINE.c.steering_list, LIST_OF_ACCOUNT, FLEET_FIGURE.c.sponsor, FLEET_FIGURE.c.main_mcc, FLEET_FIGURE.c.main_mnc),
)


@runs_in_thread
def steered_lines(connection: Connection, *, fleet: int, account: int | None, organisation: str, since: float) -> list[SteeredLines]:
    """Where the active lines of `account` (None: all) are that were used at `since` (Unix seconds) or later.

    Lines whose steering `organisation` changed through us since they were seen there are left out. Nothing of a fleet that has ended.
    """
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    of_account = -1 if account is None else account
    return connection.all(STEERED_LINES, fleet=fleet, account=of_account, organisation=organisation, since=since)
