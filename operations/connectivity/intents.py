"""Intents: one request, one eSIM."""

from typing import Annotated

import orjson
from pydantic import AfterValidator, Field

from clients.ocs.token_places import issuing
from operations.connectivity.intent_view import intent_of, shown
from operations.connectivity.plan_choice import LiveChoice, choose_plan, live_plan, still_own
from operations.connectivity.plans import TEST_PLANS
from operations.connectivity.shapes import Intent, IntentId, Plan, without_codes
from operations.deps import Ctx
from operations.services.issuing.intent_purpose import IntentPurpose, processing
from operations.services.issuing.issuance import Issue, issue_test
from operations.services.issuing.ledger import Order, before_draw, draw
from operations.services.issuing.purpose import TakenBack
from operations.services.network.upstream import reach
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.errors import NotFound, OcsError, OrgNotConnected, Refusal, UpgradeRequired
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, Once, operation
from storage.connection import Connection
from storage.issuing.intents import IntentNotConfirmable, IntentRow, attach_plan, find_intent, insert_intent, list_intents, not_confirmable
from storage.issuing.issuance import find_issuance, issuance_of_claim

METADATA_BYTES = 16 * 1024
# What stands between a caller and a live eSIM.
LIVE: tuple[type[Refusal], ...] = (UpgradeRequired, OrgNotConnected, TakenBack, OcsError)


def small_enough(metadata: dict[str, str]) -> dict[str, str]:
    """16 KiB in all."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    if size > METADATA_BYTES:
        raise ValueError(f"keys and values have {size} bytes; at most {METADATA_BYTES} in all")
    return metadata


MetadataKey = Annotated[str, Field(pattern=r"^[^\[\]\x00-\x1f\x7f-\x9f]{1,40}$")]
MetadataValue = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Metadata = Annotated[
    dict[MetadataKey, MetadataValue],
    Field(
        max_length=50,
        description="Your notes: <= 50 keys of 1-40 characters, no [ ]; values <= 500.",
        json_schema_extra={"additionalProperties": False},  # else the schema would allow every key that the pattern does not match
    ),
    AfterValidator(small_enough),
]
PlanId = Annotated[str, Field(min_length=1, max_length=80, description="test_eu_1gb, test_global_1gb, or another listed id.")]


class NewIntent(Input):
    """What to issue an eSIM for."""

    plan: PlanId | None = None
    metadata: Metadata = Field(default_factory=dict)


class IntentRef(Input):
    """Which intent."""

    id: IntentId


class PlanForIntent(IntentRef):
    """Which plan to attach to which intent."""

    plan: PlanId


class IntentPage(Input):
    """Which part of the list."""

    limit: Limit = 20
    starting_after: StartingAfter = None
    activation_codes: Annotated[bool, Field(description="With what installs each eSIM; get_connectivity_intent has it of one.")] = True


EXAMPLE: Intent = {
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
WAITING: Intent = {**EXAMPLE, "status": "requires_plan", "plan": None, "esim": None}


def next_step(id: str) -> str:
    """What was done for whoever sent no body, which may have got lost.

    Choice: an additional member of this answer alone; `{}` is somebody's wish for an intent that waits, and is answered as ever.
    """
    return (
        f"No body came, so no plan was named and no eSIM was issued: the intent waits for one. POST /v1/connectivity/intents/{id}/confirm "
        "with a plan of GET /v1/connectivity/plans issues it"
    )


async def plan_wanted(ctx: Ctx, params: NewIntent) -> Plan | LiveChoice | None:
    """The plan, unless the intent is to wait for one."""
    if params.plan is None:
        return None
    with issuing():
        chosen = await choose_plan(ctx, params.plan)
    if isinstance(chosen, LiveChoice):
        named = {"organisation": ctx.organisation, "operation": ctx.call.operation.id, "claim_key": ctx.call.idempotency_key or ""}
        await still_own(ctx, await ctx.deps.store.read(issuance_of_claim, **named))
    return chosen


@operation(
    "POST",
    "/v1/connectivity/intents",
    scope=Scope.ANY,
    once=Once(required=True, forever=True),
    moves=True,
    status=201,
    title="Issue an eSIM",
    access=plan_wanted,
    raises=[NotFound, *LIVE],
    examples=[
        Example("Issue a test eSIM for an order", {"plan": "test_eu_1gb", "metadata": {"order": "1042"}}, EXAMPLE),
        Example("Reserve an intent and choose the plan later", {"metadata": {"order": "1042"}}, WAITING),
    ],
)
async def create_connectivity_intent(ctx: Ctx, params: NewIntent, plan: Plan | LiveChoice | None) -> Intent:
    """Issue one eSIM for a plan; returns its activation code and QR text.

    Test plans are free and succeed at once. Without `plan` it waits for confirm_connectivity_intent. The same key and body
    return the same eSIM, never a second one. Look at `status`: `processing` is settled later; read it again, use no new key.

    A product (`cnp_...`) or a plan of the live catalogue draws one eSIM from your own account; it needs write access and a
    connected organisation. The plan's price is not charged. `failed` says why in `error`. `processing` with OUTCOME_UNKNOWN is found
    out by itself and never drawn a second time. `esim.issued` goes to your webhook endpoints.
    The activation code is worth the eSIM: keep it out of logs. GET /v1/connectivity/intents/{id}/qr.svg draws it.
    """
    deps = ctx.deps
    id = deps.ids.new("cni_")
    row = IntentRow(
        id, ctx.organisation, "requires_plan", 0, None, None, orjson.dumps(params.metadata).decode(), None, None, None, int(ctx.now)
    )
    if plan is None:
        waiting = shown(row, None)
        if ctx.call.has_no_body:
            waiting["hint"] = next_step(id)
        return await ctx.settle(waiting, insert_intent, row=row, event=None, ids=deps.ids)
    if isinstance(plan, LiveChoice):
        return await draw_for(ctx, row, plan, waited=False)
    issue = issue_test(plan, intent=id, organisation=ctx.organisation, now=ctx.now, ids=deps.ids, keyring=deps.keyring)
    row = row._replace(status="succeeded", **issue.kept._asdict())
    answer = await ctx.settle(shown(row, issue.profile), insert_intent, row=row, event=issue.event, ids=deps.ids)
    deps.wake_worker()
    return answer


@operation(
    "GET",
    "/v1/connectivity/intents",
    title="List intents",
    tool_defaults={"activation_codes": False},
    examples=[Example("The newest intent", {"limit": 1}, {"object": "list", "data": [EXAMPLE], "has_more": True})],
)
async def list_connectivity_intents(ctx: Ctx, params: IntentPage) -> ListOf[Intent]:
    """List your intents with their eSIMs, newest first."""
    read = ctx.deps.store.read
    rows = await read(list_intents, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1)
    intents = [intent_of(row, ctx.deps.keyring) for row in rows]
    return page(intents if params.activation_codes else [without_codes(each) for each in intents], params.limit)


@operation(
    "GET",
    "/v1/connectivity/intents/{id}",
    title="Get intent",
    raises=[NotFound],
    examples=[Example("Read an intent and its activation code", {"id": EXAMPLE["id"]}, EXAMPLE)],
)
async def get_connectivity_intent(ctx: Ctx, params: IntentRef) -> Intent:
    """Get one intent with its status, plan and eSIM, activation code included."""
    return intent_of(await read_intent(ctx, params.id), ctx.deps.keyring)


async def plan_to_attach(ctx: Ctx, params: PlanForIntent) -> Plan | LiveChoice:
    """The plan; the intent is looked up first, so that a foreign one answers as an unknown one does."""
    await read_intent(ctx, params.id)
    with issuing():
        chosen = await choose_plan(ctx, params.plan)
    if isinstance(chosen, LiveChoice):
        await still_own(ctx, await ctx.deps.store.read(find_issuance, organisation=ctx.organisation, key=params.id))
    return chosen


@operation(
    "POST",
    "/v1/connectivity/intents/{id}/confirm",
    scope=Scope.ANY,
    moves=True,
    title="Confirm intent",
    access=plan_to_attach,
    raises=[IntentNotConfirmable, *LIVE],
    examples=[Example("Choose the plan of a waiting intent", {"id": EXAMPLE["id"], "plan": "test_eu_1gb"}, EXAMPLE)],
)
async def confirm_connectivity_intent(ctx: Ctx, params: PlanForIntent, plan: Plan | LiveChoice) -> Intent:
    """Attach a plan to an intent in requires_plan and issue its eSIM.

    Again with the same plan: the same eSIM. Another plan or state: refused.

    The plans and what they need are those of create_connectivity_intent.
    """
    deps = ctx.deps
    if isinstance(plan, LiveChoice):
        return await confirm_live(ctx, params.id, plan)
    issue = issue_test(plan, intent=params.id, organisation=ctx.organisation, now=ctx.now, ids=deps.ids, keyring=deps.keyring)
    answer = await ctx.settle_result(confirm, intent=params.id, organisation=ctx.organisation, issue=issue, ctx=ctx)
    deps.wake_worker()
    return answer


def confirm(connection: Connection, *, intent: str, organisation: str, issue: Issue, ctx: Ctx) -> Intent:
    """The winner's eSIM, whoever asks for the same plan."""
    row, _ = attach_plan(connection, intent=intent, organisation=organisation, issued=issue.kept, event=issue.event, ids=ctx.deps.ids)
    if row is None:
        raise no_such_intent("id")
    if row.status != "succeeded" or row.plan_id != issue.kept.plan_id:
        raise not_confirmable(row.status)
    return intent_of(row, ctx.deps.keyring)


