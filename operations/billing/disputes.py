"""Disputes: a payer's bank asks for money back, and the answer to it."""

from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import Field

from clients.payments.records import Dispute, EvidenceTexts
from operations.billing.charges import PaymentRecordPage, read_payment_records
from operations.deps import Ctx, Deps
from operations.ledger.payment_accounts import ProcessorId, require_payment_account
from operations.ledger.payment_attempts import processor_key_of
from operations.ledger.payment_intake import take_processor_record
from operations.ledger.payment_records import CLOSED_DISPUTE_STATUSES, DisputeRecord, load_payment_record, render_dispute
from operations.vocabulary import ListOf, list_page
from registry.errors import BadRequest, Conflict, NotFound, PaymentsError, PaymentsRefused
from registry.operation import Example, Input, Once, Scope, SpendKind, operation
from storage.connect_accounts import ConnectAccount
from storage.engine.sql import Connection
from storage.payment_records import find_payment_record, lock_payment_account

EVIDENCE_TEXT_LIMIT, EVIDENCE_TOTAL_LIMIT = 20_000, 150_000
UNANSWERED_DISPUTE_STATUSES = frozenset({"needs_response", "warning_needs_response"})
# The longest evidence there may be, where every character takes three bytes and most are escaped by nobody.
EVIDENCE_BODY_LIMIT = 512 * 1024
EvidenceText = Annotated[str | None, Field(min_length=1, max_length=EVIDENCE_TEXT_LIMIT)]

