"""How many AI calls the organisation has left today."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.clock import rfc3339_utc
from registry.errors import QuotaExceeded
from registry.operation import Example, Nothing, operation
from registry.policy import quota_exceeded, quota_period
from storage.quota import charge_ai_call, count_ai_calls


class Allowance(TypedDict):
    """The organisation's AI calls of one UTC day. They are counted apart from its other calls."""

    limit: Annotated[int, Field(description="AI calls a UTC day that the tier allows")]
    used: Annotated[int, Field(description="Used since midnight UTC")]
    remaining: Annotated[int, Field(description="Left until then")]
    resets_at: Annotated[str, Field(description="The next midnight UTC, RFC 3339")]


def _daily_ai_calls(ctx: Ctx) -> int:
    return ctx.deps.rate_limiter.limits.tiers[ctx.caller.tier].ai_calls_per_day


def _allowance_after(ctx: Ctx, used: int) -> Allowance:
    """The allowance after so many calls. A tier that was left may have allowed more than this one."""
    limit = _daily_ai_calls(ctx)
    return {"limit": limit, "used": used, "remaining": max(0, limit - used), "resets_at": rfc3339_utc(quota_period(ctx.now).reset)}


async def read_ai_allowance(ctx: Ctx) -> Allowance:
    """The AI calls of today so far; none is used."""
    return _allowance_after(ctx, await ctx.deps.store.read(count_ai_calls, owner=ctx.caller.owner, period=quota_period(ctx.now).name))


async def reserve_ai_call(ctx: Ctx) -> Allowance | None:
    """Counts one AI call, committed before the model is asked, and returns what is left; None, and nothing counted, without one left."""
    used = await ctx.deps.store.write(charge_ai_call, owner=ctx.caller.owner, period=quota_period(ctx.now).name, limit=_daily_ai_calls(ctx))
    return None if used is None else _allowance_after(ctx, used)


def ai_calls_used_up(ctx: Ctx, allowance: Allowance) -> QuotaExceeded:
    text = f"The daily allowance of {allowance['limit']} AI calls is used up; it starts again at {allowance['resets_at']}"
    hint = "Every other operation works on; ai_quota tells what is left"
    limit, used, period = allowance["limit"], allowance["used"], quota_period(ctx.now)
    return quota_exceeded(text, limit=limit, used=used, period=period, site=ctx.deps.site, now=ctx.now, hint=hint)


class Standing(Allowance):
    """Whether there is a model, and how often it may still be asked."""

    available: Annotated[bool, Field(description="Whether this deployment has a language model at all")]


_AI_QUOTA_EXAMPLE = {"available": True, "limit": 200, "used": 3, "remaining": 197, "resets_at": "2027-01-16T00:00:00Z"}


@operation("GET", "/v1/ai/quota", title="Get AI allowance", charged=False, examples=[Example("What is left today", {}, _AI_QUOTA_EXAMPLE)])
async def ai_quota(ctx: Ctx, params: Nothing) -> Standing:
    """Read how many AI calls are left today, without using one.

    `available` tells whether a model is connected; `remaining` what your tier still allows. The two are separate: either may be missing.
    """
    del params
    return {"available": ctx.deps.model is not None, **await read_ai_allowance(ctx)}
