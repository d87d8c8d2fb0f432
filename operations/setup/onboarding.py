"""Onboarding: its state, which each of its operations answers, and the steps org, plan, test_esim and complete."""

import re
from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Literal, cast

import orjson
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from clients.ocs.subscribers import Subscriber
from clients.ocs.templates import Template
from operations.deps import Ctx
from operations.ledger.esims import new_test_esim_profile
from operations.times import utc_time_text
from operations.upstream.connection import AccountGone, Upstream, connect_upstream, require_connected
from operations.upstream.lines import public_line_row
from operations.upstream.resellers import find_template
from operations.vocabulary import CountryOfRegistration, UpstreamId, check_web_address, plain_line
from registry.clock import rfc3339_utc
from registry.errors import Conflict, NotFound, OcsError, OcsNotFound, OrgNotConnected, Refusal
from registry.free_text import FreeText
from registry.operation import Example, Input, Nothing, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.onboarding import (
    OnboardingRow,
    complete_onboarding,
    find_onboarding,
    save_onboarding_details,
    save_plan,
    save_test_esim,
    skip_plan,
)

StepName = Literal["org", "ocs", "plan", "test_esim", "complete"]
StepStatus = Literal["todo", "done", "pending", "skipped"]
PendingReason = Literal["account_absent", "account_conflict", "not_configured", "ocs_unavailable"]
DemoReason = Literal["not_connected", "not_configured", "account_absent", "no_lines", "unreadable", "ocs_timeout", "ocs_unavailable"]
# Choice: what kinds of operators there are is not shown; these are the ones that resell connectivity.
OperatorType = Literal["mno", "mvno", "mvne", "travel_esim", "iot", "enterprise", "marketplace", "other"]


class OnboardingStep(TypedDict):
    """A step. `pending`: a managed account was asked for and is not there yet."""

    step: StepName
    status: StepStatus


class OperatorDetails(TypedDict):
    """Your organisation as step org saved it; null until then."""

    id: str
    name: FreeText
    website: FreeText | None
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2")]
    operator_type: OperatorType | None


class OnboardingConnection(TypedDict):
    """How your organisation reaches the charging system; a token is never shown."""

    connected: bool
    mode: Literal["managed", "own"] | None
    account_id: Annotated[int | None, Field(description="The sub-account, in managed mode")]
    former_token_until: Annotated[
        str | None, Field(description="Until then (RFC 3339) an admin can go back to the token before: onboarding_restore_ocs_token")
    ]


class StartingPlan(TypedDict):
    """The package template that you begin with."""

    template_id: int
    display_name: FreeText | None


class TestEsim(TypedDict):
    """A line of your account as a preview; where there is none to show, a demo that exists nowhere, and why."""

    iccid: str
    demo: bool
    demo_reason: DemoReason | None
    status: Annotated[str | None, Field(description="Of the line, such as Active")]
    activated_at: Annotated[str | None, Field(description="RFC 3339, UTC; null: not told")]
    last_used_at: Annotated[str | None, Field(description="RFC 3339, UTC; null: never used, or not told")]


class OnboardingState(TypedDict):
    """How far your organisation has come. `current_step` is the first one to do; null when there is none."""

    object: Literal["onboarding"]
    organization: OperatorDetails
    steps: list[OnboardingStep]
    current_step: StepName | None
    connection: OnboardingConnection
    managed_path_chosen: bool
    pending: Annotated[bool, Field(description="A managed account was asked for and is not connected: ask again later")]
    pending_reason: PendingReason | None
    plan: StartingPlan | None
    test_esim: TestEsim | None
    completed: bool


ONBOARDING_EXAMPLE: OnboardingState = {
    "object": "onboarding",
    "organization": {
        "id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "name": "Fjord Mobile",
        "website": "https://fjord.example",
        "country": "NO",
        "operator_type": "mvno",
    },
    "steps": [
        {"step": "org", "status": "done"},
        {"step": "ocs", "status": "done"},
        {"step": "plan", "status": "todo"},
        {"step": "test_esim", "status": "todo"},
        {"step": "complete", "status": "todo"},
    ],
    "current_step": "plan",
    "connection": {"connected": True, "mode": "managed", "account_id": 8101, "former_token_until": None},
    "managed_path_chosen": True,
    "pending": False,
    "pending_reason": None,
    "plan": None,
    "test_esim": None,
    "completed": False,
}


def read_onboarding(connection: Connection, *, organisation: str) -> OnboardingState:
    """How far the `organisation` has come."""
    return _onboarding_state(find_onboarding(connection, organisation=organisation))


