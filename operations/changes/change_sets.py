"""Change sets: how far they are, which there are, and stopping one."""

from collections.abc import AsyncGenerator
from typing import Annotated, Literal

import anyio
import orjson
from pydantic import Field

from operations.changes.change_plans import PLAN_EXAMPLE, SET_ID_EXAMPLE, UPSTREAM_ROWS_A_SECOND, change_set_not_found, require_own_set
from operations.changes.plans.sheet import table_heading, table_rows
from operations.changes.plans.views import ChangeSetPage, ChangeSetView, SetPlanner, render_page, render_set
from operations.deps import Ctx, Deps
from operations.upstream.paging import cursor_value
from operations.vocabulary import ListOf, ListPage, list_page
from registry.clock import seconds_left
from registry.errors import Conflict, NotFound
from registry.operation import CamelInput, Document, Example, Scope, SpendKind, StreamedAnswer, operation
from storage.change_rows import SetPage, cancel_set, list_rows, set_with_rows
from storage.change_sets import ChangeSet, find_change_set, list_own_sets, list_sets
from storage.engine.sql import Connection

SET_LOOK_SECONDS = 0.25
WORKING_STATES = ("planning", "applying")
ROWS_A_PIECE = 1000
LARGEST_ROW_NUMBER = (1 << 31) - 1
SET_CANCELLED = "The change set was cancelled before this was sent."
"""Of a set and of its rows: what was sent before stays."""
FINISHED_EXAMPLE: ChangeSetView = {
    **{name: value for name, value in PLAN_EXAMPLE.items() if name != "rows"},  # pyright: ignore[reportAssignmentType]  # the members of a set
    "state": "applied",
    "counts": {"lines": 1, "lines_read": 1, "planned": 1, "skipped": 0, "done": 1, "failed": 0, "unknown": 0, "not_sent": 0},
    "seconds": 0,
    "finished": "2027-01-15T09:42:00Z",
}


class ChangeSetQuery(CamelInput):
    """Which set, and which of its rows."""

    id: Annotated[str, Field(max_length=64, description="The set, chg_...")]
    rows: Annotated[
        Literal["all", "planned", "skipped", "done", "failed", "unknown"],
        Field(description="Which rows; failed also holds those whose outcome is unknown and those that were not sent."),
    ] = "all"
    wait_seconds: Annotated[int, Field(ge=0, le=25, description="Waits so long for it to be planned or finished.")] = 0
    limit: Annotated[int, Field(ge=1, le=1000, description="Rows per page, 1-1000.")] = 100
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=20, description="`next` of the page before.")] = None
    format: Annotated[Literal["json", "csv"], Field(description="csv: all these rows as a table, over HTTP and at the shell.")] = "json"


async def credential_in_view(ctx: Ctx, params: object) -> str:
    """The credential whose sets alone may be seen, '' for those of all: one that may see some lines would see others in their rows."""
    del params
    held = ctx.row_bounds()
    return "" if (held.iccids, held.account_ids, held.tags) == (None, None, None) else ctx.caller.key_id


@operation(
    "GET",
    "/v1/changes/{id}",
    title="Get change set",
    bounded=True,
    access=credential_in_view,
    raises=[NotFound],
    examples=[Example("How far is it?", {"id": SET_ID_EXAMPLE, "rows": "failed"}, {**FINISHED_EXAMPLE, "rows": []})],
    tool_defaults={"limit": 20},
)
async def get_change_set(ctx: Ctx, params: ChangeSetQuery, own: str) -> ChangeSetPage | Annotated[Document, "text/csv"] | StreamedAnswer:
    """Get a change set: how far it is, and what came of each row.

    `rows` chooses which rows; `waitSeconds` waits while it is read or sent.

    States: `planning` (its lines are being read), `planned`, `applying`, `applied`, `partly_applied` (some rows failed or were not sent),
    `cancelled`, `expired`. A row that is `unknown` was sent, and no answer came: it is never sent again, its line is looked at until it is
    known. `format` csv answers with a table of all the rows.
    """
    page = await read_set(ctx, params, own)
    if params.format == "csv":
        return StreamedAnswer(table_pieces(ctx.deps, params), media_type="text/csv; charset=utf-8")
    if len(page.rows) > params.limit:
        ctx.next_cursor = str(page.rows[params.limit - 1].number)
        ctx.note = f"{params.limit} rows, more follow."
    return render_page(page.change_set, page.rows[: params.limit], ctx.deps.clock.now(), UPSTREAM_ROWS_A_SECOND)


