"""What is left of the day's AI calls."""

from typing import Annotated

from pydantic import Field

from operations.assistant.allowance import Allowance, read_allowance
from operations.deps import Ctx
from registry.model import Nothing
from registry.operation import Example, operation


class Standing(Allowance):
    """Whether there is a model, and how often it may still be asked."""

    available: Annotated[bool, Field(description="Whether this deployment has a language model at all")]


EXAMPLE = {"available": True, "limit": 200, "used": 3, "remaining": 197, "resets_at": "2027-01-16T00:00:00Z"}


@operation("GET", "/v1/ai/quota", title="Get AI allowance", charged=False, examples=[Example("What is left today", {}, EXAMPLE)])
async def ai_quota(ctx: Ctx, params: Nothing) -> Standing:
    """Read how many AI calls are left today, without using one.

    `available` tells whether a model is connected; `remaining` what your tier still allows. The two are separate: either may be missing.
    """
    del params
    return {"available": ctx.deps.model is not None, **await read_allowance(ctx)}
