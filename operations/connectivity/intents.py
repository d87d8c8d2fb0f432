"""Intents: one request, one eSIM; which plan an intent names, and the QR picture of its activation code."""

from typing import Annotated, Literal, NamedTuple, Self

import orjson
from pydantic import AfterValidator, Field, model_validator

from clients.ocs.places import issuing
from operations.connectivity.plans import TEST_PLANS, LivePlanChoice, choose_plan, find_live_plan
from operations.deps import Ctx
from operations.ledger.esims import IssuedTestEsim, issue_test_esim, qr_picture
from operations.ledger.intents import Intent, IntentId, IntentStatus, intent_without_codes, render_intent, unseal_intent
from operations.ledger.issuance import IssuanceOrder, IssuanceTakenBack, before_issuance, draw_esim, require_not_given_back
from operations.ledger.issuance_targets import IntentTarget, as_processing_intent
from operations.plans import Plan
from operations.times import MadeSince, MadeUntil
from operations.upstream.connection import connect_upstream
from operations.upstream.template_costs import due_of_template
from operations.vocabulary import ListOf, ListPage, list_page
from registry.errors import Conflict, NotFound, OcsError, OrgNotConnected, Refusal, UpgradeRequired
from registry.operation import NOTHING_DUE, Document, Due, Example, FieldRule, Input, Once, Scope, SpendKind, operation
from storage.engine.sql import Connection, runs_in_thread
from storage.intents import (
    IntentFilter,
    IntentNotConfirmable,
    IntentRow,
    attach_plan,
    find_intent,
    insert_intent,
    intent_not_confirmable,
    list_intents,
)
from storage.issuance import IssuanceRow, find_issuance, issuance_of_claim


async def require_still_own(ctx: Ctx, row: IssuanceRow | None) -> None:
    """Raises NotFound for an eSIM from an account that is no longer the caller's, also on a replay (abuse case 6)."""
    if row is not None and not await (await connect_upstream(ctx)).owns_account(row.account_id):
        raise NotFound(
            "This eSIM was drawn from an account that your organisation has no more",
            param="plan",
            hint="Connect the account again, or use a new key to draw from the one you have",
        )
    require_not_given_back(row)


INTENT_METADATA_BYTES = 16 * 1024
# What stands between a caller and a live eSIM.
LIVE_PLAN_REFUSALS: tuple[type[Refusal], ...] = (UpgradeRequired, OrgNotConnected, IssuanceTakenBack, OcsError)


