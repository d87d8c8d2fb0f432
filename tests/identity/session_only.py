"""An operation that takes signed-in sessions only, and one that tells who calls."""

from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.operation import Auth, Nothing, Scope, operation


class Who(TypedDict):
    """The caller."""

    kind: str
    principal: str
    organisation: str


@operation("GET", "/v1/who", organisation=False)
async def who_am_i(ctx: Ctx, params: Nothing) -> Who:
    """Tell who calls."""
    return {"kind": ctx.caller.kind, "principal": ctx.caller.principal, "organisation": ctx.organisation}


@operation("GET", "/v1/mine")
async def who_are_we(ctx: Ctx, params: Nothing) -> Who:
    """Tell for which organisation the caller acts."""
    return {"kind": ctx.caller.kind, "principal": ctx.caller.principal, "organisation": ctx.organisation}


@operation("POST", "/v1/in-person", auth=Auth.SESSION, scope=Scope.ANY)
async def in_person(ctx: Ctx, params: Nothing) -> Who:
    """Do what only a signed-in person may do."""
    return await ctx.settle({"kind": ctx.caller.kind, "principal": ctx.caller.principal, "organisation": ctx.organisation})
