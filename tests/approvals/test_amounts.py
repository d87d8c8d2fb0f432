"""What is due decides: above the free amount, in another currency, or what nobody can tell."""

from dataclasses import replace
from typing import Any, cast

import pytest

from registry.caller import SpendLimits
from tests.limits import purchases
from tests.limits.conftest import bench, database_url
from tests.limits.holders import LimitBench, euros

FIXTURES = (bench, database_url)
FREE = SpendLimits(approve_above=euros(5))


@pytest.mark.cases
@pytest.mark.parametrize(
    ("limits", "asked", "status"),
    [
        (FREE, {"amount": 5}, 201),
        (FREE, {"amount": 6}, 202),
        (FREE, {"amount": 1, "currency": "USD"}, 202),
        (FREE, {"amount": 0, "currency": "USD"}, 201),
        (replace(FREE, per_call=euros(8)), {"amount": 9}, 403),
        (SpendLimits(per_day=euros(8)), {"amount": 8}, 201),
    ],
)
async def test_a_purchase_waits_above_the_free_amount(bench: LimitBench, limits: SpendLimits, asked: dict[str, Any], status: int) -> None:
    said = await bench.ask(purchases.buy_thing, await bench.holder(limits), **asked)
    assert said.status == status, said.json
    if status == 202:
        due = {"amount": asked["amount"], "currency": asked.get("currency", "EUR")}
        assert cast("dict[str, Any]", said.json["approval"])["money"] == [due]


@pytest.mark.cases
@pytest.mark.parametrize("operation", [purchases.open_ways, purchases.leave_unsaid], ids=lambda each: each.id)
@pytest.mark.parametrize(
    ("limits", "status"),
    [(FREE, 202), (SpendLimits(per_month=euros(9)), 202), (SpendLimits(times=(("open_ways", 5), ("leave_unsaid", 5))), 201)],
)
async def test_what_nobody_can_tell_waits_where_money_is_limited(
    bench: LimitBench,
    operation: Any,
    limits: SpendLimits,
    status: int,
) -> None:
    assert (await bench.ask(operation, await bench.holder(limits), name="x")).status == status


async def test_a_request_charges_nothing_until_it_is_executed(bench: LimitBench) -> None:
    who = await bench.holder(replace(FREE, per_day=euros(20)))
    assert (await bench.ask(purchases.buy_thing, who, amount=9)).status == 202
    assert await bench.used(who) == 0
