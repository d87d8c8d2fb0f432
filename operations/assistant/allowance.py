"""How often the organisation may still ask the language model today."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.errors import QuotaExceeded
from registry.policy import period_of, stamp
from storage.calls.ai_allowance import reserve, reserved


class Allowance(TypedDict):
    """The organisation's AI calls of one UTC day. They are counted apart from its other calls."""

    limit: Annotated[int, Field(description="AI calls a UTC day that the tier allows")]
    used: Annotated[int, Field(description="Used since midnight UTC")]
    remaining: Annotated[int, Field(description="Left until then")]
    resets_at: Annotated[str, Field(description="The next midnight UTC, RFC 3339")]


def daily(ctx: Ctx) -> int:
    """What the tier allows."""
    return ctx.deps.pace.limits.tiers[ctx.caller.tier].ai_calls_per_day


def shown(ctx: Ctx, used: int) -> Allowance:
    """The allowance after so many calls. A tier that was left may have allowed more than this one."""
    limit = daily(ctx)
    return {"limit": limit, "used": used, "remaining": max(0, limit - used), "resets_at": stamp(period_of(ctx.now).reset)}


async def read_allowance(ctx: Ctx) -> Allowance:
    """Where it stands; nothing is used."""
    return shown(ctx, await ctx.deps.store.read(reserved, owner=ctx.caller.owner, period=period_of(ctx.now).name))


async def reserve_call(ctx: Ctx) -> Allowance | None:
    """One call, kept whatever becomes of it; None when none is left. Committed before the model hears of anything."""
    used = await ctx.deps.store.write(reserve, owner=ctx.caller.owner, period=period_of(ctx.now).name, limit=daily(ctx))
    return None if used is None else shown(ctx, used)


def over_allowance(ctx: Ctx, allowance: Allowance) -> QuotaExceeded:
    """There is none left."""
    return QuotaExceeded(
        f"The daily allowance of {allowance['limit']} AI calls is used up; it starts again at {allowance['resets_at']}",
        limit=allowance["limit"],
        used=allowance["used"],
        reset_at=allowance["resets_at"],
        retry_after=int(period_of(ctx.now).reset - ctx.now) + 1,
        upgrade_url=ctx.deps.site.upgrade_url,
        hint="Every other operation works on; ai_quota tells what is left",
    )
