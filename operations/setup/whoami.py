"""Who the caller is, for the caller."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.setup.credentials.limit_use import LimitUse, read_limit_use, restriction_words
from registry.caller import Caller, CallerKind
from registry.clock import rfc3339_utc
from registry.free_text import FreeText
from registry.operation import Example, Nothing, Scope, operation
from registry.policy import quota_period

WORDS_SHOWN, LIMITS_SHOWN = 6, 4
SCOPE_WORDS = ((Scope.READ, "read"), (Scope.WRITE, "write"), (Scope.ADMIN, "admin"))


class CallsLeft(TypedDict):
    """The daily quota, which all credentials of `of` share; the day is a UTC day."""

    of: Annotated[Literal["organisation", "person"], Field(description="Whose quota it is; a limit of this credential is in `limits`")]
    used: int
    left: int
    starts_again: str


class LimitLeft(TypedDict):
    """What is left of a limit of this credential: minor units of a currency, or calls."""

    limit: str
    unit: str
    left: int


class Identity(TypedDict):
    """A credential, and what it may do now."""

    credential: str
    kind: CallerKind
    organisation: str | None
    organisation_name: FreeText | None
    tier: str
    role: str
    scopes: list[str]
    connected: Annotated[bool, Field(description="The organisation has an account at the charging system")]
    calls: CallsLeft | None
    limits: Annotated[list[LimitLeft], Field(description="The four with the least left; explain_key has all")]
    restrictions: Annotated[list[str], Field(description="The first six; explain_key has all")]
    may_not: list[str]


def refused_acts(caller: Caller) -> list[str]:
    """What the credential is always refused, in words."""
    found = [] if caller.organisation else ["act for an organisation: it belongs to none"]
    if not caller.has(Scope.ANY):
        return [*found, "change anything"]
    if not caller.has(Scope.WRITE):
        found.append("write: live eSIMs, packages and money need the tier pro")
    elif not caller.has(Scope.ADMIN):
        found.append("do what needs admin access")
    if caller.restricted:
        found.append("change anybody's access but its own")
    return found


async def own_bounds(ctx: Ctx, params: Nothing) -> None:
    """What is shown is about the credential alone."""
    del params
    ctx.row_bounds()


@operation(
    "GET",
    "/v1/whoami",
    organisation=False,
    bounded=True,
    access=own_bounds,
    title="Who am I",
    examples=[
        Example(
            "What may this key do?",
            {},
            {
                "credential": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
                "kind": "key",
                "organisation": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
                "organisation_name": "Fjord Mobile",
                "tier": "pro",
                "role": "member",
                "scopes": ["read", "write"],
                "connected": True,
                "calls": {"of": "organisation", "used": 120, "left": 99880, "starts_again": "2026-11-21T00:00:00Z"},
                "limits": [{"limit": "spend_per_day", "unit": "EUR", "left": 2800}],
                "restrictions": ["at most 40.00 EUR a UTC day"],
                "may_not": ["do what needs admin access", "change anybody's access but its own"],
            },
        )
    ],
)
async def whoami(ctx: Ctx, _params: Nothing, _granted: None) -> Identity:
    """Say who you are: organisation, tier, scopes, restrictions, what is left today.

    Any credential may ask, whatever it is restricted to. explain_key says more about a key: every limit, and its worst case.
    """
    caller, usage = ctx.caller, ctx.call.usage
    used = await ctx.deps.store.read(read_limit_use, caller=caller, now=ctx.now)
    words = restriction_words(caller.restrictions)
    return {
        "credential": caller.key_id,
        "kind": caller.kind,
        "organisation": caller.organisation or None,
        "organisation_name": caller.organisation_name or None,
        "tier": caller.tier.value,
        "role": caller.role.value,
        "scopes": [word for scope, word in SCOPE_WORDS if caller.has(scope)],
        "connected": caller.connection is not None,
        "calls": None
        if usage is None
        else {
            "of": "organisation" if caller.organisation else "person",
            "used": usage.used,
            "left": usage.limit - usage.used,
            "starts_again": rfc3339_utc(quota_period(ctx.now).reset),
        },
        "limits": [limit_left(each) for each in sorted(used, key=share_left)[:LIMITS_SHOWN]],
        "restrictions": words[:WORDS_SHOWN],
        "may_not": refused_acts(caller),
    }


def share_left(use: LimitUse) -> float:
    return use["left"] / use["most"] if use["most"] else 0.0


def limit_left(use: LimitUse) -> LimitLeft:
    return {"limit": use["limit"], "unit": use["unit"], "left": use["left"]}
