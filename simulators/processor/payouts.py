"""Payouts: money sent to the account's bank, by hand and by schedule; calls about them, and how they go over the wire."""

import calendar
from datetime import UTC, datetime
from typing import NamedTuple

from simulators.processor.balance import BALANCE_DAY_SECONDS, account_funds, book_transaction
from simulators.processor.call import ApiCall, ApiNoun, CallForm, ProcessorRefusal, find_row, invalid_parameter, null_members, row_members
from simulators.processor.state import JsonObject, Payout, ProcessorAccount, ProcessorState

PAYOUTS = ApiNoun(
    "payout",
    "/v1/payouts",
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
PAYOUT_INTERVALS = ("daily", "manual", "monthly", "weekly")
PAYOUT_WORKDAYS = ("friday", "monday", "thursday", "tuesday", "wednesday")
PAYOUT_DELAY_LIMIT = 31


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
    PAYOUTS.notify(call.state, call.account, row, "payout.created")
    return PAYOUTS.answer(call, row)


def cancel_payout(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = PAYOUTS.find(call)
    if row.automatic:
        raise ProcessorRefusal("You can only cancel payouts that you created manually.")
    if row.status != "pending":
        raise ProcessorRefusal(f"Payouts can only be canceled while they are pending. This payout is {row.status}.")
    _return_payout(call.state, call.account, row, "payout_cancel")
    row.status = "canceled"
    PAYOUTS.notify(call.state, call.account, row, "payout.updated", "payout.canceled")
    return PAYOUTS.answer(call, row)


def make_scheduled_payouts(state: ProcessorState, row: ProcessorAccount) -> None:
    """Payouts by schedule, one a day at most; days long gone are left out."""
    today = state.now() // BALANCE_DAY_SECONDS
    if row.interval == "manual" or not row.payouts_enabled or not row.bank:
        row.swept = today
        return
    for day in range(max(row.swept + 1, today - PAYOUT_CATCH_UP_DAYS), today + 1):
        if payout_falls_on(row, day):
            pay_out_balance(state, row)
    row.swept = max(row.swept, today)


def payout_falls_on(row: ProcessorAccount, day: int) -> bool:
    """Whether the schedule has a payout on a day (since 1970)."""
    date = datetime.fromtimestamp(day * BALANCE_DAY_SECONDS, UTC)
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
    payout = Payout(
        id=state.new_id("po_"),
        created=state.now(),
        amount=amount,
        currency=currency,
        arrival=(state.now() // BALANCE_DAY_SECONDS + PAYOUT_ARRIVAL_DAYS) * BALANCE_DAY_SECONDS,
        automatic=automatic,
        destination=row.bank,
    )
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
    elif row.status == "pending" and state.now() // BALANCE_DAY_SECONDS > row.created // BALANCE_DAY_SECONDS:
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


class ScheduleRequest(NamedTuple):
    """A requested payout schedule; what is None or empty stays as it is."""

    interval: str | None
    weekly: list[str]
    monthly: list[int]
    delay_days: int | None
    at: str
    """The parameter's name, for refusals."""


def read_account_schedule(form: CallForm) -> ScheduleRequest | None:
    """`settings[payouts][schedule]` of an account."""
    settings = form.part("settings")
    payouts = settings.part("payouts") if settings else None
    schedule = payouts.part("schedule") if payouts else None
    if schedule is None:
        return None
    weekly, monthly = _read_payout_days(schedule, "weekly_payout_days", "monthly_payout_days")
    weekday, anchor = schedule.choice("weekly_anchor", PAYOUT_WORKDAYS), schedule.integer("monthly_anchor", 1, 31)
    delay = schedule.raw("delay_days")
    days = None if delay in (None, "minimum") else schedule.integer("delay_days", 2, PAYOUT_DELAY_LIMIT)
    weekly, monthly = weekly or ([weekday] if weekday else []), monthly or ([anchor] if anchor else [])
    return check_schedule(
        ScheduleRequest(schedule.choice("interval", PAYOUT_INTERVALS), weekly, monthly, days, "settings[payouts][schedule]")
    )


def read_balance_schedule(form: CallForm) -> ScheduleRequest | None:
    """`payments[payouts][schedule]` of the balance's settings."""
    payments = form.part("payments")
    if payments is None:
        return None
    payments.flag("debit_negative_balances")
    payouts, timing = payments.part("payouts"), payments.part("settlement_timing")
    if payouts is not None:
        payouts.text("statement_descriptor")
    schedule = payouts.part("schedule") if payouts else None
    blank = timing is None or timing.raw("delay_days_override") == ""
    days = None if timing is None or blank else timing.integer("delay_days_override", 2, PAYOUT_DELAY_LIMIT)
    if schedule is None:
        return ScheduleRequest(None, [], [], days, "payments[payouts][schedule]")
    weekly, monthly = _read_payout_days(schedule, "weekly_payout_days", "monthly_payout_days")
    return check_schedule(
        ScheduleRequest(schedule.choice("interval", PAYOUT_INTERVALS), weekly, monthly, days, "payments[payouts][schedule]")
    )


def _read_payout_days(schedule: CallForm, weekly: str, monthly: str) -> tuple[list[str], list[int]]:
    days = schedule.texts(weekly) or []
    for day in days:
        if day not in PAYOUT_WORKDAYS:
            raise invalid_parameter(f"Invalid {schedule.at(weekly)}: must be one of {', '.join(PAYOUT_WORKDAYS)}", schedule.at(weekly))
    dates = schedule.texts(monthly) or []
    if any(not date.isdecimal() or not 1 <= int(date) <= 31 for date in dates):
        raise invalid_parameter(f"Invalid {schedule.at(monthly)}: must be from 1 to 31", schedule.at(monthly))
    return days, [int(date) for date in dates]


def check_schedule(wanted: ScheduleRequest) -> ScheduleRequest:
    """Days fit the interval, and an interval has its days."""
    fits = {"weekly": wanted.weekly, "monthly": wanted.monthly}
    for interval, days in fits.items():
        if wanted.interval == interval and not days:
            raise invalid_parameter(f"You must provide the days of an interval that is {interval}.", f"{wanted.at}[{interval}_payout_days]")
        if wanted.interval not in (None, interval) and days:
            raise invalid_parameter(
                f"Only an interval that is {interval} takes {interval} payout days.", f"{wanted.at}[{interval}_payout_days]"
            )
    return wanted


def change_payout_schedule(row: ProcessorAccount, wanted: ScheduleRequest) -> None:
    if wanted.interval is not None:
        row.interval = wanted.interval
    if wanted.interval is not None or wanted.weekly or wanted.monthly:
        row.weekly_days, row.monthly_days = wanted.weekly, wanted.monthly
    row.delay_days = wanted.delay_days or row.delay_days


def payout_json(state: ProcessorState, row: Payout) -> JsonObject:
    return {
        **row_members(row, "id amount automatic created currency description destination failure_code failure_message method"),
        **row_members(row, "statement_descriptor status"),
        "object": "payout",
        **null_members("application_fee application_fee_amount original_payout payout_method reversed_by"),
        "arrival_date": row.arrival,
        "balance_transaction": row.txn,
        "failure_balance_transaction": row.failure_txn,
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "reconciliation_status": "completed" if row.automatic else "not_applicable",
        "source_type": "card",
        "trace_id": {"status": "supported", "value": row.id[-15:]} if row.status == "paid" else {"status": "pending", "value": None},
        "type": "bank_account",
    }


def payout_schedule_json(row: ProcessorAccount) -> JsonObject:
    """As account settings say it; parts that the interval has no use for are left out."""
    found: JsonObject = {"delay_days": row.delay_days, "interval": row.interval}
    if row.interval == "weekly":
        found |= {"weekly_anchor": row.weekly_days[0], "weekly_payout_days": list(row.weekly_days)}
    if row.interval == "monthly":
        found |= {"monthly_anchor": row.monthly_days[0], "monthly_payout_days": list(row.monthly_days)}
    return found


def balance_settings_json(row: ProcessorAccount) -> JsonObject:
    """The same schedule, as the balance's settings say it."""
    found: JsonObject = {"interval": row.interval}
    if row.interval == "weekly":
        found["weekly_payout_days"] = list(row.weekly_days)
    if row.interval == "monthly":
        found["monthly_payout_days"] = list(row.monthly_days)
    return {
        "object": "balance_settings",
        "payments": {
            "debit_negative_balances": True,
            "payouts": {
                **null_members("minimum_balance_by_currency statement_descriptor"),
                "schedule": found,
                "status": "enabled" if row.payouts_enabled else "disabled",
            },
            "settlement_timing": {"delay_days": row.delay_days},
        },
    }
