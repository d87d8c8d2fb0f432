"""Payouts: money sent to the account's bank, by hand and by schedule; calls about them, and how they go over the wire."""

import calendar
from datetime import UTC, datetime

from simulators.processor.balance import account_funds, book_transaction
from simulators.processor.call import ApiCall, ApiNoun, CallForm, ProcessorRefusal, find_row, labelled_json, null_members, row_members
from simulators.processor.state import PROCESSOR_DAY_SECONDS, JsonObject, Payout, ProcessorAccount, ProcessorState

PAYOUTS = ApiNoun(
    "payout",
    "payouts",
    lambda book: book.payouts,
    lambda state, _, row: payout_json(state, row),
    filters={"status": "status", "destination": "destination"},
)
INSUFFICIENT_FUNDS_TEXT = (
    "You have insufficient funds in your Stripe account for this transfer. Your card balance is too low.  You can use the the "
    "/v1/balance endpoint to view your Stripe balance (for more details, see stripe.com/docs/api#balance)."
)
PAYOUT_ARRIVAL_DAYS = 2
PAYOUT_CATCH_UP_DAYS = 62
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def create_payout(call: ApiCall, form: CallForm) -> JsonObject:
    amount, currency = form.need_integer("amount", 1), form.need_currency()
    method = form.choice("method", ("instant", "standard"))
    form.choice("source_type", ("bank_account", "card", "fpx"))
    destination, description = form.text("destination"), form.text("description")
    descriptor, metadata = form.text("statement_descriptor", 22), form.metadata()
    form.done()
    owner = call.owner
    if not owner.payouts_enabled or not owner.bank:
        raise ProcessorRefusal("Cannot create payouts: this account has payouts disabled.", code="payouts_not_allowed")
    if method == "instant":
        raise ProcessorRefusal("Your account cannot make instant payouts.", code="instant_payouts_unsupported", param="method")
    sums = account_funds(call.state, call.account)
    if currency not in sums:
        raise ProcessorRefusal(f"Sorry, you don't have any external accounts in that currency ({currency}).", param="currency")
    if destination not in (None, owner.bank):
        raise ProcessorRefusal(f"No such external account: '{destination}'", code="resource_missing", param="destination")
    if sums[currency].available < amount:
        raise ProcessorRefusal(INSUFFICIENT_FUNDS_TEXT, code="balance_insufficient", param="amount")
    row = start_payout(call.state, owner, amount=amount, currency=currency)
    row.description, row.statement_descriptor, row.metadata = description, descriptor, metadata
    return PAYOUTS.change(call, row, "payout.created")


