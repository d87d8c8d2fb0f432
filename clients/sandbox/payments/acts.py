"""What happens at the processor beside its API: people on its pages, banks, and the passing of time. Pages and the control API call these.

Every act changes the state and emits the events of the real one. `account` is an account's id. What cannot be done is a `Refusal`.
"""

from clients.sandbox.payments.cards import NUMBERS, Card
from clients.sandbox.payments.invoice_figures import due_of, items_of, remaining_of, total_of
from clients.sandbox.payments.onboarding import (
    authorize_oauth,
    complete_onboarding,
    open_standard_account,
    release_account,
    restrict_account,
)
from clients.sandbox.payments.passing import catch_up, fail_payout, settle_payout
from clients.sandbox.payments.paying import complete_checkout, enter_promotion, find_invoice, find_session, make_charge, pay_invoice
from clients.sandbox.payments.trouble import close_dispute, open_dispute, open_review
from clients.sandbox.payments.visits import find_visit, follow_visit, open_visit

__all__ = [
    "NUMBERS",
    "Card",
    "authorize_oauth",
    "catch_up",
    "close_dispute",
    "complete_checkout",
    "complete_onboarding",
    "due_of",
    "enter_promotion",
    "fail_payout",
    "find_invoice",
    "find_session",
    "find_visit",
    "follow_visit",
    "items_of",
    "make_charge",
    "open_dispute",
    "open_review",
    "open_standard_account",
    "open_visit",
    "pay_invoice",
    "release_account",
    "remaining_of",
    "restrict_account",
    "settle_payout",
    "total_of",
]
