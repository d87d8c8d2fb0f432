"""What a schedule's webhook is told of a report: enough to decide whether to read it, and nothing that names a line."""

from collections.abc import Sequence
from typing import get_args

import orjson
from typing_extensions import TypedDict

from operations.intelligence.sheet import Figure, PublicKind, Sheet
from registry.policy import stamp
from storage.reports.schedule_reports import Taken
from storage.webhooks.events import REPORT, NewEvent

MOST_FIGURES = 8
PUBLIC: Sequence[str] = get_args(PublicKind)
FAILED = "The report could not be made"


class Notice(TypedDict):
    """`data` of an intelligence.report event. `boundary` is null where somebody asked for the report."""

    schedule: str
    report: str
    composite: str
    state: str
    boundary: str | None
    headline: str
    figures: list[Figure]
    report_url: str


def notice(taken: Taken, base_url: str, state: str, sheet: Sheet | None) -> Notice:
    """Choice: of a report that failed no reason is sent, since a refusal may say which account or line it is about."""
    return {
        "schedule": taken.schedule,
        "report": taken.id,
        "composite": taken.composite,
        "state": state,
        "boundary": None if taken.fire_ms is None else stamp(taken.fire_ms / 1000),
        "headline": FAILED if sheet is None else sheet["headline"],
        "figures": [] if sheet is None else [figure for figure in sheet["figures"] if figure["kind"] in PUBLIC][:MOST_FIGURES],
        "report_url": f"{base_url}/v1/intelligence/schedules/{taken.schedule}/report?report={taken.id}",
    }


def event_for(id: str, taken: Taken, told: Notice, now: float) -> NewEvent:
    """The event: once for each report."""
    return NewEvent(
        id=id,
        organisation=taken.organisation,
        intent=taken.schedule,
        type=REPORT,
        livemode=1,
        data=orjson.dumps(told).decode(),
        dedup=f"report|{taken.id}",
        created=int(now),
    )