def then_onboarding(write: Callable[..., object]) -> Callable[..., OnboardingState]:
    """`write` of a storage function, and after it the state of the organisation that it was called for."""

    @wraps(write)
    def written(connection: Connection, *, organisation: str, **given: object) -> OnboardingState:
        write(connection, organisation=organisation, **given)
        return read_onboarding(connection, organisation=organisation)

    return written


def _onboarding_state(row: OnboardingRow) -> OnboardingState:
    steps = _onboarding_steps(row)
    # Choice: what is pending is waited for by others, so it is not the step to do now.
    current: StepName | None = next((step["step"] for step in steps if step["status"] == "todo"), None)
    template = row.template_id
    return {
        "object": "onboarding",
        "organization": {
            "id": row.id,
            "name": row.name,
            "website": row.website,
            "country": row.country,
            "operator_type": cast(OperatorType | None, row.operator_type),
        },
        "steps": steps,
        "current_step": None if row.completed_at is not None else current,
        "connection": {
            "connected": row.mode is not None,
            "mode": cast(Literal["managed", "own"] | None, row.mode),
            "account_id": row.account_id if row.mode == "managed" else None,
            "former_token_until": None if row.former_token_expires_at is None else rfc3339_utc(row.former_token_expires_at),
        },
        "managed_path_chosen": row.managed_chosen_at is not None,
        "pending": row.pending_reason is not None,
        "pending_reason": cast(PendingReason | None, row.pending_reason),
        "plan": None if template is None else {"template_id": template, "display_name": row.plan_name},
        "test_esim": None if row.test_esim is None else _stored_preview(row.test_esim),
        "completed": row.completed_at is not None,
    }


def _onboarding_steps(row: OnboardingRow) -> list[OnboardingStep]:
    """Each step in its order. Whether there is a connection is what holds now, whoever made or ended it."""
    connected: StepStatus = "done" if row.mode is not None else "todo" if row.pending_reason is None else "pending"
    plan: StepStatus = "done" if row.plan_saved_at is not None else "todo" if row.plan_skipped_at is None else "skipped"
    return [
        {"step": "org", "status": "todo" if row.org_saved_at is None else "done"},
        {"step": "ocs", "status": connected},
        {"step": "plan", "status": plan},
        {"step": "test_esim", "status": "todo" if row.test_esim is None else "done"},
        {"step": "complete", "status": "todo" if row.completed_at is None else "done"},
    ]


# Not strict: it is shown, and nobody is led to it.
Website = Annotated[
    str,
    Field(max_length=300, pattern=r"^https?://[^\s\\\x1c-\x1f\x85\ufeff]+$"),
    AfterValidator(
        partial(check_web_address, what="an address of a website", such_as="address such as https://fjord.example", strict=False)
    ),
]


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
    country: CountryOfRegistration
    operator_type: Annotated[OperatorType, Field(description="What you are; mvne: you enable others' mobile networks.")]


class OnboardingIncomplete(Conflict):
    """A step is missing that onboarding cannot be completed without."""

    code = "onboarding_incomplete"


_ONBOARDING_BEGUN_EXAMPLE: OnboardingState = {
    **ONBOARDING_EXAMPLE,
    "steps": [{"step": "org", "status": "done"}, *({**step, "status": "todo"} for step in ONBOARDING_EXAMPLE["steps"][1:])],
    "current_step": "ocs",
    "connection": {"connected": False, "mode": None, "account_id": None, "former_token_until": None},
    "managed_path_chosen": False,
}
_ONBOARDING_COMPLETED_EXAMPLE: OnboardingState = {
    **ONBOARDING_EXAMPLE,
    "steps": [{**step, "status": "skipped" if step["step"] == "plan" else "done"} for step in ONBOARDING_EXAMPLE["steps"]],
    "current_step": None,
    "completed": True,
}


@operation(
    "GET",
    "/v1/onboarding",
    charged=False,
    title="Get onboarding state",
    examples=[Example("What is left to do?", {}, ONBOARDING_EXAMPLE)],
)
async def get_onboarding_state(ctx: Ctx, _params: Nothing) -> OnboardingState:
    """Show how far your organisation's onboarding has come.

    Works before any account is connected, and costs no call of the quota. `current_step` names what to do next.

    Steps: `org` (onboarding_save_org), `ocs` (onboarding_start_managed_account or onboarding_connect_ocs_token), `plan`
    (onboarding_save_plan or onboarding_skip_plan), `test_esim` (onboarding_test_esim), `complete` (onboarding_complete). Their order
    is advice; only complete asks for what comes before it.
    """
    return await ctx.deps.store.read(read_onboarding, organisation=ctx.organisation)


