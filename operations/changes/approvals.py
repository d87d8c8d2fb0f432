"""What a person has to approve: the requests that programs have made, and the decision, which only the service's own pages take."""

from typing import Annotated, Literal, cast

import anyio
import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.changes.requests.approval_execution import (
    ApprovalVoid,
    check_approver,
    end_request,
    execute_approved,
    is_temporary,
    read_asker,
    terms_for_asker,
)
from operations.changes.requests.approval_requests import ApprovalContent, open_content, seal_content, state_at, waiting_row
from operations.deps import Ctx, Deps
from operations.event_types.declaration import new_event
from operations.event_types.work import WORK_APPROVAL_DECIDED, DecidedCall
from operations.vocabulary import ListOf, ListPage, list_page
from registry.approvals import APPROVALS_PAGE, ApprovalTerms
from registry.challenge import Loss
from registry.clock import rfc3339_utc
from registry.errors import ApprovalAmount, Conflict, NotFound, Refusal, Restricted, StoreUnavailable
from registry.free_text import FreeText
from registry.operation import Example, Input, Scope, SpendKind, operation
from storage.approvals import ApprovalRow, ListedApproval, decide_waiting, list_approval_rows, renew_approval
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.sealing import Keyring, approval_field

RECENT_SIGN_IN_SECONDS = 15 * 60
"""How long after a sign-in somebody may decide: whoever finds an open browser does not."""

ApprovalStateName = Literal["waiting", "approved", "executed", "declined", "expired", "void"]


class PageRequired(Refusal, status=403, code="page_required"):
    """Only a person who is signed in at a page of the service does this; no credential of a program does."""


class SignInAgain(Refusal, status=403, code="sign_in_again"):
    """Whoever decides has to have signed in within the last 15 minutes."""


class ApprovalOutdated(Conflict, code="approval_outdated"):
    """What was shown is not what the call would do now."""


class AlreadyDecided(Conflict, code="approval_decided"):
    """Somebody has decided already, or it has expired."""


class ApprovalAsker(TypedDict):
    """Who asks: the key or the login, and the person that it belongs to."""

    credential: Annotated[str, Field(description="key_ of a key, gnt_ of a login")]
    name: FreeText | None
    person: str
    person_name: FreeText | None


class ApprovalDecider(TypedDict):
    """Who decided."""

    id: str
    name: FreeText | None


class ApprovalResult(TypedDict):
    """What became of the call: the status that it was answered with and, where it was refused, why."""

    status: int
    code: str | None
    error: FreeText | None


class PendingCall(TypedDict):
    """A call that a person has to approve. `open_ended`: money may become due later that nobody can tell now. Times are RFC 3339 UTC."""

    id: str
    object: Literal["approval"]
    state: ApprovalStateName
    operation: str
    sentence: Annotated[FreeText, Field(description="What the call would do; names that customers gave stand in it as quotations")]
    losses: list[Loss]
    money: Annotated[list[ApprovalAmount], Field(description="What it makes due at most, in minor units")]
    open_ended: bool
    lines: Annotated[int, Field(description="Lines that leave the stock")]
    reason: Annotated[FreeText | None, Field(description="The asker's own words, which prove nothing")]
    asked_by: ApprovalAsker
    created: str
    expires: str
    decided_by: ApprovalDecider | None
    decided: str | None
    result: ApprovalResult | None
    shown: Annotated[str, Field(description="The digest of what is shown here, which the form of the page carries")]
    page: str


class ApprovalList(ListPage):
    """Which requests."""

    state: Annotated[ApprovalStateName | None, Field(description="Only those in this state.")] = None


class ApprovalDecision(Input):
    """A person's decision about what they were shown."""

    id: Annotated[str, Field(pattern=r"^apr_[0-9a-z]{26}$", description="Approval id, apr_...")]
    decision: Annotated[Literal["approve", "decline"], Field(description="What the person says.")]
    shown: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="`shown` of the approval as the page showed it.")]


class DecidedApproval(TypedDict):
    """The request after the decision; what was approved is executed at once."""

    id: str
    object: Literal["approval"]
    state: Literal["approved", "declined"]


_APPROVAL_ID_EXAMPLE = "apr_01k0a8w7zv6q4k3m2n1p0r9s8t"
_SHOWN_EXAMPLE = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_PENDING_EXAMPLE: PendingCall = {
    "id": _APPROVAL_ID_EXAMPLE,
    "object": "approval",
    "state": "waiting",
    "operation": "operator_refund_payment",
    "sentence": "This will refund 25.00 EUR to the buyer of order ord_2041.",
    "losses": [{"kind": "money", "name": "25.00 EUR", "details": {"order": "ord_2041"}}],
    "money": [{"amount": 2500, "currency": "EUR"}],
    "open_ended": False,
    "lines": 0,
    "reason": "The buyer could not install the eSIM",
    "asked_by": {
        "credential": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "name": "support agent",
        "person": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "person_name": "Ada Berg",
    },
    "created": "2026-11-20T09:00:00Z",
    "expires": "2026-11-21T09:00:00Z",
    "decided_by": None,
    "decided": None,
    "result": None,
    "shown": _SHOWN_EXAMPLE,
    "page": f"https://api.example.com{APPROVALS_PAGE}?approval={_APPROVAL_ID_EXAMPLE}",
}


