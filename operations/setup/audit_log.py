"""Who did what in the caller's organisation, and how it ended."""

import re
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.times import AuditTime
from operations.vocabulary import ListOf, PageLimit, StartingAfter, list_page, render_fields
from registry.call import Surface
from registry.caller import Role
from registry.clock import rfc3339_utc
from registry.errors import BadRequest
from registry.free_text import FreeText
from registry.operation import Example, Input, operation
from storage.audit import AUDIT_AHEAD_SECONDS, AuditFilter, AuditRow, list_audit

_AUDIT_ENTRY_ID = re.compile(r"aud_([0-9]{1,19})", re.ASCII)
AuditFilterWord = Annotated[str, Field(min_length=1, max_length=64)]


class AuditQuery(Input):
    """Which entries; every filter that is given must fit."""

    operation: Annotated[AuditFilterWord | None, Field(description="Only of this operation.")] = None
    principal: Annotated[AuditFilterWord | None, Field(description="Only of this person, usr_...")] = None
    key_id: Annotated[AuditFilterWord | None, Field(description="Only with this key, key_..., or login, gnt_....")] = None
    outcome: Annotated[AuditFilterWord | None, Field(description="Only what ended so: ok, replayed, or the code of a refusal.")] = None
    surface: Annotated[
        Surface | None, Field(description="Only what came this way; web: our own pages, assistant: its look-ups, schedule: its reports.")
    ] = None
    since: Annotated[AuditTime | None, Field(alias="from", description="From then on, RFC 3339.")] = None
    until: Annotated[AuditTime | None, Field(alias="to", description="Before then, RFC 3339.")] = None
    limit: PageLimit = 20
    starting_after: StartingAfter = None


class AuditEntry(TypedDict):
    """One call. `at` is RFC 3339 UTC; `key_id` the key or login (gnt_) that was presented; what was sent is not kept."""

    id: str
    object: Literal["audit_entry"]
    at: str
    principal: Annotated[str, Field(description="The person, or whoever runs the service")]
    principal_name: FreeText | None
    key_id: str | None
    operation: str
    outcome: Annotated[str, Field(description="ok, replayed, or the code of the refusal")]
    status: Annotated[int, Field(description="HTTP status")]
    surface: Surface
    milliseconds: float
    request_id: str
    change: Annotated[str | None, Field(description="What it changed of who gets money and SIMs, from what to what; else null")]


_AUDIT_ENTRY_EXAMPLE: AuditEntry = {
    "id": "aud_18241",
    "object": "audit_entry",
    "at": "2026-11-20T09:00:00Z",
    "principal": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "principal_name": "Ada Berg",
    "key_id": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "operation": "clean_all_packages",
    "outcome": "ok",
    "status": 200,
    "surface": "mcp",
    "milliseconds": 41.7,
    "request_id": "req_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "change": None,
}
_REFUSED_ENTRY_EXAMPLE: AuditEntry = {**_AUDIT_ENTRY_EXAMPLE, "outcome": "credential_restricted", "status": 403}


@operation(
    "GET",
    "/v1/audit-log",
    role=Role.ADMIN,
    title="List audit log",
    raises=[BadRequest],
    examples=[
        Example(
            "What was refused today?",
            {"outcome": "credential_restricted", "from": "2026-11-20T00:00:00Z"},
            {"object": "list", "data": [_REFUSED_ENTRY_EXAMPLE], "has_more": False},
        ),
        Example(
            "Who removed packages?",
            {"operation": "clean_all_packages"},
            {"object": "list", "data": [_AUDIT_ENTRY_EXAMPLE], "has_more": False},
        ),
        Example(
            "What did this key do last?",
            {"key_id": "key_01k0a8w7zv6q4k3m2n1p0r9s8t", "limit": 1},
            {"object": "list", "data": [_AUDIT_ENTRY_EXAMPLE], "has_more": False},
        ),
    ],
)
async def list_audit_log(ctx: Ctx, params: AuditQuery) -> ListOf[AuditEntry]:
    """List who called what in your organisation, newest first.

    For admins. Filters narrow it down; arguments are never kept. Kept for 90 days, or as the service's operator chose.

    Calls of every door are in it: HTTP, MCP, command line and our own pages (`web`), reads and refusals too. A call is in it as soon as it
    was answered; one that another process of a large deployment answered may take a second. Calls whose credential was not accepted are in
    nobody's log. What whoever runs the service changes from the command line (tier, members, keys) is in it as well.
    """
    await ctx.catch_up()
    wanted = AuditFilter(params.operation, params.principal, params.outcome, params.surface, key_id=params.key_id)
    wanted = wanted if params.since is None else wanted._replace(since=params.since)
    wanted = wanted._replace(until=ctx.now + AUDIT_AHEAD_SECONDS if params.until is None else params.until)
    after = None if params.starting_after is None else _audit_entry_number(params.starting_after)
    rows = await ctx.deps.store.read(list_audit, organisation=ctx.organisation, wanted=wanted, after=after, most=params.limit + 1)
    if rows is None:
        raise _no_such_entry()
    return list_page([_audit_entry(row) for row in rows], params.limit)


def _audit_entry_number(id: str) -> int:
    found = _AUDIT_ENTRY_ID.fullmatch(id)
    if found is None or int(found[1]) >= 1 << 63:
        raise _no_such_entry()
    return int(found[1])


def _no_such_entry() -> BadRequest:
    """What is no entry of this organisation's log, or has been forgotten meanwhile."""
    return BadRequest(
        "starting_after: not an entry of your log; ids are aud_ and digits", param="starting_after", hint="Send the last id of a page"
    )


def _audit_entry(row: AuditRow) -> AuditEntry:
    id, at = f"aud_{row.id}", rfc3339_utc(row.at)
    return render_fields(row, AuditEntry, id=id, object="audit_entry", at=at, principal_name=row.name, key_id=row.key_id or None)
