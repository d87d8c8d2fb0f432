"""Commissions: a tenth of each referred organisation's fees by month and currency, whatever the order in which fees become final."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operations.ledger.payment_intake import earns_commission, record_platform_fee
from storage.affiliates import insert_affiliate, insert_referral
from storage.commissions import COMMISSION, PLATFORM_FEE, EarnedTotal, earned_totals, list_commissions
from storage.engine.sql import Command, Connection, Query
from storage.engine.store import Store
from storage.organisations import create_organisation
from tests.length import examples
from tests.world import NOON, CountingIds, SettableClock

IDS = CountingIds(SettableClock())
AFFILIATE, FIRST, SECOND, NOBODYS = "org_affiliate", "org_first", "org_second", "org_nobodys"
IN, OUT = ("2027-01", "2027-12"), ("2026-12", "2028-01")  # referred in January 2027
EMPTY = (Command(sa.delete(PLATFORM_FEE)), Command(sa.delete(COMMISSION)))


class Fee(NamedTuple):
    ref: str
    organisation: str
    month: str
    currency: str
    amount: int


class Row(NamedTuple):
    month: str
    organisation: str
    currency: str
    fees: int
    amount: int


class Count(NamedTuple):
    rows: int


FEES = Query(Count, sa.select(sa.func.count().label("rows")).select_from(PLATFORM_FEE))


def found(connection: Connection) -> None:
    for id in (AFFILIATE, FIRST, SECOND, NOBODYS):
        create_organisation(connection, id=id, name=id, tier="pro", now=NOON)
    insert_affiliate(connection, organisation=AFFILIATE, code="ABCD2345", now=NOON)
    for id in (FIRST, SECOND):
        insert_referral(connection, organisation=id, affiliate=AFFILIATE, now=NOON)


@pytest.fixture
async def referred(store: Store) -> AsyncGenerator[Store]:
    await store.write(found)
    yield store


def record(connection: Connection, fee: Fee) -> None:
    record_platform_fee(connection, **fee._asdict(), now=NOON, ids=IDS)


def record_all(connection: Connection, fees: Iterable[Fee]) -> list[Row]:
    for command in EMPTY:
        connection.run(command)
    for fee in fees:
        record(connection, fee)
    return shown(connection)


def shown(connection: Connection) -> list[Row]:
    rows = list_commissions(connection, affiliate=AFFILIATE, most=100)
    return sorted(Row(row.month, row.organisation, row.currency, row.fees, row.amount) for row in rows)


def recomputed(fees: Sequence[Fee]) -> list[Row]:
    """The same from all fees at once, in decimals."""
    first: dict[str, Fee] = {}
    for fee in fees:
        first.setdefault(fee.ref, fee)
    sums: dict[tuple[str, str, str], int] = {}
    for fee in first.values():
        if fee.month in IN and fee.organisation in (FIRST, SECOND):
            key = (fee.month, fee.organisation, fee.currency)
            sums[key] = sums.get(key, 0) + fee.amount
    return sorted(Row(*key, total, tenth(total)) for key, total in sums.items())


def tenth(total: int) -> int:
    return max(0, int((Decimal(total) / 10).quantize(Decimal(1), ROUND_HALF_UP)))


REFS = st.integers(0, 30).map("inv_{}".format)
ONE = st.builds(
    Fee,
    REFS,
    st.sampled_from([FIRST, FIRST, FIRST, SECOND, NOBODYS]),
    st.sampled_from([*IN, IN[0], *OUT]),
    st.sampled_from(["EUR", "EUR", "USD"]),
    st.integers(-400, 600) | st.integers(-5, 5) | st.integers(-(10**12), 10**12),
)
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(15))


@given(fees=st.lists(ONE, min_size=1, max_size=40))
@SLOW
async def test_the_commissions_are_those_of_a_plain_recomputation(referred: Store, fees: list[Fee]) -> None:
    assert await referred.write(record_all, fees) == recomputed(fees)
    assert (await referred.read(lambda connection: connection.first(FEES))) == Count(len({fee.ref for fee in fees}))
    sums: dict[str, int] = {}
    for row in recomputed(fees):
        sums[row.currency] = sums.get(row.currency, 0) + row.amount
    assert await referred.read(earned_totals, affiliate=AFFILIATE) == [EarnedTotal(*each) for each in sorted(sums.items())]


# Both are drawn before the test begins: drawing inside a coroutine ends its event loop when hypothesis has drawn enough.
@given(
    orders=st.lists(ONE, max_size=12, unique_by=lambda fee: fee.ref).flatmap(
        lambda fees: st.tuples(st.just(fees), st.permutations(fees * 2))
    )
)
@SLOW
async def test_the_order_and_the_repetition_of_fees_change_nothing(referred: Store, orders: tuple[list[Fee], list[Fee]]) -> None:
    fees, shuffled = orders
    assert await referred.write(record_all, shuffled) == await referred.write(record_all, fees)


async def test_fees_that_become_final_at_once_are_all_counted_once(referred: Store) -> None:
    fees = [Fee(f"inv_{number}", FIRST, "2027-01", "EUR", 7) for number in range(16)]
    await asyncio.gather(*(referred.write(record, fee) for fee in fees + fees))
    assert await referred.read(shown) == [Row("2027-01", FIRST, "EUR", 112, 11)]


async def test_a_fee_that_was_taken_back_takes_its_share_with_it_and_no_more(referred: Store) -> None:
    fees = [Fee("inv_1", FIRST, "2027-01", "EUR", 1000), Fee("inv_1|void", FIRST, "2027-01", "EUR", -1000)]
    assert await referred.write(record_all, fees) == [Row("2027-01", FIRST, "EUR", 0, 0)]
    below = [*fees, Fee("inv_2|void", FIRST, "2027-01", "EUR", -995), Fee("inv_3", FIRST, "2027-01", "EUR", 1000)]
    assert await referred.write(record_all, below[:3]) == [Row("2027-01", FIRST, "EUR", -995, 0)]
    assert await referred.write(record_all, below) == [Row("2027-01", FIRST, "EUR", 5, 1)]


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("referred_at", "months"),
    [
        ("2027-01-01T00:00:00", {"2026-12": False, "2027-01": True, "2027-12": True, "2028-01": False}),
        ("2027-01-31T23:59:59.999", {"2026-12": False, "2027-01": True, "2027-12": True, "2028-01": False}),
        ("2027-12-15T12:00:00", {"2027-11": False, "2027-12": True, "2028-11": True, "2028-12": False}),
    ],
)
def test_twelve_calendar_months_earn_the_first_being_that_of_the_referral(referred_at: str, months: dict[str, bool]) -> None:
    assert {month: earns_commission(month, at(referred_at)) for month in months} == months
