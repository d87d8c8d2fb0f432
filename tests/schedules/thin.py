"""A composite that finds what a test says, in the place of the real ones, which have rooms of their own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity import events, webhook_endpoints
from operations.deps import Ctx
from operations.intelligence import schedule_reports, schedules, shared_reports
from operations.intelligence.reports.sheet import Finding, Sheet, make_finding
from registry.catalogue import Catalogue, Toolset
from registry.errors import Refusal
from registry.operation import CamelInput, operation


async def nothing() -> None:
    """Takes no time."""


@dataclass(slots=True)
class Script:
    """What the composite does, and who called it."""

    before: Callable[[], Awaitable[None]] = nothing
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    """One for each run, in this order; then it finds something."""
    calls: list[tuple[str, str, int | None]] = field(default_factory=list[tuple[str, str, int | None]])


SCRIPT = Script()


class Which(CamelInput):
    """Of which account."""

    account_id: Annotated[int | None, Field(ge=1, description="An account.")] = None


class Lines(TypedDict):
    """What was found."""

    lines: int


@operation("POST", "/v1/intelligence/fleet-health", upstream=True, operator=True)
async def fleet_health(ctx: Ctx, params: Which) -> Finding[Lines]:
    """Say how a fleet of three lines does."""
    SCRIPT.calls.append((ctx.organisation, ctx.principal, params.account_id))
    await SCRIPT.before()
    if SCRIPT.refusals:
        raise SCRIPT.refusals.pop(0)
    return make_finding({"lines": 3}, now=ctx.now, sampled=3, of=3, method="Counted.")


def sheet(found: Finding[Lines]) -> Sheet:
    """Three figures, one of which a stranger must not see."""
    figures = [
        {"label": "Lines", "kind": "number", "value": found["data"]["lines"]},
        {"label": "First line", "kind": "line", "value": "8999012345678901237"},
        {"label": "Cost", "kind": "money", "value": 1.5},
    ]
    return {"title": "Fleet health", "headline": "3 lines are well", "figures": figures, "charts": [], "tables": []}  # pyright: ignore[reportReturnType]


SHEETS = {"fleet_health": sheet}


def here() -> ModuleType:
    """This module, as a toolset takes it."""
    import sys

    return sys.modules[__name__]


THIN = Catalogue(
    [
        Toolset("connectivity", "Events and endpoints.", (events, webhook_endpoints)),
        Toolset("intelligence", "Reports.", (schedules, schedule_reports, schedule_reports, shared_reports)),
        Toolset("composites", "What is reported.", (here(),)),
    ]
)
