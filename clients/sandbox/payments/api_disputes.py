"""Calls about disputes: what is told in answer to a payer's bank."""

from clients.sandbox.payments import render_money_out
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Dispute
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.news import tell_dispute
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.render_money_out import FILES, TEXTS
from clients.sandbox.payments.trouble import OVER, close_dispute

LONGEST_EVIDENCE = 150_000
ANSWERS = {"needs_response": "under_review", "warning_needs_response": "warning_under_review"}


def dispute_of(call: Call) -> Dispute:
    """The dispute of the path."""
    return found(call.book.disputes, call.ids[0], "dispute")


def retrieve_dispute(call: Call, form: Form) -> Members:
    """One dispute."""
    form.done()
    return render_money_out.dispute(call.state, dispute_of(call), call.book)


def list_disputes(call: Call, form: Form) -> Members:
    """Newest first."""
    charge, intent = form.text("charge"), form.text("payment_intent")
    rows = {id: row for id, row in call.book.disputes.items() if charge in (None, row.charge) and intent in (None, row.intent)}
    return listed(
        form,
        rows,
        lambda row: render_money_out.dispute(call.state, row, call.book),
        url="/v1/disputes",
        kind="dispute",
        when=lambda row: row.created,
    )


def update_dispute(call: Call, form: Form) -> Members:
    """Add evidence; it goes to the bank at once, unless `submit` is false."""
    row = dispute_of(call)
    evidence, submit = read_evidence(form), form.flag("submit")
    metadata = form.metadata(row.metadata)
    form.done()
    if row.status in OVER:
        raise Refusal("This dispute is already closed")
    if evidence and row.status not in ANSWERS:
        raise Refusal("This dispute is already under review: evidence can be submitted only once.")
    row.metadata = metadata
    row.evidence = {name: text for name, text in {**row.evidence, **evidence}.items() if text}
    if submit is not False and (evidence or submit) and row.status in ANSWERS:
        row.status, row.submissions = ANSWERS[row.status], row.submissions + 1
    tell_dispute(call.state, call.account, row, "charge.dispute.updated")
    decide(call, row)
    return render_money_out.dispute(call.state, row, call.book)


def read_evidence(form: Form) -> dict[str, str]:
    """What is told; a text that is empty is taken back."""
    part = form.part("evidence")
    if part is None:
        return {}
    found_texts = {name: part.raw(name) for name in TEXTS}
    for name in FILES:
        file = part.raw(name)
        if file:  # Choice: files cannot be uploaded here, so none is known
            raise Refusal(f"No such file upload: '{file}'", code="resource_missing", param=part.at(name), early=True)
    given = {name: text for name, text in found_texts.items() if text is not None}
    if sum(map(len, given.values())) > LONGEST_EVIDENCE:
        raise invalid(f"The combined character count of all evidence fields is limited to {LONGEST_EVIDENCE}.", "evidence")
    return given


def decide(call: Call, row: Dispute) -> None:
    """As in the real test mode, a certain text decides a dispute as soon as it is submitted."""
    outcome = {"winning_evidence": "won", "losing_evidence": "lost"}.get(row.evidence.get("uncategorized_text", ""))
    if row.submissions and outcome and row.status not in OVER:
        close_dispute(call.state, call.account, row.id, "won" if outcome == "won" else "lost")


def accept_dispute(call: Call, form: Form) -> Members:
    """Give in."""
    form.done()
    row = dispute_of(call)
    if row.status not in ANSWERS:
        raise Refusal("This dispute is already closed" if row.status in OVER else "This dispute is already under review.")
    close_dispute(call.state, call.account, row.id, "lost")
    return render_money_out.dispute(call.state, row, call.book)