@operation(
    "POST",
    "/v1/onboarding/org",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    title="Save operator details",
    examples=[
        Example(
            "Who we are",
            {"name": "Fjord Mobile", "website": "https://fjord.example", "country": "NO", "operator_type": "mvno"},
            _ONBOARDING_BEGUN_EXAMPLE,
        )
    ],
)
async def onboarding_save_org(ctx: Ctx, params: OperatorProfile) -> OnboardingState:
    """Onboarding step org: save who the operator is.

    Renames your organisation to `name`, everywhere. Saving again replaces all four details.
    """
    return await ctx.settle_result(
        then_onboarding(save_onboarding_details),
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
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    title="Complete onboarding",
    raises=[OnboardingIncomplete],
    examples=[Example("We are ready", {}, _ONBOARDING_COMPLETED_EXAMPLE)],
)
async def onboarding_complete(ctx: Ctx, _params: Nothing) -> OnboardingState:
    """Onboarding step complete: end the onboarding.

    Needs step org, and a connection or a managed account that was asked for (it may be pending); plan and test_esim may be left out.

    Completing again changes nothing. What is missing is named by a 409 `onboarding_incomplete`.
    """
    return await ctx.settle_result(_complete_onboarding, organisation=ctx.organisation, now=ctx.now)


def _complete_onboarding(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
    """Completed; or the refusal that names the first step that is missing.

    Choice: a managed account that is pending is enough, since nothing is left for the organisation to do.
    """
    complete_onboarding(connection, organisation=organisation, now=now)
    state = read_onboarding(connection, organisation=organisation)
    if state["completed"]:
        return state
    if state["steps"][0]["status"] == "todo":
        raise OnboardingIncomplete(
            "Step org is missing: the operator's details are not saved", hint="Call onboarding_save_org, then complete again"
        )
    raise OnboardingIncomplete(
        "Step ocs is missing: there is no connection, and no managed account was asked for",
        hint="Call onboarding_start_managed_account or onboarding_connect_ocs_token, then complete again",
    )


class PlanChoice(Input):
    """A package template, and what you call it."""

    template_id: Annotated[UpstreamId, Field(description="Package template id, from list_package_templates.")]
    display_name: Annotated[
        str | None,
        Field(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="What buyers are to read, 1-80 characters."),
    ] = None


async def _visible_template(ctx: Ctx, params: PlanChoice) -> Template:
    try:
        await require_connected(ctx)
    except OrgNotConnected as refusal:
        refusal.hint = "Connect first: onboarding_start_managed_account; onboarding_skip_plan goes on without a plan"
        raise
    return await find_template(await connect_upstream(ctx), params.template_id, "template_id")


@operation(
    "POST",
    "/v1/onboarding/plan",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    access=_visible_template,
    title="Save starting plan",
    raises=[NotFound, OrgNotConnected, OcsError],
    examples=[
        Example(
            "Begin with 1 GB for the Nordics",
            {"template_id": 55010, "display_name": "Nordic starter"},
            {**ONBOARDING_EXAMPLE, "plan": {"template_id": 55010, "display_name": "Nordic starter"}, "current_step": "test_esim"},
        )
    ],
)
async def onboarding_save_plan(ctx: Ctx, params: PlanChoice, _template: Template) -> OnboardingState:
    """Onboarding step plan: record the package template you begin with.

    Only recorded: nothing is issued, priced or changed upstream. The template must be one that list_package_templates shows.

    Saving again replaces the plan. Connecting another account forgets it, since its template was of the account before.
    """
    return await ctx.settle_result(
        then_onboarding(save_plan),
        organisation=ctx.organisation,
        template_id=params.template_id,
        plan_name=params.display_name,
        now=ctx.now,
    )


@operation(
    "POST",
    "/v1/onboarding/plan/skip",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    title="Skip starting plan",
    examples=[Example("Choose later", {}, {**ONBOARDING_EXAMPLE, "current_step": "test_esim"})],
)
async def onboarding_skip_plan(ctx: Ctx, _params: Nothing) -> OnboardingState:
    """Onboarding step plan: go on without one; a plan that was saved is forgotten."""
    return await ctx.settle_result(then_onboarding(skip_plan), organisation=ctx.organisation, now=ctx.now)


_PREVIEW_ICCID = re.compile(r"89[0-9]{16,20}", re.ASCII)
_LONGEST_PREVIEW_TEXT = 64
# Choice: a token of one's own may see many accounts, and the first of them may be empty.
_MOST_PREVIEW_ACCOUNTS = 3
_PREVIEW_EXAMPLE: TestEsim = {
    "iccid": "8988303700000100286",
    "demo": False,
    "demo_reason": None,
    "status": "Active",
    "activated_at": "2026-10-02T08:14:00Z",
    "last_used_at": "2026-11-19T21:40:12Z",
}


class NoLineToPreview(Exception):
    """Control flow: there is no line that could be previewed."""

    def __init__(self, reason: DemoReason) -> None:
        super().__init__(reason)
        self.reason: DemoReason = reason


@operation(
    "POST",
    "/v1/onboarding/test-esim",
    spends=SpendKind.NOTHING,
    reaches_out=True,
    scope=Scope.ANY,
    title="Preview test eSIM",
    examples=[Example("Is there a line to look at?", {}, {**ONBOARDING_EXAMPLE, "test_esim": _PREVIEW_EXAMPLE})],
)
async def onboarding_test_esim(ctx: Ctx, _params: Nothing) -> OnboardingState:
    """Onboarding step test_esim: preview the first line of your account.

    Issues nothing and never fails: where no line can be shown, `test_esim.demo` is true, its ICCID exists nowhere, and `demo_reason`
    says why. To get an eSIM that behaves as a real one, create a connectivity intent with a test plan.

    Reasons: `not_connected`, `not_configured` (the service has no reseller token), `account_absent` (it is gone upstream), `no_lines`,
    `unreadable` (the line has no ICCID), `ocs_timeout`, `ocs_unavailable`. PIN, PUK and activation codes are not shown.
    """
    try:
        shown = _line_preview(await _first_line(ctx))
    except NoLineToPreview as nothing:
        iccid = new_test_esim_profile(ctx.deps.ids).iccid
        shown = TestEsim(iccid=iccid, demo=True, demo_reason=nothing.reason, status=None, activated_at=None, last_used_at=None)
    text = orjson.dumps(shown).decode()
    return await ctx.settle_result(then_onboarding(save_test_esim), organisation=ctx.organisation, test_esim=text, now=ctx.now)


async def _first_line(ctx: Ctx) -> Subscriber:
    connection = ctx.caller.connection
    if connection is None:
        raise NoLineToPreview("not_connected")
    if connection.mode == "managed" and not ctx.deps.ocs_token.strip():
        raise NoLineToPreview("not_configured")
    try:
        found = await _first_listed_line(await connect_upstream(ctx))
    except (AccountGone, OcsNotFound):
        raise NoLineToPreview("account_absent") from None
    except OcsError as error:
        raise NoLineToPreview("ocs_timeout" if error.error_code == "ocs_timeout" else "ocs_unavailable") from None
    except Refusal:
        raise NoLineToPreview("ocs_unavailable") from None
    if found is None:
        raise NoLineToPreview("no_lines")
    return found


async def _first_listed_line(upstream: Upstream) -> Subscriber | None:
    """The first line of the caller's accounts; a row of another account is nobody's here."""
    accounts = [upstream.account_id] if upstream.managed else [account.get("id") for account in await upstream.accounts()]
    for account in accounts[:_MOST_PREVIEW_ACCOUNTS]:
        if account is None:
            continue
        lines = await upstream.ocs.subscriber.list_subscriber(account)
        for row in lines.get("subscriberList", []):
            if row.get("accountId", account) == account:
                return row
    return None


def _line_preview(row: Subscriber) -> TestEsim:
    """A line through the declared shape: what else the charging system says of it is dropped."""
    line = public_line_row(row)
    iccid = _preview_text(line.get("iccid"))
    if iccid is None or not _PREVIEW_ICCID.fullmatch(iccid):
        raise NoLineToPreview("unreadable")
    return {
        "iccid": iccid,
        "demo": False,
        "demo_reason": None,
        "status": _preview_text(line.get("currentStatus")),
        "activated_at": _preview_text(line.get("activationDate")),
        "last_used_at": _preview_text(line.get("lastUsageDate")),
    }


def _stored_preview(text: str) -> TestEsim:
    """A stored preview, whose times are those of the charging system, without a zone."""
    shown = cast(TestEsim, orjson.loads(text))
    return {**shown, "activated_at": utc_time_text(shown["activated_at"]), "last_used_at": utc_time_text(shown["last_used_at"])}


def _preview_text(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= _LONGEST_PREVIEW_TEXT and value.isprintable() else None
