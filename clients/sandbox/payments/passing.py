"""The passing of time: payouts arrive, checkouts expire, balances are paid out by schedule, old events are forgotten."""

import calendar
from datetime import UTC, datetime

from clients.sandbox.payments.call import found
from clients.sandbox.payments.entities import Account, Payout
from clients.sandbox.payments.ledger import DAY, funds, move
from clients.sandbox.payments.news import tell_payout, tell_session
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.state import State

EVENT_DAYS = 30
ARRIVAL_DAYS = 2
MOST_SWEEPS = 62
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def catch_up(state: State) -> None:
    """All that has come due since the last turn."""
    for account in list(state.accounts):
        sweep(state, state.accounts[account])
        book = state.books.get(account)
        if book is None:
            continue
        for payout in list(book.payouts.values()):
            progress(state, account, payout)
        for session in list(book.sessions.values()):
            if session.status == "open" and session.expires_at <= state.now():
                session.status = "expired"
                tell_session(state, account, session, "checkout.session.expired")
    forget(state)


def forget(state: State) -> None:
    """Events are told of for 30 days, answers under idempotency keys are kept for one."""
    now = state.now()
    while state.events:
        oldest = next(iter(state.events.values()))
        if int(str(oldest["created"])) > now - EVENT_DAYS * DAY:
            break
        del state.events[str(oldest["id"])]
    state.pending = [id for id in state.pending if id in state.events]
    for key in [key for key, one in state.answers.items() if one.at <= now - DAY]:
        del state.answers[key]


def sweep(state: State, row: Account) -> None:
    """Payouts by schedule, one a day at most; days long gone are left out."""
    today = state.now() // DAY
    if row.interval == "manual" or not row.payouts_enabled or not row.bank:
        row.swept = today
        return
    for day in range(max(row.swept + 1, today - MOST_SWEEPS), today + 1):
        if falls_on(row, day):
            pay_out_all(state, row)
    row.swept = max(row.swept, today)


def falls_on(row: Account, day: int) -> bool:
    """The schedule has a payout on that day since 1970."""
    date = datetime.fromtimestamp(day * DAY, UTC)
    if row.interval == "weekly":
        return WEEKDAYS[date.weekday()] in row.weekly_days
    if row.interval == "monthly":
        last = calendar.monthrange(date.year, date.month)[1]
        return date.day in {min(anchor, last) for anchor in row.monthly_days}
    return True


def pay_out_all(state: State, row: Account) -> None:
    """What is available goes to the bank; Choice: it takes every currency that the account earns."""
    for currency, sums in sorted(funds(state, row.id).items()):
        if sums.available > 0:
            payout = pay_out(state, row, amount=sums.available, currency=currency, automatic=True)
            tell_payout(state, row.id, payout, "payout.created")


def pay_out(state: State, row: Account, *, amount: int, currency: str, automatic: bool = False) -> Payout:
    """Out of the balance, and on its way to the bank."""
    payout = Payout(
        id=state.new_id("po_"),
        created=state.now(),
        amount=amount,
        currency=currency,
        arrival=(state.now() // DAY + ARRIVAL_DAYS) * DAY,
        automatic=automatic,
        destination=row.bank,
    )
    txn = move(state, row.id, amount=-amount, currency=currency, type="payout", source=payout.id)
    payout.txn = txn.id
    state.book(row.id).payouts[payout.id] = payout
    return payout


def progress(state: State, account: str, row: Payout) -> None:
    """Under way from the next day, and there on its day of arrival."""
    if row.status not in ("pending", "in_transit"):
        return
    if state.now() >= row.arrival:
        if state.accounts[account].bank_fails:
            fail_payout(state, account, row.id)
            return
        row.status = "paid"
        tell_payout(state, account, row, "payout.updated", "payout.paid")
    elif row.status == "pending" and state.now() // DAY > row.created // DAY:
        row.status = "in_transit"
        tell_payout(state, account, row, "payout.updated")


def fail_payout(state: State, account: str, payout: str, code: str = "account_closed") -> Payout:
    """The bank sends the money back into the balance."""
    row = found(state.book(account).payouts, payout, "payout")
    if row.status in ("failed", "canceled"):
        raise Refusal(f"This payout is already {row.status}.")
    give_back(state, account, row, "payout_failure")
    row.status, row.failure_code, row.failure_message = "failed", code, "The bank account has been closed."
    tell_payout(state, account, row, "payout.updated", "payout.failed")
    return row


def settle_payout(state: State, account: str, payout: str) -> Payout:
    """It arrives now."""
    row = found(state.book(account).payouts, payout, "payout")
    if row.status not in ("pending", "in_transit"):
        raise Refusal(f"This payout is already {row.status}.")
    row.status, row.arrival = "paid", min(row.arrival, state.now())
    tell_payout(state, account, row, "payout.updated", "payout.paid")
    return row


def give_back(state: State, account: str, row: Payout, type: str) -> None:
    """Into the balance again."""
    txn = move(state, account, amount=row.amount, currency=row.currency, type=type, source=row.id)
    row.failure_txn = txn.id