async def _seen_approvals(ctx: Ctx, _params: ApprovalList) -> str:
    """Whose requests the caller sees: all of the organisation, or those of a restricted credential itself."""
    held = ctx.row_bounds()
    del held
    return ctx.caller.key_id if ctx.caller.restricted else ""


@operation(
    "GET",
    "/v1/approvals",
    organisation=False,
    bounded=True,
    access=_seen_approvals,
    title="List approvals",
    examples=[Example("What waits for a person?", {"state": "waiting"}, {"object": "list", "data": [_PENDING_EXAMPLE], "has_more": False})],
)
async def list_approvals(ctx: Ctx, params: ApprovalList, credential: str) -> ListOf[PendingCall]:
    """List the calls that wait for a person's approval, and what became of others.

    A person decides them at `page`; nothing else does. A call that was approved is executed at once; repeat it with its idempotency key
    to get the result.

    Newest first, kept for 90 days. A credential with restrictions sees the calls that it made itself. `void`: the call could not be made
    any more when it was decided or executed; `result` says why.
    """
    store, deps = ctx.deps.store, ctx.deps
    rows = await store.read(
        list_approval_rows,
        organisation=ctx.caller.owner,
        credential=credential,
        wanted=params.state or "",
        now=ctx.now,
        after=params.starting_after,
        most=params.limit + 1,
    )
    return list_page([render_approval(row, deps) for row in rows], params.limit)


def render_approval(row: ListedApproval, deps: Deps) -> PendingCall:
    """A request as it is shown. Raises KeyUnknown."""
    content = open_content(deps.keyring, approval=row.id, organisation=row.organisation, sealed=row.request)
    decider: ApprovalDecider | None = None if row.decided_by is None else {"id": row.decided_by, "name": row.decider}
    return {
        "id": row.id,
        "object": "approval",
        "state": cast(ApprovalStateName, row.state),
        "operation": row.operation,
        "sentence": content["sentence"],
        "losses": content["losses"],
        "money": amounts_to_show(content),
        "open_ended": content["open_ended"],
        "lines": content["lines"],
        "reason": content["reason"],
        "asked_by": {
            "credential": row.credential,
            "name": row.credential_name,
            "person": row.principal,
            "person_name": row.asker,
        },
        "created": rfc3339_utc(row.created),
        "expires": rfc3339_utc(row.expires_at),
        "decided_by": decider,
        "decided": None if row.decided_at is None else rfc3339_utc(row.decided_at),
        "result": _result_of(row, deps.keyring),
        "shown": row.digest.hex(),
        "page": f"{deps.site.base_url}{APPROVALS_PAGE}?approval={row.id}",
    }


def amounts_to_show(content: ApprovalContent) -> list[ApprovalAmount]:
    """What the call makes due. Nothing due beside what nobody can tell would be read as "it costs nothing", so that is left out."""
    return [each for each in content["money"] if each["amount"] or not content["open_ended"]]


def _result_of(row: ListedApproval, keyring: Keyring) -> ApprovalResult | None:
    if row.status is None:
        return None
    if row.outcome is None:
        return {"status": row.status, "code": None, "error": None}
    body: dict[str, object] = orjson.loads(keyring.open(row.outcome, org_id=row.organisation, field=approval_field(row.id)))
    return {"status": row.status, "code": str(body.get("code", "")), "error": str(body.get("error", ""))}


async def _request_at_page(ctx: Ctx, params: ApprovalDecision) -> ApprovalRow:
    """The request, for somebody whose own browser session of the pages makes this call. Raises PageRequired for every other caller."""
    if ctx.caller.kind != "session" or ctx.caller.signed_in is None:
        raise PageRequired(
            "A person decides this on a page of the service, signed in there; no key, login or session token does, and nothing was done",
            hint=f"Open {ctx.deps.site.base_url}{APPROVALS_PAGE}?approval={params.id}",
        )
    row = await waiting_row(ctx.deps, params.id, ctx.caller.owner)
    if row is None:
        raise NotFound("There is no approval with this id in your organisation", param="id", hint="GET /v1/approvals lists them")
    return row