def check_metadata_size(metadata: dict[str, str]) -> dict[str, str]:
    """Raises ValueError for more than 16 KiB in all."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    if size > INTENT_METADATA_BYTES:
        raise ValueError(f"keys and values have {size} bytes; at most {INTENT_METADATA_BYTES} in all")
    return metadata


MetadataKey = Annotated[str, Field(pattern=r"^[^\[\]\x00-\x1f\x7f-\x9f]{1,40}$")]
MetadataValue = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Metadata = Annotated[
    dict[MetadataKey, MetadataValue],
    Field(
        max_length=50,
        description="<= 50 keys of 1-40 characters, no [ ]; values <= 500.",
        json_schema_extra={"additionalProperties": False},  # else the schema would allow every key that the pattern does not match
    ),
    AfterValidator(check_metadata_size),
]
IntentPlanId = Annotated[str, Field(min_length=1, max_length=80, description="test_eu_1gb, test_global_1gb, or another listed id.")]


class NewIntent(Input):
    """What to issue an eSIM for."""

    plan: IntentPlanId | None = None
    metadata: Metadata = Field(default_factory=dict)


class IntentRef(Input):
    """Which intent."""

    id: IntentId


class PlanForIntent(IntentRef):
    """Which plan to attach to which intent."""

    plan: IntentPlanId


class IntentPage(ListPage):
    """Which intents, and which part of their list."""

    status: Annotated[IntentStatus | None, Field(description="Only these.")] = None
    since: MadeSince = None
    until: MadeUntil = None
    metadata_value: Annotated[str | None, Field(min_length=1, max_length=500, description="A metadata value, whole.")] = None
    metadata_key: Annotated[str | None, Field(max_length=40, description="Its key.")] = None
    activation_codes: Annotated[bool, Field(description="With what installs each eSIM.")] = True

    @model_validator(mode="after")
    def _key_with_value(self) -> Self:
        if self.metadata_key is not None and self.metadata_value is None:
            raise FieldRule(
                f"metadata_key: got {self.metadata_key!r} without a value; intents are found by a value, under one key or any",
                param="metadata_key",
                hint="Add metadata_value, such as metadata_key=order&metadata_value=1042",
            )
        return self


INTENT_EXAMPLE: Intent = {
    "id": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "connectivity.intent",
    "status": "succeeded",
    "livemode": False,
    "plan": TEST_PLANS["test_eu_1gb"],
    "esim": {
        "iccid": "8999318274650918271",
        "activation_code": "LPA:1$smdp.test.invalid$TEST-7Q2M-9K4X-B1ZD-P0RT",
        "qr_code": "LPA:1$smdp.test.invalid$TEST-7Q2M-9K4X-B1ZD-P0RT",
        "smdp_address": "smdp.test.invalid",
        "matching_id": "TEST-7Q2M-9K4X-B1ZD-P0RT",
    },
    "metadata": {"order": "1042"},
    "error": None,
    "created": 1795168800,
}
WAITING_INTENT_EXAMPLE: Intent = {**INTENT_EXAMPLE, "status": "requires_plan", "plan": None, "esim": None}


async def plan_for_new_intent(ctx: Ctx, params: NewIntent) -> Plan | LivePlanChoice | None:
    """The plan; None when the intent is to wait for one."""
    if params.plan is None:
        return None
    with issuing():
        chosen = await choose_plan(ctx, params.plan)
    if isinstance(chosen, LivePlanChoice):
        named = {"organisation": ctx.organisation, "operation": ctx.call.operation.id, "claim_key": ctx.call.idempotency_key or ""}
        await require_still_own(ctx, await ctx.deps.store.read(issuance_of_claim, **named))
    return chosen


async def due_of_plan(ctx: Ctx, plan: Plan | LivePlanChoice | None) -> Due | SpendKind:
    """The cost of the template of `plan`; nothing where it costs nothing, or is none. Waits for the network."""
    if not isinstance(plan, LivePlanChoice):
        return NOTHING_DUE
    upstream = await connect_upstream(ctx)
    with before_issuance():
        return await due_of_template(upstream, (await find_live_plan(ctx, upstream, plan)).template_id, "plan")


async def due_of_new_intent(ctx: Ctx, _params: NewIntent, plan: Plan | LivePlanChoice | None) -> Due | SpendKind:
    """The cost of the template of a live plan; nothing for a test plan, or without a plan. Waits for the network."""
    return await due_of_plan(ctx, plan)


@operation(
    "POST",
    "/v1/connectivity/intents",
    spends=due_of_new_intent,
    draws=True,
    scope=Scope.ANY,
    once=Once(required=True, forever=True),
    moves=True,
    status=201,
    title="Issue an eSIM",
    card="install",
    access=plan_for_new_intent,
    raises=[NotFound, *LIVE_PLAN_REFUSALS],
    examples=[
        Example("Issue a test eSIM for an order", {"plan": "test_eu_1gb", "metadata": {"order": "1042"}}, INTENT_EXAMPLE),
        Example("Reserve an intent and choose the plan later", {"metadata": {"order": "1042"}}, WAITING_INTENT_EXAMPLE),
    ],
)
async def create_connectivity_intent(ctx: Ctx, params: NewIntent, plan: Plan | LivePlanChoice | None) -> Intent:
    """Issue one eSIM for a plan; returns its activation code and QR text.

    Test plans are free and succeed at once. Without `plan` it waits for confirm_connectivity_intent. The same key and body
    return the same eSIM, never a second one. Look at `status`: `processing` is settled later; read it again, use no new key.

    A product (`cnp_...`) or a plan of the live catalogue draws one eSIM from your own account; it needs write access and a
    connected organisation. The plan's price is not charged. A product with `adapt` hands the eSIM out once its package has the product's
    data and days; until then it is `processing` with package_adapting, or with package_not_adapted where that was refused. `failed` says
    why in `error`. `processing` with OUTCOME_UNKNOWN is found out by itself and never drawn a second time. `esim.issued` goes to your
    webhook endpoints.
    The activation code is worth the eSIM: keep it out of logs. GET /v1/connectivity/intents/{id}/qr.svg draws it.
    """
    deps = ctx.deps
    id = deps.ids.new("cni_")
    row = IntentRow(
        id, ctx.organisation, "requires_plan", 0, None, None, orjson.dumps(params.metadata).decode(), None, None, None, int(ctx.now)
    )
    if plan is None:
        waiting = render_intent(row, None)
        if ctx.call.has_no_body:  # it may have got lost. Choice: only then; `{}` asks for an intent that waits
            waiting["hint"] = (
                "No body came, so no plan was named and no eSIM was issued: the intent waits for one. "
                f"POST /v1/connectivity/intents/{id}/confirm with a plan of GET /v1/connectivity/plans issues it"
            )
        return await ctx.settle(waiting, insert_intent, row=row, event=None, ids=deps.ids)
    if isinstance(plan, LivePlanChoice):
        return await draw_live_intent(ctx, row, plan, waited=False)
    issue = issue_test_esim(plan, intent=id, organisation=ctx.organisation, now=ctx.now, ids=deps.ids, keyring=deps.keyring)
    row = row._replace(status="succeeded", **issue.kept._asdict())
    answer = await ctx.settle(render_intent(row, issue.profile), insert_intent, row=row, event=issue.event, ids=deps.ids)
    deps.wake_worker()
    return answer


@operation(
    "GET",
    "/v1/connectivity/intents",
    title="List intents",
    tool_defaults={"activation_codes": False},
    examples=[
        Example("The newest intent", {"limit": 1}, {"object": "list", "data": [INTENT_EXAMPLE], "has_more": True}),
        Example(
            "Which wait for a plan?",
            {"status": "requires_plan"},
            {"object": "list", "data": [WAITING_INTENT_EXAMPLE], "has_more": False},
        ),
        Example(
            "Which eSIM did our order 1042 get?",
            {"metadata_key": "order", "metadata_value": "1042"},
            {"object": "list", "data": [INTENT_EXAMPLE], "has_more": False},
        ),
    ],
)
async def list_connectivity_intents(ctx: Ctx, params: IntentPage) -> ListOf[Intent]:
    """List intents with their eSIMs, newest first."""
    asked = IntentFilter(params.status, params.since, params.until, params.metadata_value, params.metadata_key)
    most, after = params.limit + 1, params.starting_after
    # Of a label that most intents have, few may have the status: those are looked for in a thread.
    look = runs_in_thread(list_intents) if asked.status is not None and asked.value is not None else list_intents
    rows = await ctx.deps.store.read(look, organisation=ctx.organisation, asked=asked, after=after, most=most)
    intents = [unseal_intent(row, ctx.deps.keyring) for row in rows]
    return list_page(intents if params.activation_codes else [intent_without_codes(each) for each in intents], params.limit)


@operation(
    "GET",
    "/v1/connectivity/intents/{id}",
    title="Get intent",
    card="install",
    raises=[NotFound],
    examples=[Example("Read an intent and its activation code", {"id": INTENT_EXAMPLE["id"]}, INTENT_EXAMPLE)],
)
async def get_connectivity_intent(ctx: Ctx, params: IntentRef) -> Intent:
    """Get one intent with its status, plan and eSIM, activation code included."""
    return unseal_intent(await read_own_intent(ctx, params.id), ctx.deps.keyring)


class Confirmation(NamedTuple):
    """The plan of a confirmation, and whether its intent waited for one when the call began.

    Another call may hold the intent then and let it wait again later. Such an intent was not paid for by this call, which draws nothing.
    """

    plan: Plan | LivePlanChoice
    waited: bool


async def confirmation_of_intent(ctx: Ctx, params: PlanForIntent) -> Confirmation:
    """The intent is read first, so that a foreign one answers as an unknown one does."""
    waited = (await read_own_intent(ctx, params.id)).status == "requires_plan"
    with issuing():
        chosen = await choose_plan(ctx, params.plan)
    if isinstance(chosen, LivePlanChoice):
        await require_still_own(ctx, await ctx.deps.store.read(find_issuance, organisation=ctx.organisation, key=params.id))
    return Confirmation(chosen, waited)


async def due_of_confirmation(ctx: Ctx, params: PlanForIntent, confirmation: Confirmation) -> Due | SpendKind:
    """The cost of the template of a live plan; nothing for a test plan, or an intent that does not wait for one. Waits for the network."""
    return await due_of_plan(ctx, confirmation.plan) if confirmation.waited else NOTHING_DUE


@operation(
    "POST",
    "/v1/connectivity/intents/{id}/confirm",
    spends=due_of_confirmation,
    draws=True,
    scope=Scope.ANY,
    moves=True,
    title="Confirm intent",
    card="install",
    access=confirmation_of_intent,
    raises=[IntentNotConfirmable, *LIVE_PLAN_REFUSALS],
    examples=[Example("Choose the plan of a waiting intent", {"id": INTENT_EXAMPLE["id"], "plan": "test_eu_1gb"}, INTENT_EXAMPLE)],
)
async def confirm_connectivity_intent(ctx: Ctx, params: PlanForIntent, confirmation: Confirmation) -> Intent:
    """Attach a plan to an intent in requires_plan and issue its eSIM.

    Again with the same plan: the same eSIM. Another plan or state: refused.

    The plans and what they need are those of create_connectivity_intent.
    """
    deps, plan = ctx.deps, confirmation.plan
    if isinstance(plan, LivePlanChoice):
        return await confirm_live_intent(ctx, params.id, plan, waited=confirmation.waited)
    issue = issue_test_esim(plan, intent=params.id, organisation=ctx.organisation, now=ctx.now, ids=deps.ids, keyring=deps.keyring)
    answer = await ctx.settle_result(confirm_test_intent, intent=params.id, organisation=ctx.organisation, issue=issue, ctx=ctx)
    deps.wake_worker()
    return answer


def confirm_test_intent(connection: Connection, *, intent: str, organisation: str, issue: IssuedTestEsim, ctx: Ctx) -> Intent:
    """The intent with the eSIM of the first call that confirmed it with this plan. Raises NotFound or IntentNotConfirmable."""
    row, _ = attach_plan(connection, intent=intent, organisation=organisation, issued=issue.kept, event=issue.event, ids=ctx.deps.ids)
    if row is None:
        raise intent_not_found("id")
    if row.status != "succeeded" or row.plan_id != issue.kept.plan_id:
        raise intent_not_confirmable(row.status)
    return unseal_intent(row, ctx.deps.keyring)


async def draw_live_intent(ctx: Ctx, row: IntentRow, choice: LivePlanChoice, *, waited: bool) -> Intent:
    """Draws the eSIM of a live plan; the intent shows the outcome. Waits for the network."""
    deps = ctx.deps
    upstream = await connect_upstream(ctx)
    with before_issuance():
        live = await find_live_plan(ctx, upstream, choice)
    purpose = IntentTarget(as_processing_intent(row, live.plan), waited, ctx.status, deps.keyring, deps.ids)
    order = IssuanceOrder(row.id, live.account_id, live.template_id, intent=row.id, terms=live.terms)
    concluded = await draw_esim(ctx, upstream, order, purpose)
    deps.wake_worker()
    return concluded.body


async def confirm_live_intent(ctx: Ctx, intent: str, choice: LivePlanChoice, *, waited: bool) -> Intent:
    """The intent as it is, if it has this plan; a waiting one gets its eSIM drawn by one of the concurrent calls. Waits for the network."""
    row = await read_own_intent(ctx, intent)
    if row.status == "requires_plan" and waited:
        try:
            return await draw_live_intent(ctx, row, choice, waited=True)
        except IntentNotConfirmable:
            row = await read_own_intent(ctx, intent)
    if row.status not in ("processing", "succeeded") or row.plan_id != choice.id:
        raise intent_not_confirmable(row.status)
    return unseal_intent(row, ctx.deps.keyring)


async def read_own_intent(ctx: Ctx, intent: str, param: str = "id") -> IntentRow:
    """The row of the caller's intent; NotFound names `param` where the organisation has none with this id."""
    row = await ctx.deps.store.read(find_intent, intent=intent, organisation=ctx.organisation)
    if row is None:
        raise intent_not_found(param)
    return row


