"""What an invoice comes to: whole numbers from beginning to end, each figure rounded half-up once."""

from typing import NamedTuple

from registry.errors import Conflict

# 10^9 and not 2^30, which would bill 7.37 % less; it is printed on every invoice.
GB = 1_000_000_000
WHOLE_BPS = 10_000
# Choice: ten million units of a currency for a GB, so that no price is refused that somebody could mean.
MOST_PRICE_CENTS = 1_000_000_000
# JSON numbers are exact up to here in every language.
MOST = 2**53 - 1
TAX_CENTS = 0
"""api.md gives no rate to compute a tax with."""


class TooLarge(Conflict):
    """A figure that no JSON number holds exactly."""

    code = "invoice_too_large"


class Totals(NamedTuple):
    """What is billed in all, in minor units."""

    subtotal: int
    tax: int
    platform_fee: int
    total: int


def line_amount(used: int, price: int) -> int:
    """`used` bytes at `price` cents per GB, half-up."""
    return (2 * used * price + GB) // (2 * GB)


def platform_fee(subtotal: int, bps: int) -> int:
    """The service's share in basis points, half-up."""
    return (2 * subtotal * bps + WHOLE_BPS) // (2 * WHOLE_BPS)


def totals_of(subtotal: int, *, price: int, bps: int, largest_usage: int) -> Totals:
    """The totals over lines that add up to `subtotal`; `largest_usage` is the most bytes of one line. Every amount is at most the total."""
    fee = platform_fee(subtotal, bps)
    total = subtotal + TAX_CENTS + fee
    largest = max(total, largest_usage)
    if largest > MOST:
        raise TooLarge(
            f"A figure of the invoice would be {largest}, and none may exceed {MOST}; nothing was made",
            param="price_per_gb_cents",
            hint=f"The price is {price} cents per GB; check it, and the records of the month with cdr_aggregate",
        )
    return Totals(subtotal, TAX_CENTS, fee, total)
