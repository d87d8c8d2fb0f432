"""The figures: exact against fractions, whatever the usage, and what they are in cases that were worked out by hand."""

import random
from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.invoicing.invoice_creation import (
    INVOICE_FIGURE_LIMIT,
    INVOICE_GB_BYTES,
    PRICE_PER_GB_CENTS_LIMIT,
    InvoiceTooLarge,
    invoice_line_amount,
    invoice_totals,
)
from operations.vocabulary import share_of

HALF = Fraction(1, 2)
INVOICES, AT_ONCE = 10_000, 100


class Figures(NamedTuple):
    """An invoice's figures; `amounts` are the lines, in the order of their usage."""

    amounts: tuple[int, ...]
    subtotal: int
    tax: int
    platform_fee: int
    total: int


def figures_of(usage: Sequence[int], *, price: int, bps: int) -> Figures:
    """What an invoice over these bytes comes to."""
    amounts = tuple(invoice_line_amount(used, price) for used in usage)
    return Figures(amounts, *invoice_totals(sum(amounts), price=price, bps=bps, largest_usage=max(usage, default=0)))


def exact(used: int, price: int) -> int:
    """The line by fractions: half a cent goes up."""
    return floor(Fraction(used, 10**9) * price + HALF)


def check(usage: Sequence[int], price: int, bps: int) -> None:
    """Every promise about the figures of an invoice."""
    found = figures_of(usage, price=price, bps=bps)
    assert found.amounts == tuple(exact(used, price) for used in usage)
    assert found.subtotal == sum(found.amounts)
    assert found.platform_fee == floor(Fraction(found.subtotal * bps, 10_000) + HALF)
    assert (found.tax, found.total) == (0, found.subtotal + found.tax + found.platform_fee)
    assert found == figures_of(usage, price=price, bps=bps)


