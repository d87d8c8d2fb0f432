"""What an account's owner sees of it."""

from collections.abc import Mapping
from typing import TypeVar

from clients.sandbox.payments.acts import follow_visit
from clients.sandbox.payments.ledger import funds
from clients.sandbox.payments.pages_layout import Page, Shown, problem
from clients.sandbox.payments.pages_visit import Visit

T = TypeVar("T")
SHOWN = 10


def show_dashboard(visit: Visit) -> Shown:
    """Balance, payments, payouts. The link is good for one look."""
    state = visit.state
    link = follow_visit(state, visit.name, kind="login")
    if link is None:
        return problem("This link is used up", "A link shows the account once, within five minutes. Ask for a new one.", 404)
    book = state.book(link.account)
    return Page(
        "dashboard.html",
        {
            "account": state.accounts[link.account],
            "balances": [(currency, *found) for currency, found in funds(state, link.account).items()],
            "charges": newest(book.charges),
            "payouts": newest(book.payouts),
        },
    )


def newest(rows: Mapping[str, T]) -> list[T]:
    """The last ones first."""
    return list(rows.values())[: -SHOWN - 1 : -1]
