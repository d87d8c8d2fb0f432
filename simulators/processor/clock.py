"""The passing of time: payouts arrive, checkouts expire, balances are paid out by schedule, old events are forgotten."""

from simulators.processor.checkout import SESSIONS
from simulators.processor.payouts import advance_payout, make_scheduled_payouts
from simulators.processor.state import PROCESSOR_DAY_SECONDS, ProcessorState

EVENT_RETENTION_DAYS = 30


def catch_up_processor(state: ProcessorState) -> None:
    """Does all that has come due since the last turn."""
    for account in list(state.accounts):
        make_scheduled_payouts(state, state.accounts[account])
        book = state.books.get(account)
        if book is None:
            continue
        for payout in list(book.payouts.values()):
            advance_payout(state, account, payout)
        for session in list(book.sessions.values()):
            if session.status == "open" and session.expires_at <= state.now():
                session.status = "expired"
                SESSIONS.notify(state, account, session, "checkout.session.expired")
    now = state.now()
    while state.events:
        oldest = next(iter(state.events.values()))
        if int(str(oldest["created"])) > now - EVENT_RETENTION_DAYS * PROCESSOR_DAY_SECONDS:
            break
        del state.events[str(oldest["id"])]
    state.pending = [id for id in state.pending if id in state.events]
    for key in [key for key, one in state.answers.items() if one.at <= now - PROCESSOR_DAY_SECONDS]:
        del state.answers[key]