@pytest.mark.long
@settings(max_examples=INVOICES // AT_ONCE)
@given(seed=st.integers(0, 2**64))
def test_ten_thousand_random_invoices_are_exact_to_the_cent(seed: int) -> None:
    drawn = random.Random(seed)
    for _ in range(AT_ONCE):
        # Half of the bytes are such that ties are near: whole thousandths of a GB.
        usage = [drawn.choice((drawn.randrange(10**13), drawn.randrange(10**5) * 10**6)) for _ in range(drawn.randrange(1, 12))]
        check(
            usage, drawn.choice((drawn.randrange(100_000), 5 * drawn.randrange(1000))), drawn.choice((0, 100, 250, drawn.randrange(5001)))
        )


@given(usage=st.lists(st.integers(0, 10**12), max_size=8), price=st.integers(0, 10**4), bps=st.integers(0, 5000))
def test_any_invoice_is_exact_to_the_cent(usage: list[int], price: int, bps: int) -> None:
    check(usage, price, bps)


def test_what_is_near_the_limits_is_exact_too() -> None:
    drawn = random.Random(53)
    for _ in range(2000):
        used, price, bps = drawn.randrange(2**50, 2**53), drawn.randrange(1, PRICE_PER_GB_CENTS_LIMIT + 1), drawn.randrange(5001)
        assert invoice_line_amount(used, price) == exact(used, price)
        assert share_of(used, bps) == floor(Fraction(used * bps, 10_000) + HALF)


@given(used=st.integers(0, 10**15), price=st.integers(0, PRICE_PER_GB_CENTS_LIMIT))
def test_a_byte_more_never_costs_less(used: int, price: int) -> None:
    assert (
        invoice_line_amount(used, price)
        <= invoice_line_amount(used + 1, price)
        <= invoice_line_amount(used, price) + price // INVOICE_GB_BYTES + 1
    )


@pytest.mark.long
@given(used=st.lists(st.integers(0, 10**13), max_size=8), price=st.integers(0, 10**6), seed=st.integers())
def test_the_order_of_the_sims_changes_no_sum(used: list[int], price: int, seed: int) -> None:
    shuffled = list(used)
    random.Random(seed).shuffle(shuffled)
    assert figures_of(used, price=price, bps=123)[1:] == figures_of(shuffled, price=price, bps=123)[1:]


# Bytes, cents per GB, cents: worked out by hand.
LINES = [
    (0, 0, 0),
    (0, 100, 0),
    (1, 0, 0),
    (INVOICE_GB_BYTES, 0, 0),
    (1, 1, 0),
    (1, 100, 0),
    (1, 499_999_999, 0),
    (1, 500_000_000, 1),
    (1, 1_000_000_000, 1),
    (INVOICE_GB_BYTES, 1, 1),
    (INVOICE_GB_BYTES, 100, 100),
    (INVOICE_GB_BYTES - 1, 1, 1),
    (INVOICE_GB_BYTES + 1, 1, 1),
    (499_999_999, 1, 0),
    (500_000_000, 1, 1),
    (500_000_001, 1, 1),
    (1_499_999_999, 1, 1),
    (1_500_000_000, 1, 2),
    (2_500_000_000, 1, 3),
    (3_500_000_000, 1, 4),
    (4_999_999, 100, 0),
    (5_000_000, 100, 1),
    (5_000_001, 100, 1),
    (14_999_999, 100, 1),
    (15_000_000, 100, 2),
    (25_000_000, 100, 3),
    (35_000_000, 100, 4),
    (1_005_000_000, 100, 101),
    (1_004_999_999, 100, 100),
    (1_015_000_000, 100, 102),
    (1_025_000_000, 100, 103),
    (2_675_000_000, 100, 268),
    (2**30, 100, 107),
    (2**30, 1000, 1074),
    (1_073_741_824, 10_000, 10_737),
    (10**6, 100, 0),
    (10**6, 500, 1),
    (10**6, 499, 0),
    (10**6, 1500, 2),
    (10**7, 99, 1),
    (10**7, 49, 0),
    (10**7, 50, 1),
    (10**8, 5, 1),
    (10**8, 4, 0),
    (10**8, 15, 2),
    (10**10, 250, 2500),
    (49_380_000_000, 250, 12_345),
    (49_381_999_999, 250, 12_345),
    (49_382_000_000, 250, 12_346),
    (10**12, 1, 1000),
    (10**12, 999, 999_000),
    (10**15, 1, 1_000_000),
    (10**15, 1_000_000, 10**12),
    (123_456_789, 77, 10),
    (987_654_321, 77, 76),
    (333_333_333, 3, 1),
    (333_333_334, 3, 1),
    (166_666_666, 3, 0),
    (166_666_667, 3, 1),
    (2**53 - 1, 1, 9_007_199),
]
# Subtotal, basis points, cents.
FEES = [
    (0, 0, 0),
    (0, 5000, 0),
    (1, 0, 0),
    (1, 4999, 0),
    (1, 5000, 1),
    (49, 100, 0),
    (50, 100, 1),
    (51, 100, 1),
    (149, 100, 1),
    (150, 100, 2),
    (250, 100, 3),
    (100, 100, 1),
    (100, 250, 3),
    (100, 249, 2),
    (199, 250, 5),
    (200, 250, 5),
    (201, 250, 5),
    (220, 250, 6),
    (9_999, 1, 1),
    (4_999, 1, 0),
    (5_000, 1, 1),
    (12_345, 100, 123),
    (12_350, 100, 124),
    (10_000, 5000, 5000),
    (10_001, 5000, 5001),
    (3, 3333, 1),
    (10**12, 150, 15 * 10**9),
]


@pytest.mark.parametrize(("used", "price", "cents"), LINES)
def test_a_line_is_its_bytes_times_the_price_half_up(used: int, price: int, cents: int) -> None:
    assert invoice_line_amount(used, price) == cents == exact(used, price)


@pytest.mark.parametrize(("subtotal", "bps", "cents"), FEES)
def test_a_platform_fee_is_its_share_half_up(subtotal: int, bps: int, cents: int) -> None:
    assert share_of(subtotal, bps) == cents


def test_no_usage_comes_to_nothing() -> None:
    assert figures_of([], price=100, bps=100) == ((), 0, 0, 0, 0)


def test_lines_are_rounded_one_by_one_and_not_their_sum() -> None:
    assert figures_of([5_000_000] * 3, price=100, bps=0).subtotal == 3
    assert figures_of([4_999_999] * 3, price=100, bps=0).subtotal == 0


def test_a_gigabyte_is_ten_to_the_ninth_bytes() -> None:
    assert figures_of([INVOICE_GB_BYTES], price=100, bps=0).total == 100
    assert INVOICE_GB_BYTES == 1000**3


def test_the_largest_figure_is_what_json_holds_exactly() -> None:
    assert figures_of([INVOICE_GB_BYTES], price=INVOICE_FIGURE_LIMIT, bps=0).total == INVOICE_FIGURE_LIMIT
    for usage, price, bps in (
        ([INVOICE_GB_BYTES], INVOICE_FIGURE_LIMIT, 1),
        ([INVOICE_GB_BYTES, INVOICE_GB_BYTES], INVOICE_FIGURE_LIMIT, 0),
        ([INVOICE_GB_BYTES], INVOICE_FIGURE_LIMIT + 1, 0),
        ([INVOICE_FIGURE_LIMIT + 1], 0, 0),
    ):
        with pytest.raises(InvoiceTooLarge, match="none may exceed 9007199254740991"):
            figures_of(usage, price=price, bps=bps)