def intent_not_found(param: str) -> NotFound:
    return NotFound(
        "Your organisation has no intent with this id", param=param, hint="list_connectivity_intents names the ones you created"
    )


QR_MEDIA_TYPES = {"svg": "image/svg+xml", "png": "image/png"}


class EsimNotIssued(Conflict):
    """The intent has no eSIM yet."""

    code = "esim_not_issued"


class QrRef(IntentRef):
    """Which intent's code, and as what."""

    format: Annotated[Literal["svg", "png"], Field(description="Kind of picture.")]


@operation(
    "GET",
    "/v1/connectivity/intents/{id}/qr.{format}",
    tool=False,
    title="Get QR code",
    raises=[NotFound, EsimNotIssued],
    examples=[Example("The code as a picture for a web page", {"id": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t", "format": "svg"})],
)
async def get_connectivity_intent_qr(ctx: Ctx, params: QrRef) -> Annotated[Document, "image/svg+xml", "image/png"]:
    """Get the activation code of an issued eSIM as a QR picture.

    The picture holds the activation code: show it to the buyer and nobody else. It is not to be cached.
    """
    intent = unseal_intent(await read_own_intent(ctx, params.id), ctx.deps.keyring)
    code = None if intent["esim"] is None else intent["esim"].get("activation_code")
    if code is None:
        raise esim_not_issued(intent["status"], "id")
    return Document(await qr_picture(code, params.format), QR_MEDIA_TYPES[params.format], {"Cache-Control": "no-store"})


def esim_not_issued(status: str, param: str) -> EsimNotIssued:
    """The refusal that names the next step for an intent in `status`."""
    first = "give it a plan with confirm_connectivity_intent" if status == "requires_plan" else f"read it with {get_connectivity_intent.id}"
    return EsimNotIssued(f"This intent is {status} and has no eSIM yet", param=param, hint=f"First {first}")
