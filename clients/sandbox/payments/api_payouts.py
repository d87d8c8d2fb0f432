"""Calls about money sent to the account's bank."""

from clients.sandbox.payments import render_money_out
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Payout
from clients.sandbox.payments.form import Form
from clients.sandbox.payments.ledger import funds
from clients.sandbox.payments.news import tell_payout
from clients.sandbox.payments.passing import give_back, pay_out
from clients.sandbox.payments.refusal import Members, Refusal

SHORT = (
    "You have insufficient funds in your Stripe account for this transfer. Your card balance is too low.  You can use the the "
    "/v1/balance endpoint to view your Stripe balance (for more details, see stripe.com/docs/api#balance)."
)


def create_payout(call: Call, form: Form) -> Members:
    """By hand, out of what is available."""
    amount, currency = form.need_integer("amount", 1), form.need_currency()
    method = form.choice("method", ("instant", "standard"))
    form.choice("source_type", ("bank_account", "card", "fpx"))
    destination, description = form.text("destination"), form.text("description")
    descriptor, metadata = form.text("statement_descriptor", 22), form.metadata()
    form.done()
    owner = call.owner
    if not owner.payouts_enabled or not owner.bank:
        raise Refusal("Cannot create payouts: this account has payouts disabled.", code="payouts_not_allowed")
    if method == "instant":
        raise Refusal("Your account cannot make instant payouts.", code="instant_payouts_unsupported", param="method")
    sums = funds(call.state, call.account)
    if currency not in sums:
        raise Refusal(f"Sorry, you don't have any external accounts in that currency ({currency}).", param="currency")
    if destination not in (None, owner.bank):
        raise Refusal(f"No such external account: '{destination}'", code="resource_missing", param="destination")
    if sums[currency].available < amount:
        raise Refusal(SHORT, code="balance_insufficient", param="amount")
    row = pay_out(call.state, owner, amount=amount, currency=currency)
    row.description, row.statement_descriptor, row.metadata = description, descriptor, metadata
    tell_payout(call.state, call.account, row, "payout.created")
    return render_money_out.payout(call.state, row)


def payout_of(call: Call) -> Payout:
    """The payout of the path."""
    return found(call.book.payouts, call.ids[0], "payout")


def retrieve_payout(call: Call, form: Form) -> Members:
    """One payout."""
    form.done()
    return render_money_out.payout(call.state, payout_of(call))


def cancel_payout(call: Call, form: Form) -> Members:
    """While it is pending."""
    form.done()
    row = payout_of(call)
    if row.automatic:
        raise Refusal("You can only cancel payouts that you created manually.")
    if row.status != "pending":
        raise Refusal(f"Payouts can only be canceled while they are pending. This payout is {row.status}.")
    give_back(call.state, call.account, row, "payout_cancel")
    row.status = "canceled"
    tell_payout(call.state, call.account, row, "payout.updated", "payout.canceled")
    return render_money_out.payout(call.state, row)


def list_payouts(call: Call, form: Form) -> Members:
    """Newest first."""
    status, destination = form.text("status"), form.text("destination")
    rows = {id: row for id, row in call.book.payouts.items() if status in (None, row.status) and destination in (None, row.destination)}
    return listed(
        form, rows, lambda row: render_money_out.payout(call.state, row), url="/v1/payouts", kind="payout", when=lambda row: row.created
    )