DISPUTE_EXAMPLE: DisputeRecord = {
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
    access_activity_log: Annotated[EvidenceText, Field(description="When and from where the buyer used the eSIM.")] = None
    cancellation_policy_disclosure: Annotated[EvidenceText, Field(description="How the buyer was shown the rules for cancelling.")] = None
    cancellation_rebuttal: Annotated[EvidenceText, Field(description="Why it was not cancelled in time.")] = None
    customer_email_address: Annotated[EvidenceText, Field(description="The buyer's mail address.")] = None
    customer_name: Annotated[EvidenceText, Field(description="The buyer's name.")] = None
    customer_purchase_ip: Annotated[EvidenceText, Field(description="The address that the buyer bought from.")] = None
    duplicate_charge_explanation: Annotated[EvidenceText, Field(description="Why the two charges are for two things.")] = None
    duplicate_charge_id: Annotated[EvidenceText, Field(description="The other charge, ch_...")] = None
    product_description: Annotated[EvidenceText, Field(description="What was sold.")] = None
    refund_policy_disclosure: Annotated[EvidenceText, Field(description="How the buyer was shown the rules for refunds.")] = None
    refund_refusal_explanation: Annotated[EvidenceText, Field(description="Why no refund is due.")] = None
    service_date: Annotated[EvidenceText, Field(description="When the eSIM was delivered, in words.")] = None
    uncategorized_text: Annotated[EvidenceText, Field(description="Anything else.")] = None

    @property
    def evidence(self) -> EvidenceTexts:
        texts = self.model_dump(exclude={"id", "submit"}, exclude_none=True)
        return cast(EvidenceTexts, texts)


@operation(
    "GET",
    "/v1/operator-billing/disputes",
    title="List disputes",
    raises=[BadRequest],
    examples=[Example("Which payments are disputed?", {"limit": 20}, {"object": "list", "data": [DISPUTE_EXAMPLE], "has_more": False})],
)
async def operator_billing_list_disputes(ctx: Ctx, params: PaymentRecordPage) -> ListOf[DisputeRecord]:
    """List disputes of your charges, newest first.

    One that needs a response is lost after `evidence_due_by`: answer with operator_billing_submit_dispute_evidence.

    Amounts are minor units. Empty while no account is connected.
    """
    return list_page([load_payment_record(row, DisputeRecord) for row in await read_payment_records(ctx, "dispute", params)], params.limit)


@dataclass(frozen=True, slots=True)
class OwnDispute:
    """The caller's account, and the dispute as it is known."""

    account: ConnectAccount
    known: DisputeRecord


async def own_dispute(ctx: Ctx, params: DisputeEvidence) -> OwnDispute:
    """The dispute is in the caller's own account: by our records, else by the processor's."""
    require_evidence_texts(params)
    account = await require_payment_account(ctx)
    record = await ctx.deps.store.read(find_payment_record, account=account.account, kind="dispute", id=params.id)
    if record is not None:
        return OwnDispute(account, load_payment_record(record, DisputeRecord))
    ctx.reached_upstream = True
    try:
        found = await ctx.deps.payments.find_dispute(account.account, params.id)
    except NotFound:
        raise NotFound("Your account has no dispute with this id", param="id", hint="operator_billing_list_disputes names yours") from None
    return OwnDispute(account, render_dispute(found))


def require_evidence_texts(params: DisputeEvidence) -> None:
    """Something is told, and not too much. Choice: an answer without a text is refused, since submitting one loses the dispute."""
    length = sum(map(len, params.evidence.values()))  # pyright: ignore[reportArgumentType]  # all its members are texts
    if not length:
        raise BadRequest(
            "There is no evidence in it: give at least one text; nothing was done",
            param="uncategorized_text",
            hint="What fits no other field goes here",
        )
    if length > EVIDENCE_TOTAL_LIMIT:
        raise BadRequest(
            f"The texts of evidence have {length} characters together; at most {EVIDENCE_TOTAL_LIMIT} are taken",
            param="uncategorized_text",
            hint="Shorten the longest of them",
        )


def require_unanswered_dispute(dispute: DisputeRecord) -> None:
    """Evidence is taken once, and by a dispute that is not decided. An inquiry that became a dispute is answered once more."""
    if dispute["status"] in CLOSED_DISPUTE_STATUSES:
        raise Conflict(
            f"The dispute is {dispute['status']}: it is closed and takes no more evidence; nothing was done", code="dispute_closed"
        )
    if dispute["evidence_submissions"] and dispute["status"] not in UNANSWERED_DISPUTE_STATUSES:
        raise Conflict(
            f"Evidence was submitted to this dispute already, which is {dispute['status']}, and the bank takes it once; nothing was done",
            code="evidence_submitted",
            hint="Nothing is left to do: the bank decides, and operator_billing_list_disputes shows what it decided",
        )


@operation(
    "POST",
    "/v1/operator-billing/disputes/{id}/evidence",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.WRITE,
    processor=True,
    once=Once(shown=True),
    access=own_dispute,
    body_limit=EVIDENCE_BODY_LIMIT,
    title="Submit dispute evidence",
    raises=[NotFound, Conflict, PaymentsRefused, PaymentsError],
    examples=[
        Example(
            "The eSIM was used",
            {"id": DISPUTE_EXAMPLE["id"], "access_activity_log": "First attached in Norway on 2026-11-20, 412 MB used", "submit": True},
            DISPUTE_EXAMPLE,
        )
    ],
)
async def operator_billing_submit_dispute_evidence(ctx: Ctx, params: DisputeEvidence, own: OwnDispute) -> DisputeRecord:
    """Answer a dispute with evidence, and send it to the payer's bank.

    Submitting is final: the bank takes evidence once, and more of it is 409 `evidence_submitted`. With `submit: false` it is kept as a
    draft at the processor.

    Texts that are left out stay as they were told before. The key is passed on to the processor.
    """
    require_unanswered_dispute(own.known)  # not sooner: a key that submitted it is answered as before
    deps, account = ctx.deps, own.account
    key = processor_key_of("evidence", ctx.call.idempotency_key, deps.ids.new("att_"))
    ctx.reached_upstream = True
    dispute = await deps.payments.answer_dispute(account.account, params.id, params.evidence, submit=params.submit, key=key)
    ctx.at_close(keep_dispute, deps=deps, account=account, dispute=dispute, now=int(ctx.now))
    return render_dispute(dispute)


def keep_dispute(connection: Connection, *, deps: Deps, account: ConnectAccount, dispute: Dispute, now: float) -> None:
    owner = lock_payment_account(connection, account=account.account)
    organisation = owner or account.organisation
    take_processor_record(connection, deps=deps, account=account.account, organisation=organisation, thing=dispute, as_of=now, now=now)
