"""Disputes: a payer's bank asks for money back, and the answer to it."""

from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import Field

from clients.payments.records import Dispute, Evidence
from operations.billing.record_page import RecordPage, read_page
from operations.deps import Ctx, Deps
from operations.services.payments.connect import require_account
from operations.services.payments.payment_attempts import processor_key
from operations.services.payments.payment_intake import take_word
from operations.services.payments.payment_records import CLOSED, DisputeRecord, dispute_shown, shown
from operations.services.payments.processor_ids import ProcessorId
from operations.vocabulary import ListOf, page
from registry.errors import BadRequest, Conflict, NotFound
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, Once, operation
from registry.payments_errors import PaymentsError, PaymentsRefused
from storage.connection import Connection
from storage.money.connect import Connected
from storage.money.payment_records import find_record, lock_account

LONGEST, LONGEST_TOGETHER = 20_000, 150_000
WAITING = frozenset({"needs_response", "warning_needs_response"})
# The longest evidence there may be, where every character takes three bytes and most are escaped by nobody.
BODY_LIMIT = 512 * 1024
Told = Annotated[str | None, Field(min_length=1, max_length=LONGEST)]

DISPUTE: DisputeRecord = {
    "id": "du_1QxAbCdEfGhIjKlM",
    "object": "dispute",
    "amount": 1490,
    "currency": "EUR",
    "status": "under_review",
    "reason": "product_not_received",
    "charge": "ch_3QxAbCdEfGhIjKlM",
    "payment_intent": "pi_3QxAbCdEfGhIjKlM",
    "evidence_due_by": 1796083199,
    "evidence_submissions": 1,
    "created": 1795255200,
}


class DisputeEvidence(Input):
    """What is told the payer's bank: at least one text, each at most 20,000 characters, 150,000 together."""

    id: Annotated[ProcessorId, Field(description="Dispute id, du_...")]
    submit: Annotated[bool, Field(description="Send it to the bank now, which takes it once. false: keep it as a draft.")] = True
    access_activity_log: Annotated[Told, Field(description="When and from where the buyer used the eSIM.")] = None
    cancellation_policy_disclosure: Annotated[Told, Field(description="How the buyer was shown the rules for cancelling.")] = None
    cancellation_rebuttal: Annotated[Told, Field(description="Why it was not cancelled in time.")] = None
    customer_email_address: Annotated[Told, Field(description="The buyer's mail address.")] = None
    customer_name: Annotated[Told, Field(description="The buyer's name.")] = None
    customer_purchase_ip: Annotated[Told, Field(description="The address that the buyer bought from.")] = None
    duplicate_charge_explanation: Annotated[Told, Field(description="Why the two charges are for two things.")] = None
    duplicate_charge_id: Annotated[Told, Field(description="The other charge, ch_...")] = None
    product_description: Annotated[Told, Field(description="What was sold.")] = None
    refund_policy_disclosure: Annotated[Told, Field(description="How the buyer was shown the rules for refunds.")] = None
    refund_refusal_explanation: Annotated[Told, Field(description="Why no refund is due.")] = None
    service_date: Annotated[Told, Field(description="When the eSIM was delivered, in words.")] = None
    uncategorized_text: Annotated[Told, Field(description="Anything else.")] = None

    @property
    def evidence(self) -> Evidence:
        """The texts that were given."""
        texts = self.model_dump(exclude={"id", "submit"}, exclude_none=True)
        return cast(Evidence, texts)


@operation(
    "GET",
    "/v1/operator-billing/disputes",
    title="List disputes",
    raises=[BadRequest],
    examples=[Example("Which payments are disputed?", {"limit": 20}, {"object": "list", "data": [DISPUTE], "has_more": False})],
)
async def operator_billing_list_disputes(ctx: Ctx, params: RecordPage) -> ListOf[DisputeRecord]:
    """List disputes of your charges, newest first.

    One that needs a response is lost after `evidence_due_by`: answer with operator_billing_submit_dispute_evidence.

    Amounts are minor units. Empty while no account is connected.
    """
    return page([shown(row, DisputeRecord) for row in await read_page(ctx, "dispute", params)], params.limit)


@dataclass(frozen=True, slots=True)
class OwnDispute:
    """The caller's account, and the dispute as it is known."""

    account: Connected
    known: DisputeRecord


