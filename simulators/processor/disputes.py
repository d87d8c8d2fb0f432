"""Disputes, in which a payer's bank asks for the money back: evidence, decisions, and the calls about them."""

from typing import Literal

from simulators.processor.balance import balance_transaction_json, book_transaction
from simulators.processor.call import ApiCall, ApiNoun, CallForm, ProcessorRefusal, find_row, invalid_parameter, labelled_json
from simulators.processor.state import PROCESSOR_DAY_SECONDS, Dispute, JsonObject, ProcessorState

DISPUTES = ApiNoun(
    "dispute",
    "disputes",
    lambda book: book.disputes,
    lambda state, account, row: dispute_json(state, account, row),
    filters={"charge": "charge", "payment_intent": "intent"},
)
DISPUTE_DUE_DAYS = 9
DISPUTE_FEE = 1500
"""In minor units; Choice: kept also where the dispute is won."""

CLOSED_STATUSES = ("won", "lost", "warning_closed")
EVIDENCE_LIMIT = 150_000
ANSWERED_STATUSES = {"needs_response": "under_review", "warning_needs_response": "warning_under_review"}
EVIDENCE_TEXTS = (
    "access_activity_log billing_address cancellation_policy_disclosure cancellation_rebuttal customer_email_address customer_name "
    "customer_purchase_ip duplicate_charge_explanation duplicate_charge_id product_description refund_policy_disclosure "
    "refund_refusal_explanation service_date shipping_address shipping_carrier shipping_date shipping_tracking_number uncategorized_text"
)
EVIDENCE_FILES = (
    "cancellation_policy customer_communication customer_signature duplicate_charge_documentation receipt refund_policy "
    "service_documentation shipping_documentation uncategorized_file"
)


def open_dispute(
    state: ProcessorState, account: str, charge: str, reason: str = "fraudulent", *, inquiry: bool = False, amount: int | None = None
) -> Dispute:
    """A payer's bank asks for the money back, and takes it at once; with `inquiry` it only asks."""
    book = state.book(account)
    row = find_row(book.charges, charge, "charge")
    if row.disputed or row.status != "succeeded":
        raise ProcessorRefusal(f"Charge {charge} cannot be disputed: it is {'disputed already' if row.disputed else row.status}.")
    dispute = Dispute(
        id=state.new_id("du_"),
        created=state.now(),
        amount=row.amount if amount is None else amount,
        currency=row.currency,
        charge=row.id,
        reason=reason,
        status="warning_needs_response" if inquiry else "needs_response",
        due_by=state.now() + DISPUTE_DUE_DAYS * PROCESSOR_DAY_SECONDS,
        intent=row.intent,
        brand=row.brand,
    )
    book.disputes[dispute.id] = dispute
    row.disputed = True
    DISPUTES.notify(state, account, dispute, "charge.dispute.created")
    if not inquiry:
        move_disputed_money(state, account, dispute, -1)
        DISPUTES.notify(state, account, dispute, "charge.dispute.funds_withdrawn")
    return dispute


def move_disputed_money(state: ProcessorState, account: str, dispute: Dispute, sign: int) -> None:
    """Takes the disputed amount and a fee out of the balance (`sign` -1), or puts the amount back (1)."""
    fee = DISPUTE_FEE if sign < 0 else 0
    amount = sign * dispute.amount
    txn = book_transaction(state, account, amount=amount, currency=dispute.currency, type="adjustment", source=dispute.id, fee=fee)
    dispute.txns.append(txn.id)


def close_dispute(state: ProcessorState, account: str, dispute: str, outcome: Literal["won", "lost"]) -> Dispute:
    row = find_row(state.book(account).disputes, dispute, "dispute")
    if row.status in CLOSED_STATUSES:
        raise ProcessorRefusal("This dispute is already closed")
    inquiry = row.status.startswith("warning_")
    row.status = "warning_closed" if inquiry else outcome
    DISPUTES.notify(state, account, row, "charge.dispute.closed")
    if outcome == "won" and not inquiry:
        move_disputed_money(state, account, row, 1)
        DISPUTES.notify(state, account, row, "charge.dispute.funds_reinstated")
    return row


