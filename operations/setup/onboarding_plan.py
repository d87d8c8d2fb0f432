"""Onboarding, step plan: the package template to begin with."""

from typing import Annotated

from pydantic import Field

from clients.ocs.wire.template import Template
from operations.deps import Ctx
from operations.services.network.accounts import UpstreamId
from operations.services.network.templates import find_template
from operations.services.network.upstream import reach
from operations.services.people.onboarding import EXAMPLE, OnboardingState, read_state
from registry.errors import NotFound, OcsError, OrgNotConnected
from registry.limits import Scope
from registry.model import Input, Nothing
from registry.operation import Example, operation
from registry.policy import require_connection
from storage.connection import Connection
from storage.people.directory import StoreDirectory
from storage.people.onboarding import save_plan, skip_plan


class PlanChoice(Input):
    """A package template, and what you call it."""

    template_id: Annotated[UpstreamId, Field(description="Package template id, from list_package_templates.")]
    display_name: Annotated[
        str | None,
        Field(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="What buyers are to read, 1-80 characters."),
    ] = None


async def visible_template(ctx: Ctx, params: PlanChoice) -> Template:
    """A template that the connected account can use."""
    try:
        await require_connection(ctx.caller, StoreDirectory(ctx.deps.store), ctx.deps.site)
    except OrgNotConnected as refusal:
        refusal.hint = "Connect first: onboarding_start_managed_account; onboarding_skip_plan goes on without a plan"
        raise
    return await find_template(await reach(ctx), params.template_id, "template_id")


@operation(
    "POST",
    "/v1/onboarding/plan",
    scope=Scope.ANY,
    access=visible_template,
    title="Save starting plan",
    raises=[NotFound, OrgNotConnected, OcsError],
    examples=[
        Example(
            "Begin with 1 GB for the Nordics",
            {"template_id": 55010, "display_name": "Nordic starter"},
            {**EXAMPLE, "plan": {"template_id": 55010, "display_name": "Nordic starter"}, "current_step": "test_esim"},
        )
    ],
)
async def onboarding_save_plan(ctx: Ctx, params: PlanChoice, template: Template) -> OnboardingState:
    """Onboarding step plan: record the package template you begin with.

    Only recorded: nothing is issued, priced or changed upstream. The template must be one that list_package_templates shows.

    Saving again replaces the plan. Connecting another account forgets it, since its template was of the account before.
    """
    del template
    return await ctx.settle_result(
        record_plan,
        organisation=ctx.organisation,
        template_id=params.template_id,
        display_name=params.display_name,
        now=ctx.now,
    )


@operation(
    "POST",
    "/v1/onboarding/plan/skip",
    scope=Scope.ANY,
    title="Skip starting plan",
    examples=[Example("Choose later", {}, {**EXAMPLE, "current_step": "test_esim"})],
)
async def onboarding_skip_plan(ctx: Ctx, params: Nothing) -> OnboardingState:
    """Onboarding step plan: go on without one; a plan that was saved is forgotten."""
    del params
    return await ctx.settle_result(forget_plan, organisation=ctx.organisation, now=ctx.now)


def record_plan(connection: Connection, *, organisation: str, template_id: int, display_name: str | None, now: float) -> OnboardingState:
    """The plan, and the state with it."""
    save_plan(connection, organisation=organisation, template_id=template_id, plan_name=display_name, now=now)
    return read_state(connection, organisation=organisation)


def forget_plan(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
    """No plan, and the state without it."""
    skip_plan(connection, organisation=organisation, now=now)
    return read_state(connection, organisation=organisation)