def cancel_payout(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = PAYOUTS.find(call)
    if row.automatic:
        raise ProcessorRefusal("You can only cancel payouts that you created manually.")
    if row.status != "pending":
        raise ProcessorRefusal(f"Payouts can only be canceled while they are pending. This payout is {row.status}.")
    _return_payout(call.state, call.account, row, "payout_cancel")
    row.status = "canceled"
    return PAYOUTS.change(call, row, "payout.updated", "payout.canceled")


def make_scheduled_payouts(state: ProcessorState, row: ProcessorAccount) -> None:
    """Payouts by schedule, one a day at most; days long gone are left out."""
    today = state.now() // PROCESSOR_DAY_SECONDS
    if row.interval == "manual" or not row.payouts_enabled or not row.bank:
        row.swept = today
        return
    for day in range(max(row.swept + 1, today - PAYOUT_CATCH_UP_DAYS), today + 1):
        if payout_falls_on(row, day):
            pay_out_balance(state, row)
    row.swept = max(row.swept, today)


def payout_falls_on(row: ProcessorAccount, day: int) -> bool:
    """Whether the schedule has a payout on a day (since 1970)."""
    date = datetime.fromtimestamp(day * PROCESSOR_DAY_SECONDS, UTC)
    if row.interval == "weekly":
        return WEEKDAYS[date.weekday()] in row.weekly_days
    if row.interval == "monthly":
        last = calendar.monthrange(date.year, date.month)[1]
        return date.day in {min(anchor, last) for anchor in row.monthly_days}
    return True


def pay_out_balance(state: ProcessorState, row: ProcessorAccount) -> None:
    """Pays out what is available. Choice: in every currency that the account earns."""
    for currency, sums in sorted(account_funds(state, row.id).items()):
        if sums.available > 0:
            payout = start_payout(state, row, amount=sums.available, currency=currency, automatic=True)
            PAYOUTS.notify(state, row.id, payout, "payout.created")


def start_payout(state: ProcessorState, row: ProcessorAccount, *, amount: int, currency: str, automatic: bool = False) -> Payout:
    """Books a payout out of the balance; it arrives in two days."""
    arrival = (state.now() // PROCESSOR_DAY_SECONDS + PAYOUT_ARRIVAL_DAYS) * PROCESSOR_DAY_SECONDS
    payout = Payout(state.new_id("po_"), state.now(), amount, currency, arrival, automatic=automatic, destination=row.bank)
    txn = book_transaction(state, row.id, amount=-amount, currency=currency, type="payout", source=payout.id)
    payout.txn = txn.id
    state.book(row.id).payouts[payout.id] = payout
    return payout


def advance_payout(state: ProcessorState, account: str, row: Payout) -> None:
    """Under way from the next day, and there on its day of arrival."""
    if row.status not in ("pending", "in_transit"):
        return
    if state.now() >= row.arrival:
        if state.accounts[account].bank_fails:
            fail_payout(state, account, row.id)
            return
        row.status = "paid"
        PAYOUTS.notify(state, account, row, "payout.updated", "payout.paid")
    elif row.status == "pending" and state.now() // PROCESSOR_DAY_SECONDS > row.created // PROCESSOR_DAY_SECONDS:
        row.status = "in_transit"
        PAYOUTS.notify(state, account, row, "payout.updated")


def fail_payout(state: ProcessorState, account: str, payout: str, code: str = "account_closed") -> Payout:
    """The bank sends the money back into the balance."""
    row = find_row(state.book(account).payouts, payout, "payout")
    if row.status in ("failed", "canceled"):
        raise ProcessorRefusal(f"This payout is already {row.status}.")
    _return_payout(state, account, row, "payout_failure")
    row.status, row.failure_code, row.failure_message = "failed", code, "The bank account has been closed."
    PAYOUTS.notify(state, account, row, "payout.updated", "payout.failed")
    return row


def complete_payout(state: ProcessorState, account: str, payout: str) -> Payout:
    row = find_row(state.book(account).payouts, payout, "payout")
    if row.status not in ("pending", "in_transit"):
        raise ProcessorRefusal(f"This payout is already {row.status}.")
    row.status, row.arrival = "paid", min(row.arrival, state.now())
    PAYOUTS.notify(state, account, row, "payout.updated", "payout.paid")
    return row


def _return_payout(state: ProcessorState, account: str, row: Payout, type: str) -> None:
    txn = book_transaction(state, account, amount=row.amount, currency=row.currency, type=type, source=row.id)
    row.failure_txn = txn.id


def payout_json(state: ProcessorState, row: Payout) -> JsonObject:
    return {
        **labelled_json(state, row, "payout", "id amount automatic created currency description destination failure_code"),
        **row_members(row, "failure_message method statement_descriptor status"),
        **null_members("application_fee application_fee_amount original_payout payout_method reversed_by"),
        "arrival_date": row.arrival,
        "balance_transaction": row.txn,
        "failure_balance_transaction": row.failure_txn,
        "reconciliation_status": "completed" if row.automatic else "not_applicable",
        "source_type": "card",
        "trace_id": {"status": "supported", "value": row.id[-15:]} if row.status == "paid" else {"status": "pending", "value": None},
        "type": "bank_account",
    }