def update_dispute(call: ApiCall, form: CallForm) -> JsonObject:
    """Add evidence; it goes to the bank at once, unless `submit` is false."""
    row = DISPUTES.find(call)
    evidence, submit = read_evidence(form), form.flag("submit")
    metadata = form.metadata(row.metadata)
    form.done()
    if row.status in CLOSED_STATUSES:
        raise ProcessorRefusal("This dispute is already closed")
    if evidence and row.status not in ANSWERED_STATUSES:
        raise ProcessorRefusal("This dispute is already under review: evidence can be submitted only once.")
    row.metadata = metadata
    row.evidence = {name: text for name, text in {**row.evidence, **evidence}.items() if text}
    if submit is not False and (evidence or submit) and row.status in ANSWERED_STATUSES:
        row.status, row.submissions = ANSWERED_STATUSES[row.status], row.submissions + 1
    DISPUTES.notify(call.state, call.account, row, "charge.dispute.updated")
    # as in the real test mode, a certain text decides a dispute as soon as it is submitted
    outcome = {"winning_evidence": "won", "losing_evidence": "lost"}.get(row.evidence.get("uncategorized_text", ""))
    if row.submissions and outcome and row.status not in CLOSED_STATUSES:
        close_dispute(call.state, call.account, row.id, "won" if outcome == "won" else "lost")
    return DISPUTES.answer(call, row)


def read_evidence(form: CallForm) -> dict[str, str]:
    """The evidence that `form` gives; an empty text removes a former one."""
    part = form.part("evidence")
    if part is None:
        return {}
    found_texts = {name: part.raw(name) for name in EVIDENCE_TEXTS.split()}
    for name in EVIDENCE_FILES.split():
        file = part.raw(name)
        if file:  # Choice: files cannot be uploaded here, so none is known
            raise ProcessorRefusal(f"No such file upload: '{file}'", code="resource_missing", param=part.at(name), early=True)
    given = {name: text for name, text in found_texts.items() if text is not None}
    if sum(map(len, given.values())) > EVIDENCE_LIMIT:
        raise invalid_parameter(f"The combined character count of all evidence fields is limited to {EVIDENCE_LIMIT}.", "evidence")
    return given


def accept_dispute(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = DISPUTES.find(call)
    if row.status not in ANSWERED_STATUSES:
        raise ProcessorRefusal(
            "This dispute is already closed" if row.status in CLOSED_STATUSES else "This dispute is already under review."
        )
    close_dispute(call.state, call.account, row.id, "lost")
    return DISPUTES.answer(call, row)


def dispute_json(state: ProcessorState, account: str, row: Dispute) -> JsonObject:
    return {
        **labelled_json(state, row, "dispute", "id amount charge created currency reason status"),
        "balance_transactions": [balance_transaction_json(state, state.book(account).txns[id]) for id in row.txns],
        "enhanced_eligibility_types": [],
        "evidence": {**{name: row.evidence.get(name) for name in f"{EVIDENCE_TEXTS} {EVIDENCE_FILES}".split()}, "enhanced_evidence": {}},
        "evidence_details": {
            "due_by": row.due_by,
            "enhanced_eligibility": {},
            "has_evidence": bool(row.evidence),
            "past_due": state.now() > row.due_by and row.submissions == 0,
            "submission_count": row.submissions,
            "submission_method": "manual" if row.submissions else "not_submitted",
        },
        "is_charge_refundable": row.status.startswith("warning_"),
        "payment_intent": row.intent,
        "payment_method_details": {
            "card": {
                "brand": row.brand,
                "case_type": "inquiry" if row.status.startswith("warning_") else "chargeback",
                "network": row.brand,
                "network_reason_code": "10.4" if row.reason == "fraudulent" else "13.1",
            },
            "type": "card",
        },
    }