async def read_set(ctx: Ctx, params: ChangeSetQuery, own: str) -> SetPage:
    """The set with its rows, after what may be waited for. Raises NotFound, and BadRequest for what is no cursor."""
    ends = ctx.deps.clock.monotonic() + seconds_left(float(params.wait_seconds))
    after = row_cursor(params)
    while True:
        page = await ctx.deps.store.read(
            set_with_rows, change_set=params.id, organisation=ctx.organisation, which=params.rows, after=after, most=params.limit + 1
        )
        if page is None or own not in ("", page.change_set.credential):
            raise change_set_not_found()
        if page.change_set.state not in WORKING_STATES or ctx.deps.clock.monotonic() >= ends:
            return page
        await anyio.sleep(SET_LOOK_SECONDS)


def row_cursor(params: ChangeSetQuery) -> int:
    """The number of the row behind which the page begins. Raises BadRequest."""
    return min(cursor_value(params.starting_after or "0"), LARGEST_ROW_NUMBER)


async def table_pieces(deps: Deps, params: ChangeSetQuery) -> AsyncGenerator[bytes]:
    """The table of the set's rows, as they are read."""
    yield table_heading()
    after = row_cursor(params)
    while rows := await deps.store.read(list_rows, change_set=params.id, which=params.rows, after=after, most=ROWS_A_PIECE):
        yield table_rows(rows)
        after = rows[-1].number


@operation(
    "GET",
    "/v1/changes",
    title="List change sets",
    bounded=True,
    access=credential_in_view,
    examples=[Example("Which are there?", {}, {"object": "list", "data": [FINISHED_EXAMPLE], "has_more": False})],
    tool_defaults={"limit": 10},
)
async def list_change_sets(ctx: Ctx, params: ListPage, own: str) -> ListOf[ChangeSetView]:
    """List the change sets of your organisation, newest first, without their rows.

    They are kept for 90 days. A credential that may see some lines alone sees its own.
    """
    after, most, store = params.starting_after, params.limit + 1, ctx.deps.store
    if own:
        found = await store.read(list_own_sets, organisation=ctx.organisation, credential=own, after=after, most=most)
    else:
        found = await store.read(list_sets, organisation=ctx.organisation, after=after, most=most)
    now = ctx.deps.clock.now()
    return list_page([render_set(row, now, UPSTREAM_ROWS_A_SECOND) for row in found], params.limit)


class ChangeSetRef(CamelInput):
    """Which set."""

    id: Annotated[str, Field(max_length=64, description="The set, chg_...")]


async def set_to_cancel(ctx: Ctx, params: ChangeSetRef) -> ChangeSet:
    """The set, before any stored answer is told. Raises NotFound, and Restricted as `require_own_set`."""
    own = await credential_in_view(ctx, params)
    found = await ctx.deps.store.read(find_change_set, change_set=params.id, organisation=ctx.organisation)
    if found is None or own not in ("", found.credential):
        raise change_set_not_found()
    require_own_set(ctx, found, "cancel")
    return found


@operation(
    "POST",
    "/v1/changes/{id}/cancel",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    waits=False,
    bounded=True,
    title="Cancel change set",
    access=set_to_cancel,
    raises=[NotFound, Conflict],
    examples=[Example("Stop it", {"id": SET_ID_EXAMPLE}, {**FINISHED_EXAMPLE, "state": "cancelled"})],
)
async def cancel_change_set(ctx: Ctx, params: ChangeSetRef, found: ChangeSet) -> ChangeSetView:
    """Stop a change set: rows that were not sent yet are not sent.

    What was sent stays; undo_changes takes it back. A plan that is not applied is given up.
    """

    caller: SetPlanner = {"person": ctx.principal, "credential": ctx.caller.key_id or None}

    def cancel(connection: Connection, *, now: float) -> ChangeSetView:
        """Choice: a set that was cancelled answers as before, so that a call that was lost can be repeated."""
        stop = orjson.dumps({"code": "cancelled", "error": SET_CANCELLED, "cancelled_by": caller}).decode()
        row = cancel_set(connection, change_set=found.id, organisation=ctx.organisation, stop=stop, now=now)
        if row is None:
            raise change_set_not_found()
        if row.state in ("applied", "partly_applied", "expired"):
            raise Conflict(
                f"This set is {row.state}, so there is nothing left to stop",
                param="id",
                hint="undo_changes plans the way back from what it changed",
            )
        return render_set(row, now, UPSTREAM_ROWS_A_SECOND)

    answer = await ctx.settle_result(cancel, now=ctx.now)
    ctx.deps.wake_worker()
    return answer
