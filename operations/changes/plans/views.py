"""What is told of change sets: how far they are, what they cost, what cannot be undone, and their rows."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, cast

import orjson
from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from operations.changes.plans.changes import ActionWord
from operations.changes.plans.undo import values_of
from registry.clock import rfc3339_utc
from registry.free_text import FreeText
from storage.change_rows import UNBOUNDED_COST, ChangeRow
from storage.change_sets import ChangeSet

NETWORK_CURRENCY = "EUR"
"""What the network takes is told in euros."""
SetState = Literal["planning", "planned", "applying", "applied", "partly_applied", "cancelled", "expired"]
RowState = Literal["planned", "skipped", "sending", "done", "failed", "unknown", "not_sent"]


class Amount(TypedDict):
    """Money in minor units of its currency."""

    amount: int
    currency: str


class PlanMoney(TypedDict):
    """What the rows make due."""

    network: Annotated[
        Amount | None,
        Field(description="What the network takes for packages at most, rounded up; a series counts for a year; null: nobody can say"),
    ]
    income: Annotated[Amount, Field(description="What customers are charged by the rows: nothing, since rows sell nothing")]


class RowCounts(TypedDict):
    """Numbers of rows. A line has a row, or one for each of its packages that is changed."""

    lines: int
    lines_read: int
    planned: Annotated[int, Field(description="Rows that change something, sent ones included")]
    skipped: int
    done: int
    failed: int
    unknown: Annotated[int, Field(description="Sent, and nobody knows yet what came of it; it is looked for")]
    not_sent: int


class LostThing(TypedDict):
    """What a row takes away for good."""

    package: NotRequired[int]
    name: NotRequired[Annotated[FreeText | None, Field(description="Of the package")]]
    unused_bytes: NotRequired[int]
    ends: NotRequired[Annotated[str | None, Field(description="RFC 3339 UTC")]]
    line: NotRequired[str]


class ChangeRowView(TypedDict):
    """A row: a line, or one package of it. `before` and `after` are facts of the line; what a set does not change is not named."""

    iccid: str
    state: RowState
    before: dict[str, JsonValue]
    after: dict[str, JsonValue]
    calls: Annotated[list[str], Field(description="The operations that do it, in their order")]
    undoable: bool
    cost: NotRequired[Annotated[Amount | None, Field(description="What the network takes; absent: nothing; null: nobody can say")]]
    lost: NotRequired[LostThing]
    code: NotRequired[str]
    reason: NotRequired[Annotated[str, Field(description="Why it was skipped, or failed")]]


class SetPlanner(TypedDict):
    """Who planned a set, or stopped it."""

    person: Annotated[str, Field(description="usr_..., or whoever runs the service")]
    credential: Annotated[str | None, Field(description="key_ of a key, gnt_ of a login; null: signed in at our own pages")]


class StopReason(TypedDict):
    """Why rows were not sent."""

    code: str
    error: str
    cancelled_by: NotRequired[Annotated[SetPlanner, Field(description="Who called cancel_change_set")]]


class ChangeSetView(TypedDict):
    """A change set. Times are RFC 3339 UTC."""

    id: str
    object: Literal["change_set"]
    state: SetState
    action: ActionWord
    change: dict[str, JsonValue]
    undo_of: NotRequired[Annotated[str, Field(description="The set whose rows this one takes back")]]
    planned_by: Annotated[SetPlanner, Field(description="Its rows are sent with their rights and limits")]
    created: str
    expires: Annotated[str | None, Field(description="Until when it can be applied; null: not planned yet")]
    digest: Annotated[str | None, Field(description="For apply_changes: over every row as it stands; null while it is planned")]
    counts: RowCounts
    money: PlanMoney
    cannot_be_undone: Annotated[int, Field(description="Rows that undo_changes cannot take back wholly")]
    seconds: Annotated[int, Field(description="About how long the sending takes, or still takes")]
    asks_for_confirmation: bool
    stopped: NotRequired[StopReason]
    finished: NotRequired[str]


class ChangeSetPage(ChangeSetView):
    """A change set with some of its rows."""

    rows: list[ChangeRowView]


def set_state(row: ChangeSet, now: float) -> SetState:
    """The state at `now`, Unix seconds: a plan that is too old has expired, whether or not anybody has noted it."""
    return "expired" if row.state == "planned" and row.expires_at <= now else cast(SetState, row.state)


def cents(amount: int) -> Amount:
    return {"amount": amount, "currency": NETWORK_CURRENCY}


def told_cost(cost: int, largest: int) -> Amount | None:
    """What the network takes, where that can be said of every row. `largest`: of one row."""
    return None if largest >= UNBOUNDED_COST else cents(cost)


def render_set(row: ChangeSet, now: float, pace: float) -> ChangeSetView:
    """The set as it is told. `pace`: rows a second."""
    state = set_state(row, now)
    left = max(0, row.planned - row.sent - row.not_sent) if state in ("planned", "applying") else 0
    view: ChangeSetView = {
        "id": row.id,
        "object": "change_set",
        "state": state,
        "action": cast(ActionWord, row.action),
        "change": cast("dict[str, JsonValue]", orjson.loads(row.change)),
        "planned_by": {"person": row.principal, "credential": row.credential or None},
        "created": rfc3339_utc(row.created),
        "expires": rfc3339_utc(row.expires_at) if row.expires_at else None,
        "digest": None if state == "planning" else row.digest,
        "counts": {
            "lines": row.line_count,
            "lines_read": row.position,
            "planned": row.planned,
            "skipped": row.skipped,
            "done": row.done,
            "failed": row.failed,
            "unknown": row.unknown,
            "not_sent": row.not_sent,
        },
        "money": {"network": told_cost(row.cost, row.largest_cost), "income": cents(0)},
        "cannot_be_undone": row.irreversible,
        "seconds": math.ceil(left / pace) if pace else 0,
        "asks_for_confirmation": asks_for_confirmation(row),
    }
    if row.undo_of:
        view["undo_of"] = row.undo_of
    if row.stop and (row.not_sent or state in ("applying", "cancelled")):
        view["stopped"] = cast(StopReason, orjson.loads(row.stop))
    if row.finished_at:
        view["finished"] = rfc3339_utc(row.finished_at)
    return view


CONFIRMED_ACTIONS = frozenset({"delete_packages", "end_of_life"})
CONFIRMED_UNDOS = frozenset({"assign_package", "assign_series"})
"""Undone by deleting the package, which asks for a confirmation by itself."""


def asks_for_confirmation(row: ChangeSet) -> bool:
    """Whether apply_changes asks first: where the operation of a row does, and where a row cannot be undone."""
    return row.irreversible > 0 or row.action in (CONFIRMED_UNDOS if row.undo_of else CONFIRMED_ACTIONS)


def render_row(row: ChangeRow) -> ChangeRowView:
    steps = cast("list[tuple[str, dict[str, JsonValue]]]", orjson.loads(row.steps))
    view: ChangeRowView = {
        "iccid": row.iccid,
        "state": cast(RowState, row.state),
        "before": cast("dict[str, JsonValue]", values_of(row.before)),
        "after": cast("dict[str, JsonValue]", values_of(row.after)),
        "calls": [operation for operation, _ in steps],
        "undoable": not row.irreversible,
    }
    if row.cost:
        view["cost"] = told_cost(row.cost, row.cost)
    lost = values_of(row.result).get("lost")
    if lost is not None:
        view["lost"] = cast(LostThing, lost)
    if row.code:
        view["code"], view["reason"] = row.code, row.reason
    return view


def render_page(row: ChangeSet, rows: Sequence[ChangeRow], now: float, pace: float) -> ChangeSetPage:
    return {**render_set(row, now, pace), "rows": [render_row(each) for each in rows]}