@operation(
    "POST",
    "/v1/approvals/{id}/decision",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    organisation=False,
    charged=False,
    tool=False,
    waits=False,
    access=_request_at_page,
    title="Decide approval",
    raises=[PageRequired, SignInAgain, NotFound, AlreadyDecided, ApprovalOutdated, ApprovalVoid, Restricted],
    examples=[
        Example(
            "Yes, do it",
            {"id": _APPROVAL_ID_EXAMPLE, "decision": "approve", "shown": _SHOWN_EXAMPLE},
            {"id": _APPROVAL_ID_EXAMPLE, "object": "approval", "state": "approved"},
        )
    ],
)
async def decide_approval(ctx: Ctx, params: ApprovalDecision, row: ApprovalRow) -> DecidedApproval:
    """Approve or decline a call that waits; only a person at the page of approvals.

    Every API refuses it with 403 `page_required`, whatever the credential: a program never approves what it asked for.

    The page asks for a sign-in of the last 15 minutes. What is approved is what was shown: where the call would do something else now,
    it is shown again (409 `approval_outdated`). Both who asks and who approves must be allowed the call at that moment. An approved call
    is executed at once, and once, under the credential that asked for it.
    """
    if ctx.now - (ctx.caller.signed_in or 0.0) > RECENT_SIGN_IN_SECONDS:
        raise SignInAgain("You signed in more than 15 minutes ago", hint="Sign in again, and decide then")
    if state_at(row, ctx.now) != "waiting":
        raise _already_decided(row, ctx.now)
    if row.digest.hex() != params.shown:
        raise _outdated()
    if params.decision == "decline":
        return await _settle_decision(ctx, row, "declined")
    await _check_approval(ctx, row)
    decided = await _settle_decision(ctx, row, "approved")
    with anyio.CancelScope(shield=True):  # it is decided: whoever hangs up does not stop it
        await _execute(ctx, row)
    return decided


def _already_decided(row: ApprovalRow, now: float) -> AlreadyDecided:
    words = {"expired": "has expired", "declined": "was declined", "void": "cannot be made any more"}
    became = words.get(state_at(row, now), "was approved")
    return AlreadyDecided(f"This call {became}; nothing was done now", hint="The list shows what became of it")


def _outdated() -> ApprovalOutdated:
    return ApprovalOutdated(
        "What this call would do has changed since it was shown to you; nothing was done",
        hint="Look at it again: it is shown as it would be now",
    )


async def _check_approval(ctx: Ctx, row: ApprovalRow) -> None:
    """Refuses what is not what was shown any more, or what one of the two may not do. Waits for the network."""
    deps = ctx.deps
    try:
        asker = await read_asker(deps, row, ctx.now)
        terms = await terms_for_asker(deps, row, asker)
    except Refusal as refusal:
        if is_temporary(refusal) or isinstance(refusal, StoreUnavailable):
            raise
        await end_request(deps, row, "void", refusal.status, orjson.dumps(refusal.body(ctx.request_id)))
        raise ApprovalVoid(f"This call cannot be made any more: {refusal.message}") from None
    if terms is None:
        await execute_approved(deps, row)  # its key has an answer: there is nothing left to decide
        raise AlreadyDecided("This call was made meanwhile, with the same idempotency key; nothing was done now")
    if terms.digest != row.digest:
        await _show_anew(ctx, row, terms)
        raise _outdated()
    await check_approver(deps, row, ctx.caller, asker)


async def _show_anew(ctx: Ctx, row: ApprovalRow, terms: ApprovalTerms) -> None:
    """Keeps what the call would do now, so that the page shows it."""
    keyring = ctx.deps.keyring
    held = open_content(keyring, approval=row.id, organisation=row.organisation, sealed=row.request)
    content: ApprovalContent = {
        **held,
        "sentence": terms.sentence,
        "losses": list(terms.losses),
        "money": [{"amount": amount, "currency": currency} for amount, currency in terms.money],
        "open_ended": terms.open_ended,
        "lines": terms.lines,
    }
    sealed = seal_content(keyring, content, approval=row.id, organisation=row.organisation)
    await ctx.deps.store.write(renew_approval, approval=row.id, request=sealed, terms=terms.digest, now=ctx.now)


async def _settle_decision(ctx: Ctx, row: ApprovalRow, decision: Literal["approved", "declined"]) -> DecidedApproval:
    """The one commit of a decision: of two who decide at once one gets Conflict."""
    process, now = ctx.deps.replica if decision == "approved" else "", ctx.deps.clock.now()
    named = {"approval": row.id, "decision": decision, "decider": ctx.principal, "process": process}

    def decide(connection: Connection) -> None:
        if not decide_waiting(connection, shown=row.digest, now=now, **named):
            raise AlreadyDecided("Somebody has decided this at the same moment, or it has just expired", hint="Load the page again")
        if ctx.caller.organisation:
            told: DecidedCall = {
                "approval": row.id,
                "operation": row.operation,
                "credential": row.credential,
                "decision": decision,
                "decided_by": ctx.principal,
            }
            log_event(connection, event=new_event(WORK_APPROVAL_DECIDED, told, organisation=row.organisation, ids=ctx.deps.ids, now=now))

    ctx.record_change(f"{decision} {row.operation} of {row.credential} ({row.id})")
    answer: DecidedApproval = {"id": row.id, "object": "approval", "state": decision}
    return await ctx.settle(answer, decide)


async def _execute(ctx: Ctx, row: ApprovalRow) -> None:
    """Executes what was approved just now. Where the store fails, the worker does it: the decision is committed."""
    try:
        await execute_approved(ctx.deps, row)
    except StoreUnavailable:
        return
