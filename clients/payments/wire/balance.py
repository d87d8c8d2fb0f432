"""Balances on the wire."""

from clients.payments.fields import Json, currency, is_so, rows, whole
from clients.payments.records import Balance, Money


def balance_of(found: Json) -> Balance:
    """What can be paid out now, and what is under way."""
    return Balance(is_so(found, "livemode"), amounts(found, "available"), amounts(found, "pending"))


def amounts(found: Json, name: str) -> tuple[Money, ...]:
    """By currency."""
    return tuple(Money(whole(row, "amount"), currency(row)) for row in rows(found, name))
