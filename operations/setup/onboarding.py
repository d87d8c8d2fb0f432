"""Onboarding: how far an organisation has come, its first step and its last."""

from typing import Annotated

from pydantic import AfterValidator, Field

from operations.deps import Ctx
from operations.services.people.onboarding import EXAMPLE, OnboardingState, OperatorType, read_state
from operations.services.plain_line import plain_line
from operations.setup.onboarding_country import Country
from operations.setup.onboarding_website import Website
from registry.errors import Conflict
from registry.limits import Scope
from registry.model import Input, Nothing
from registry.operation import Example, operation
from storage.connection import Connection
from storage.people.onboarding import complete, save_details


class OperatorProfile(Input):
    """Who the operator is."""

    name: Annotated[
        str, Field(min_length=1, max_length=200, description="Name of your organisation, 1-200 characters."), AfterValidator(plain_line)
    ]
    # `repr=False`: a refusal never repeats it, since what stands before an @ may be a password.
    website: Annotated[
        Website | None,
        Field(repr=False, description="Your website, http or https, at most 300 characters; left out, the one that was saved goes."),
    ] = None
    country: Country
    operator_type: Annotated[OperatorType, Field(description="What you are; mvne: you enable others' mobile networks.")]


class Incomplete(Conflict):
    """A step is missing that onboarding cannot be completed without."""

    code = "onboarding_incomplete"


BEGUN: OnboardingState = {
    **EXAMPLE,
    "steps": [{"step": "org", "status": "done"}, *({**step, "status": "todo"} for step in EXAMPLE["steps"][1:])],
    "current_step": "ocs",
    "connection": {"connected": False, "mode": None, "account_id": None, "former_token_until": None},
    "managed_path_chosen": False,
}
COMPLETED: OnboardingState = {
    **EXAMPLE,
    "steps": [{**step, "status": "skipped" if step["step"] == "plan" else "done"} for step in EXAMPLE["steps"]],
    "current_step": None,
    "completed": True,
}


@operation(
    "GET",
    "/v1/onboarding",
    charged=False,
    title="Get onboarding state",
    examples=[Example("What is left to do?", {}, EXAMPLE)],
)
async def get_onboarding_state(ctx: Ctx, params: Nothing) -> OnboardingState:
    """Show how far your organisation's onboarding has come.

    Works before any account is connected, and costs no call of the quota. `current_step` names what to do next.

    Steps: `org` (onboarding_save_org), `ocs` (onboarding_start_managed_account or onboarding_connect_ocs_token), `plan`
    (onboarding_save_plan or onboarding_skip_plan), `test_esim` (onboarding_test_esim), `complete` (onboarding_complete). Their order
    is advice; only complete asks for what comes before it.
    """
    del params
    return await ctx.deps.store.read(read_state, organisation=ctx.organisation)


@operation(
    "POST",
    "/v1/onboarding/org",
    scope=Scope.ANY,
    title="Save operator details",
    examples=[
        Example(
            "Who we are",
            {"name": "Fjord Mobile", "website": "https://fjord.example", "country": "NO", "operator_type": "mvno"},
            BEGUN,
        )
    ],
)
async def onboarding_save_org(ctx: Ctx, params: OperatorProfile) -> OnboardingState:
    """Onboarding step org: save who the operator is.

    Renames your organisation to `name`, everywhere. Saving again replaces all four details.
    """
    return await ctx.settle_result(
        record_operator,
        organisation=ctx.organisation,
        name=params.name,
        website=params.website,
        country=params.country,
        operator_type=params.operator_type,
        now=ctx.now,
    )


@operation(
    "POST",
    "/v1/onboarding/complete",
    scope=Scope.ANY,
    title="Complete onboarding",
    raises=[Incomplete],
    examples=[Example("We are ready", {}, COMPLETED)],
)
async def onboarding_complete(ctx: Ctx, params: Nothing) -> OnboardingState:
    """Onboarding step complete: end the onboarding.

    Needs step org, and a connection or a managed account that was asked for (it may be pending); plan and test_esim may be left out.

    Completing again changes nothing. What is missing is named by a 409 `onboarding_incomplete`.
    """
    del params
    return await ctx.settle_result(finish, organisation=ctx.organisation, now=ctx.now)


def record_operator(
    connection: Connection, *, organisation: str, name: str, website: str | None, country: str, operator_type: str, now: float
) -> OnboardingState:
    """The details, and the state with them."""
    details = {"name": name, "country": country, "operator_type": operator_type}
    save_details(connection, organisation=organisation, website=website, now=now, **details)
    return read_state(connection, organisation=organisation)


def finish(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
    """Completed; or the refusal that names the first step that is missing.

    Choice: a managed account that is pending is enough, since nothing is left for the organisation to do.
    """
    complete(connection, organisation=organisation, now=now)
    state = read_state(connection, organisation=organisation)
    if state["completed"]:
        return state
    if state["steps"][0]["status"] == "todo":
        raise Incomplete("Step org is missing: the operator's details are not saved", hint="Call onboarding_save_org, then complete again")
    raise Incomplete(
        "Step ocs is missing: there is no connection, and no managed account was asked for",
        hint="Call onboarding_start_managed_account or onboarding_connect_ocs_token, then complete again",
    )
