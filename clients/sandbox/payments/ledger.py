"""An account's balance: the sum of its movements, of which the newest rest for some days before they can be paid out."""

from typing import NamedTuple

from clients.sandbox.payments.entities import Txn
from clients.sandbox.payments.state import State

DAY = 86_400


class Funds(NamedTuple):
    """In one currency: at hand, and on the way."""

    available: int
    pending: int


def move(
    state: State,
    account: str,
    *,
    amount: int,
    currency: str,
    type: str,
    source: str,
    fee: int = 0,
    application_fee: int = 0,
    rests: int = 0,
) -> Txn:
    """Book one movement; it counts as available after `rests` days."""
    txn = Txn(
        id=state.new_id("txn_"),
        created=state.now(),
        amount=amount,
        currency=currency,
        fee=fee,
        application_fee=application_fee,
        available_on=state.now() + rests * DAY,
        type=type,
        source=source,
    )
    state.book(account).txns[txn.id] = txn
    return txn


def funds(state: State, account: str) -> dict[str, Funds]:
    """By currency; the account's own first, be it empty."""
    owner = state.accounts[account]
    sums: dict[str, Funds] = {owner.currency: Funds(0, 0)}
    for txn in state.book(account).txns.values():
        available, pending = sums.get(txn.currency, Funds(0, 0))
        net = txn.amount - txn.fee
        rests = txn.available_on > state.now()
        sums[txn.currency] = Funds(available, pending + net) if rests else Funds(available + net, pending)
    return sums
