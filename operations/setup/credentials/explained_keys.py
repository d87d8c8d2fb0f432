"""What a key may do, what it has used, and the most that it could do."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.setup.credentials.limit_use import LimitUse, read_limit_use, restriction_words
from operations.setup.credentials.restrictions import ShownRestrictions, shown_restrictions
from operations.setup.credentials.worst_case import WorstCase, worst_case
from registry.caller import EVERY_TOOL, Caller, CallerKind
from registry.errors import NotFound, Restricted
from registry.operation import Example, Input, operation
from storage.api_keys import find_key_row, read_restrictions
from storage.directory import caller_of, find_member, restricted_caller
from storage.engine.sql import Connection


class KeyToExplain(Input):
    """Which key; without one, the credential that asks."""

    id: Annotated[str | None, Field(max_length=64, description="Key id, key_...; absent: the credential that you use.")] = None


class ExplainedKey(TypedDict):
    """A credential: what it is held to, what it has used of its limits, and the most that it can do in a UTC day."""

    id: str
    kind: CallerKind
    restrictions: ShownRestrictions | None
    in_words: Annotated[list[str], Field(description="Each restriction as a phrase; empty: none")]
    used: list[LimitUse]
    worst_case: WorstCase


def key_of_organisation(connection: Connection, *, key: str, caller: Caller) -> Caller | None:
    """The key with this id as a caller, where `caller` has made it or may do all that an admin may; else None."""
    row = find_key_row(connection, key=key)
    if row is None or (row.organisation_id or "") != caller.organisation:
        return None
    if row.person_id != caller.principal and (not caller.is_admin or caller.restricted):
        return None
    member = find_member(connection, person=row.person_id, organisation=caller.organisation)
    return restricted_caller(caller_of("key", row.person_id, member, row.id), read_restrictions(row.restrictions))


async def explained_caller(ctx: Ctx, params: KeyToExplain) -> Caller:
    """The credential to explain. Raises NotFound for one that is not the caller's to see, Restricted for any but its own where its
    toolsets do not hold this operation."""
    held = ctx.row_bounds()
    if params.id is None or params.id == ctx.caller.key_id:
        return ctx.caller
    toolset = ctx.deps.internal_calls.pipeline.catalogue.toolset_of["explain_key"]
    if held.toolsets is not None and not {toolset, EVERY_TOOL} & set(held.toolsets):
        raise Restricted(
            f"id: this credential is restricted to the toolsets {', '.join(held.toolsets) or 'none'}, so it is told of itself alone",
            param="id",
            hint="Leave id out to explain the credential that you use",
        )
    found = await ctx.deps.store.read(key_of_organisation, key=params.id, caller=ctx.caller)
    if found is None:
        raise NotFound(
            "There is no key with this id that you have made, or may see as an admin", param="id", hint="list_api_keys names the keys"
        )
    return found


CAUTIOUS_KEY_EXAMPLE: ShownRestrictions = {
    "read_only": False,
    "no_admin": False,
    "toolsets": ["connectivity"],
    "iccids": None,
    "account_ids": None,
    "calls_per_day": 500,
    "tags": None,
    "spend_per_call": None,
    "spend_per_day": {"amount": 4000, "currency": "EUR"},
    "spend_per_month": None,
    "times": {"create_connectivity_intent": 12, "confirm_connectivity_intent": 0},
    "approve_above": None,
    "approval": "none",
    "another_person": False,
    "inherited": [],
}
EXPLAINED_EXAMPLE: ExplainedKey = {
    "id": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "kind": "key",
    "restrictions": CAUTIOUS_KEY_EXAMPLE,
    "in_words": [
        "only the toolsets connectivity",
        "500 calls a UTC day",
        "at most 40.00 EUR a UTC day",
        "create_connectivity_intent 12 times a UTC day",
        "confirm_connectivity_intent 0 times a UTC day",
    ],
    "used": [
        {
            "limit": "spend_per_day",
            "key": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
            "unit": "EUR",
            "most": 4000,
            "used": 900,
            "left": 3100,
            "starts_again": "2026-11-28T00:00:00Z",
        }
    ],
    "worst_case": {
        "sentence": "In a UTC day at most 500 calls, 12 lines, 40.00 EUR; 3 operations that cannot be undone: "
        "create_connectivity_usage_record, delete_connectivity_webhook_endpoint, rotate_webhook_secret",
        "calls": 500,
        "lines": 12,
        "money_a_day": {"amount": 4000, "currency": "EUR"},
        "money_a_month": {"amount": 124000, "currency": "EUR"},
        "cannot_be_undone": [
            {"operation": "create_connectivity_usage_record", "times": 500, "approval": False},
            {"operation": "delete_connectivity_webhook_endpoint", "times": 500, "approval": False},
            {"operation": "rotate_webhook_secret", "times": 500, "approval": False},
        ],
        "waits_for_approval": ["create_connectivity_webhook_endpoint"],
        "finite": True,
    },
}


@operation(
    "GET",
    "/v1/api-keys/explanation",
    organisation=False,
    bounded=True,
    access=explained_caller,
    title="Explain key",
    raises=[NotFound, Restricted],
    examples=[Example("What can this key do at worst?", {}, EXPLAINED_EXAMPLE)],
)
async def explain_key(ctx: Ctx, _params: KeyToExplain, explained: Caller) -> ExplainedKey:
    """Explain a key: its limits in words, what is used and left, and its worst case.

    Without `id` it explains the credential that asks, whatever that is restricted to. Makers see their keys, admins all.

    The worst case is worked out from what every operation declares and from the restrictions; it holds for keys made with this one, too,
    since those are counted together with it. Amounts are in minor units.
    """
    held = explained.restrictions
    return {
        "id": explained.key_id,
        "kind": explained.kind,
        "restrictions": shown_restrictions(held),
        "in_words": restriction_words(held),
        "used": await ctx.deps.store.read(read_limit_use, caller=explained, now=ctx.now),
        "worst_case": worst_case(ctx.deps.internal_calls.pipeline.catalogue, explained),
    }