async def own_dispute(ctx: Ctx, params: DisputeEvidence) -> OwnDispute:
    """The dispute is in the caller's own account: by our records, else by the processor's."""
    require_texts(params)
    account = await require_account(ctx)
    record = await ctx.deps.store.read(find_record, account=account.account, kind="dispute", id=params.id)
    if record is not None:
        return OwnDispute(account, shown(record, DisputeRecord))
    ctx.reached_upstream = True
    try:
        found = await ctx.deps.payments.find_dispute(account.account, params.id)
    except NotFound:
        raise no_such_dispute() from None
    return OwnDispute(account, dispute_shown(found))


def require_texts(params: DisputeEvidence) -> None:
    """Something is told, and not too much. Choice: an answer without a text is refused, since submitting one loses the dispute."""
    length = sum(map(len, params.evidence.values()))  # pyright: ignore[reportArgumentType]  # all its members are texts
    if not length:
        raise BadRequest(
            "There is no evidence in it: give at least one text; nothing was done",
            param="uncategorized_text",
            hint="What fits no other field goes here",
        )
    if length > LONGEST_TOGETHER:
        raise BadRequest(
            f"The texts of evidence have {length} characters together; at most {LONGEST_TOGETHER} are taken",
            param="uncategorized_text",
            hint="Shorten the longest of them",
        )


def require_unanswered(dispute: DisputeRecord) -> None:
    """Evidence is taken once, and by a dispute that is not decided. An inquiry that became a dispute is answered once more."""
    if dispute["status"] in CLOSED:
        raise Conflict(
            f"The dispute is {dispute['status']}: it is closed and takes no more evidence; nothing was done", code="dispute_closed"
        )
    if dispute["evidence_submissions"] and dispute["status"] not in WAITING:
        raise Conflict(
            f"Evidence was submitted to this dispute already, which is {dispute['status']}, and the bank takes it once; nothing was done",
            code="evidence_submitted",
            hint="Nothing is left to do: the bank decides, and operator_billing_list_disputes shows what it decided",
        )


def no_such_dispute() -> NotFound:
    """Unknown disputes and those of other accounts are answered alike."""
    return NotFound("Your account has no dispute with this id", param="id", hint="operator_billing_list_disputes names yours")


@operation(
    "POST",
    "/v1/operator-billing/disputes/{id}/evidence",
    scope=Scope.WRITE,
    processor=True,
    once=Once(shown=True),
    access=own_dispute,
    body_limit=BODY_LIMIT,
    title="Submit dispute evidence",
    raises=[NotFound, Conflict, PaymentsRefused, PaymentsError],
    examples=[
        Example(
            "The eSIM was used",
            {"id": DISPUTE["id"], "access_activity_log": "First attached in Norway on 2026-11-20, 412 MB used", "submit": True},
            DISPUTE,
        )
    ],
)
async def operator_billing_submit_dispute_evidence(ctx: Ctx, params: DisputeEvidence, own: OwnDispute) -> DisputeRecord:
    """Answer a dispute with evidence, and send it to the payer's bank.

    Submitting is final: the bank takes evidence once, and more of it is 409 `evidence_submitted`. With `submit: false` it is kept as a
    draft at the processor.

    Texts that are left out stay as they were told before. The key is passed on to the processor.
    """
    require_unanswered(own.known)  # not sooner: a key that submitted it is answered as before
    deps, account = ctx.deps, own.account
    key = processor_key("evidence", ctx.call.idempotency_key, deps.ids.new("att_"))
    ctx.reached_upstream = True
    dispute = await deps.payments.answer_dispute(account.account, params.id, params.evidence, submit=params.submit, key=key)
    ctx.at_close(keep, deps=deps, account=account, dispute=dispute, now=int(ctx.now))
    return dispute_shown(dispute)


def keep(connection: Connection, *, deps: Deps, account: Connected, dispute: Dispute, now: float) -> None:
    """The dispute as it stands now, of whoever has the account by now."""
    owner = lock_account(connection, account=account.account)
    word = {"account": account.account, "organisation": owner or account.organisation}
    take_word(connection, deps=deps, **word, thing=dispute, as_of=now, now=now)
