"""Who suspended a line or switched its data off, and when: as far as our own record of calls, notes and the status history tell."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.times import wire_seconds
from operations.deps import Ctx
from operations.intelligence.diagnosis.facts import LineFacts
from operations.upstream.lines import current_entry
from registry.clock import rfc3339_utc
from storage.engine.sql import Connection
from storage.line_changes import LineChange, changes_of_line
from storage.notes import NoteRow, read_notes

SAME_CHANGE_SECONDS = 120.0
"""Choice: by how much the charging system's clock and ours may differ about one change."""
NOTES_AROUND_SECONDS = 3600
BARRING_STATUSES = ("SUSPENDED", "INACTIVE", "DISCONNECTED", "END_OF_LIFE")
NOT_DONE_HERE = "No call through this service did it since that is recorded, 400 days back; the charging system does not say who did."
DONE_ELSEWHERE = "It was changed elsewhere after the last such call through this service; the charging system does not say by whom."


class Actor(TypedDict):
    """Who made a call, without names."""

    kind: Annotated[str, Field(description="key, session, local ...: what called")]
    id: Annotated[str, Field(description="Of the person or the service behind it, as in the audit log")]
    key_id: Annotated[str | None, Field(description="Of the key or login that was presented")]


class LineBar(TypedDict):
    """What bars a line, and who did so."""

    what: Literal["status", "data"]
    value: Annotated[str, Field(description="The status; off where data is switched off")]
    since: Annotated[str | None, Field(description="RFC 3339, UTC: since when, by the charging system; null: it does not say")]
    by: Annotated[Actor | None, Field(description="Null: not known, and `why_unknown` says why")]
    at: Annotated[str | None, Field(description="RFC 3339, UTC: when that call was made")]
    why_unknown: str | None
    notes: Annotated[list[str], Field(description="Ids of notes that were written within an hour of it; get_subscriber_notes shows them")]


class LineRecords(NamedTuple):
    """Our own records of a line: the latest changes, and notes, newest first."""

    changes: Sequence[LineChange]
    notes: Sequence[NoteRow]


def read_line_records(connection: Connection, *, organisation: str, iccid: str) -> LineRecords:
    """What the organisation did to the line and wrote about it."""
    notes = read_notes(connection, organisation=organisation, iccid=iccid).history
    return LineRecords(changes_of_line(connection, organisation=organisation, iccid=iccid), notes)


async def read_line_bars(ctx: Ctx, iccid: str, facts: LineFacts) -> list[LineBar]:
    """What bars the line, and who did so. Waits for the database."""
    status, data = barring_status(facts), facts.row.get("allowedData") is False
    if status is None and not data:
        return []
    records = await ctx.deps.store.read(read_line_records, organisation=ctx.organisation, iccid=iccid)
    found = [] if status is None else [line_bar("status", status, status_began(facts), records)]
    return [*found, line_bar("data", "off", None, records)] if data else found


def barring_status(facts: LineFacts) -> str | None:
    """The status, where it bars a line that a customer has."""
    in_stock = facts.row.get("sim", {}).get("status", "").upper() == "FREE"
    return facts.status if facts.status in BARRING_STATUSES and not in_stock else None


def status_began(facts: LineFacts) -> float | None:
    """Since when the status holds, Unix seconds."""
    entry = current_entry(facts.row.get("status", ()))
    return None if entry is None else wire_seconds(entry.get("startDate"))


def line_bar(what: Literal["status", "data"], value: str, since: float | None, records: LineRecords) -> LineBar:
    change = next((each for each in records.changes if each.kind == what), None)
    same = change is not None and change.value == value and (since is None or abs(change.at - since) <= SAME_CHANGE_SECONDS)
    known = change if same else None
    moment = since if known is None else known.at
    return {
        "what": what,
        "value": value,
        "since": None if since is None else rfc3339_utc(since),
        "by": None if known is None else {"kind": known.actor_kind, "id": known.actor, "key_id": known.key_id or None},
        "at": None if known is None else rfc3339_utc(known.at),
        "why_unknown": None if known is not None else NOT_DONE_HERE if change is None else DONE_ELSEWHERE,
        "notes": [] if moment is None else [row.id for row in records.notes if abs(row.created - moment) <= NOTES_AROUND_SECONDS],
    }