async def draw_for(ctx: Ctx, row: IntentRow, choice: LiveChoice, *, waited: bool) -> Intent:
    """Draw the eSIM of a live plan; the intent says what came of it."""
    deps = ctx.deps
    upstream = await reach(ctx)
    with before_draw():
        live = await live_plan(ctx, upstream, choice)
    purpose = IntentPurpose(processing(row, live.plan), waited, ctx.status, deps.keyring, deps.ids)
    concluded = await draw(ctx, upstream, Order(row.id, live.account_id, live.template_id, intent=row.id), purpose)
    deps.wake_worker()
    return concluded.body


async def confirm_live(ctx: Ctx, intent: str, choice: LiveChoice) -> Intent:
    """An intent that has this plan already is what it is; one that waits gets its eSIM drawn, by one of those who ask."""
    row = await read_intent(ctx, intent)
    if row.status == "requires_plan":
        try:
            return await draw_for(ctx, row, choice, waited=True)
        except IntentNotConfirmable:
            row = await read_intent(ctx, intent)
    if row.status not in ("processing", "succeeded") or row.plan_id != choice.id:
        raise not_confirmable(row.status)
    return intent_of(row, ctx.deps.keyring)


async def read_intent(ctx: Ctx, intent: str) -> IntentRow:
    """The caller's intent."""
    row = await ctx.deps.store.read(find_intent, intent=intent, organisation=ctx.organisation)
    if row is None:
        raise no_such_intent("id")
    return row


def no_such_intent(param: str) -> NotFound:
    """Unknown and foreign intents are answered alike."""
    return NotFound(
        "Your organisation has no intent with this id", param=param, hint="list_connectivity_intents names the ones you created"
    )
