"""The ledger of the caller's issuances: which eSIMs were asked for, what became of each, and which wait for a person."""

from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.ledger.evidence import obstacle_reason
from operations.ledger.issuance_targets import FULFIL_ORDER
from operations.ledger.reconciliation import ISSUANCE_PATIENCE_SECONDS
from operations.ledger.settlements import is_unresolved, unknown_since
from operations.subscribers.inventory import EXAMPLE_ISSUANCE_KEY
from operations.vocabulary import Iccid, ListOf, PageLimit, list_page
from registry.clock import rfc3339_utc
from registry.errors import BadRequest
from registry.operation import Example, Input, operation
from registry.policy import KEY_SPELLING_LIMIT
from storage.engine.sql import Connection, runs_in_thread
from storage.issuance import IssuanceRow, IssuanceState, find_issuance
from storage.issuance_lists import (
    ISSUANCE_STATES,
    LEDGER_BEGIN,
    IssuancePlace,
    LedgerBounds,
    LedgerFilter,
    issuance_place,
    list_ledger,
    rows_in_view,
)


class IssuancesQuery(Input):
    """Which issuances."""

    state: Annotated[IssuanceState | None, Field(description="Only these.")] = None
    iccid: Annotated[Iccid | None, Field(description="Only those that drew this eSIM, also what was taken back since.")] = None
    limit: PageLimit = 20
    starting_after: Annotated[
        str | None, Field(max_length=KEY_SPELLING_LIMIT, description="`idempotency_key` of the last one of the page before.")
    ] = None


class IssuanceError(TypedDict):
    """Why it drew no eSIM, or why nobody knows. `code` is a class for programs, `message` for people."""

    code: Annotated[str, Field(description="no_inventory, issuance_failed, settled_by_person; not_looked_into, several_lines and so on")]
    message: str


class ListedIssuance(TypedDict):
    """One eSIM that was asked for, under one key for ever. Times are RFC 3339 UTC."""

    idempotency_key: Annotated[str, Field(description="An intent's id, an order's number, or the key of issue_esim_from_inventory")]
    object: Literal["issuance"]
    state: IssuanceState
    iccid: Annotated[str | None, Field(description="The eSIM that was drawn, also after it was taken back")]
    account_id: int
    package_template_id: int
    package_id: int | None
    intent: Annotated[str | None, Field(description="The intent that asked for it, cni_...")]
    order: Annotated[str | None, Field(description="The order of a shop that asked for it, onr_...")]
    error: IssuanceError | None
    settle_from: Annotated[
        str | None, Field(description="From when on an admin can settle it with settle_issuance; null: there is nothing to settle")
    ]
    created_at: Annotated[str, Field(description="When it was sent to the charging system")]
    updated_at: Annotated[str, Field(description="When its state last changed")]


SETTLED_NOTE = "settled by "
FAILURES: dict[str, IssuanceError] = {
    "nothing drawn": {"code": "issuance_failed", "message": "It was found out that no eSIM was drawn"},
    "never sent": {"code": "never_sent", "message": "The call never left, so no eSIM was drawn"},
    "no_inventory": {"code": "no_inventory", "message": "The account had no free eSIM"},
    "subscriber_end_of_life": {"code": "subscriber_end_of_life", "message": "The eSIM that was to be drawn had ended for good"},
    "issuance_failed": {"code": "issuance_failed", "message": "The charging system refused, and drew no eSIM"},
}
"""By the note of a row that failed."""
ROLLBACK_UNKNOWN: IssuanceError = {
    "code": "rollback_unproven",
    "message": "What was sent to take the eSIM back had no answer that proves anything; whoever runs the service settles it",
}
ISSUANCE_LIST_EXAMPLE: ListedIssuance = {
    "idempotency_key": EXAMPLE_ISSUANCE_KEY,
    "object": "issuance",
    "state": "manual_reconciliation_required",
    "iccid": None,
    "account_id": 8101,
    "package_template_id": 55010,
    "package_id": None,
    "intent": None,
    "order": None,
    "error": {"code": "several_lines", "message": "more than one line of the account shows this draw"},
    "settle_from": "2026-11-21T09:00:00Z",
    "created_at": "2026-11-20T09:00:00Z",
    "updated_at": "2026-11-21T09:00:10Z",
}


