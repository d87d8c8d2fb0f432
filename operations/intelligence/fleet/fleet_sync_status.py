"""How complete and how old the read model of the fleet is, and why."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.fleet_access import OwnFleet, own_fleet, sees_all
from operations.fleet.sync import keeps_names
from registry.clock import rfc3339_utc
from registry.errors import OcsError
from registry.operation import CamelInput, Example, operation
from storage.fleet_search import WaitingLines, waiting_lines
from storage.fleets import FleetState, is_dated_ahead, is_held_up

LATE_AFTER_SECONDS = 900.0

SyncWord = Literal["never_read", "first_reading", "catching_up", "up_to_date", "held_up"]


class FleetSyncQuery(CamelInput):
    """Nothing: the status is of the caller's own fleet."""


class WaitingCounts(TypedDict):
    """Lines that something is to be read of now."""

    never_read: Annotated[int, Field(description="Listed, and packages and use not read yet")]
    changed: Annotated[int, Field(description="Used, written to or told of since they were read")]
    days_of_use: Annotated[int, Field(description="Whose days of use, finished or older ones, are missing")]


class FleetSyncStatus(TypedDict):
    """How far the fleet has been read."""

    status: Annotated[
        SyncWord,
        Field(
            description="first_reading: some lines have never been read; catching_up: some have changed; held_up: the charging system "
            "cannot be read now, see `error`"
        ),
    ]
    lines: Annotated[int, Field(description="Lines that are listed")]
    listed_at: Annotated[str | None, Field(description="RFC 3339, UTC: when the last finished listing began")]
    listing_seconds: Annotated[float | None, Field(description="How long it took; null for a key that may see some lines alone")]
    next_listing_at: Annotated[str | None, Field(description="RFC 3339, UTC: then, or soon after")]
    complete: Annotated[bool, Field(description="False where the charging system has lines that no list shows")]
    waiting: WaitingCounts
    calls_made: Annotated[
        int | None, Field(description="Calls to the charging system that reading this fleet has made so far; null as `listing_seconds`")
    ]
    again_at: Annotated[str | None, Field(description="RFC 3339, UTC: when the charging system is asked again; null: at once")]
    error: Annotated[str | None, Field(description="Why the last reading failed")]
    names_kept: Annotated[bool, Field(description="Whether customers' names are kept, so that query_fleet finds them at once")]


@operation(
    "GET",
    "/v1/fleet/sync-status",
    upstream=True,
    bounded=True,
    title="Fleet sync status",
    access=own_fleet,
    raises=[OcsError],
    examples=[
        Example(
            "How old is what you know?",
            {},
            {
                "status": "up_to_date",
                "lines": 140,
                "listed_at": "2027-01-15T09:40:00Z",
                "listing_seconds": 0.2,
                "next_listing_at": "2027-01-15T09:45:00Z",
                "complete": True,
                "waiting": {"never_read": 0, "changed": 0, "days_of_use": 0},
                "calls_made": 1242,
                "again_at": None,
                "error": None,
                "names_kept": True,
            },
        )
    ],
)
async def fleet_sync_status(ctx: Ctx, params: FleetSyncQuery, fleet: OwnFleet) -> FleetSyncStatus:
    """Tell how complete and how old the model of the fleet is, and why.

    query_fleet, fleet_problems and the composites answer from this model; each says its own `as_of` and `incomplete`.

    Lines are listed every few minutes, large fleets more slowly. A line's packages and use are read when it was used, at most every eight
    hours, and when a call of yours or a push was about it.
    """
    del params
    state, now, whole = fleet.state, ctx.now, sees_all(fleet)
    waiting = await ctx.deps.store.read(waiting_lines, fleet=state.id, bounds=fleet.bounds, now=now)
    return {
        "status": sync_word(state, waiting, now),
        "lines": waiting.lines,
        "listed_at": rfc3339_utc(state.listed) if state.listed else None,
        "listing_seconds": round(state.listing_seconds, 3) if whole else None,
        "next_listing_at": rfc3339_utc(state.list_due) if state.list_due else None,
        "complete": bool(state.listed) and not state.cut,
        "waiting": {"never_read": waiting.unread, "changed": waiting.changed, "days_of_use": waiting.days},
        "calls_made": state.calls if whole else None,
        "again_at": rfc3339_utc(state.backoff_until) if is_held_up(state, now) else None,
        "error": state.error or None,
        "names_kept": await keeps_names(ctx.deps, ctx.organisation),
    }


def sync_word(state: FleetState, waiting: WaitingLines, now: float) -> SyncWord:
    """The word for how far a fleet has been read at `now`, Unix seconds."""
    if is_held_up(state, now):
        return "held_up"
    if not state.listed:
        return "never_read"
    if waiting.unread:
        return "first_reading"
    late = state.list_due < now - LATE_AFTER_SECONDS or is_dated_ahead(state, now)
    return "catching_up" if waiting.changed or waiting.days or late else "up_to_date"