def describe_failure(note: str) -> IssuanceError:
    """Why nothing was drawn, by the note of the row: a class, never the words of whoever settled it, which the audit log has."""
    if note.startswith(SETTLED_NOTE):
        return {"code": "settled_by_person", "message": "A person looked, and said that no eSIM was drawn"}
    return FAILURES.get(note, {"code": note, "message": f"It was refused with {note}, and no eSIM was drawn"})


def describe_issuance_error(row: IssuanceRow) -> IssuanceError | None:
    if row.state == "failed":
        return describe_failure(row.note or "issuance_failed")
    if is_unresolved(row):
        return {"code": row.obstacle or "not_looked_into", "message": obstacle_reason(row.obstacle)}
    return ROLLBACK_UNKNOWN if row.state == "rollback_unknown" else None


def render_listed_issuance(row: IssuanceRow) -> ListedIssuance:
    return {
        "idempotency_key": row.key,
        "object": "issuance",
        "state": cast(IssuanceState, row.state),
        "iccid": row.iccid,
        "account_id": row.account_id,
        "package_template_id": row.template_id,
        "package_id": row.package_id,
        "intent": row.intent,
        "order": row.key if row.operation == FULFIL_ORDER else None,
        "error": describe_issuance_error(row),
        "settle_from": rfc3339_utc(unknown_since(row) + ISSUANCE_PATIENCE_SECONDS) if is_unresolved(row) else None,
        "created_at": rfc3339_utc(row.dispatched),
        "updated_at": rfc3339_utc(row.updated),
    }


async def ledger_in_view(ctx: Ctx, params: IssuancesQuery) -> LedgerBounds:
    """What the credential may see of the ledger, of the eSIM that was asked for if one was."""
    held = ctx.row_bounds()
    return LedgerBounds(held.iccids if params.iccid is None else (params.iccid,), held.account_ids, held.tags)


@operation(
    "GET",
    "/v1/issuances",
    bounded=True,
    access=ledger_in_view,
    title="List issuances",
    raises=[BadRequest],
    examples=[
        Example(
            "Which eSIMs wait for a person?",
            {"state": "manual_reconciliation_required"},
            {"object": "list", "data": [ISSUANCE_LIST_EXAMPLE], "has_more": False},
        )
    ],
)
async def list_issuances(ctx: Ctx, params: IssuancesQuery, bounds: LedgerBounds) -> ListOf[ListedIssuance]:
    """List the eSIMs that were asked for, and what became of each; newest first.

    By `state` or `iccid`. An admin settles in the console what nobody knows; rollback_esim_issuance takes an eSIM back.

    One row for each key of issue_esim_from_inventory, each live intent and each order of a shop, without what installs an eSIM. Unknown
    outcomes are `outcome_unknown` while the worker looks, and `manual_reconciliation_required` once it has given up; test intents draw
    nothing and have no row. A key for named lines, tags or accounts sees what drew one of these lines, or was drawn from these accounts.
    """
    organisation, last = ctx.organisation, params.starting_after

    @runs_in_thread  # many lines may have a tag
    def find(connection: Connection) -> list[IssuanceRow]:
        behind = LEDGER_BEGIN if last is None else behind_last_issuance(connection, organisation, last, bounds)
        states = ISSUANCE_STATES if params.state is None else (params.state,)
        asked = LedgerFilter(states, bounds, behind)
        return list_ledger(connection, organisation=organisation, asked=asked, most=params.limit + 1)

    return list_page([render_listed_issuance(row) for row in await ctx.deps.store.read(find)], params.limit)


def behind_last_issuance(connection: Connection, organisation: str, key: str, bounds: LedgerBounds) -> IssuancePlace:
    """The place of the last row that was seen. Raises BadRequest where the caller sees no such row."""
    last = find_issuance(connection, organisation=organisation, key=key)
    if last is None or not rows_in_view(connection, organisation=organisation, rows=[last], bounds=bounds):
        raise BadRequest(
            "starting_after: none of the issuances that you see has this key",
            param="starting_after",
            hint="Give the `idempotency_key` of the last issuance of the page before, or leave it out for the newest",
        )
    return issuance_place(last)
