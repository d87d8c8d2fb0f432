"""What a call takes from the limits of its credential: charged with its opening, once, under every name of the chain."""

import anyio
import pytest

from registry.caller import SpendLimits
from registry.clock import DAY_SECONDS
from tests.limits import purchases
from tests.limits.holders import THIS_MONTH, LimitBench, euros
from tests.registry.bench import BenchAnswer, statuses
from tests.world import NOON

MIDNIGHT = NOON + DAY_SECONDS / 2


async def test_calls_are_counted_to_the_cent_and_refused_beyond_the_day_s_limit(bench: LimitBench) -> None:
    holder = await bench.holder(SpendLimits(per_day=euros(100), per_month=euros(150)))
    assert (await bench.ask(purchases.buy_thing, holder, amount=60)).status == 201
    refused = await bench.ask(purchases.buy_thing, holder, amount=41)
    assert (refused.status, refused.code) == (403, "credential_restricted")
    assert refused.json["error"] == (
        "spend_per_day: this call makes 0.41 EUR due, and of the limit of 1.00 EUR 0.40 EUR are left; "
        "it starts again at 2027-01-16T00:00:00Z; nothing was done"
    )
    assert int(refused.headers["Retry-After"]) in (DAY_SECONDS // 2, DAY_SECONDS // 2 + 1)
    assert (await bench.ask(purchases.buy_thing, holder, amount=40)).status == 201
    assert await bench.used(holder) == await bench.used(holder, period=THIS_MONTH) == 100
    bench.clock.advance(MIDNIGHT - NOON)
    assert "spend_per_month" in str((await bench.ask(purchases.buy_thing, holder, amount=51)).json["error"])
    assert (await bench.ask(purchases.buy_thing, holder, amount=50)).status == 201
    assert (await bench.counters())["money"] == 150


@pytest.mark.cases
@pytest.mark.parametrize(
    ("limits", "amount", "currency", "says"),
    [
        (SpendLimits(per_call=euros(10)), 11, "EUR", "spend_per_call: this call makes 0.11 EUR due, and the limit"),
        (
            SpendLimits(per_call=euros(10)),
            1,
            "USD",
            "spend_per_call: this call makes money due in USD, and this credential",
        ),
        (SpendLimits(per_month=euros(10)), 1, "USD", "spend_per_month: this call makes money due in USD"),
        (SpendLimits(times=(("buy_thing", 0),)), 0, "EUR", "times: buy_thing may be called 0 times a UTC day"),
        (SpendLimits(per_day=euros(0)), 1, "EUR", "spend_per_day"),
    ],
)
async def test_what_breaks_a_limit_is_refused_and_counts_nothing(
    bench: LimitBench, limits: SpendLimits, amount: int, currency: str, says: str
) -> None:
    holder = await bench.holder(limits)
    refused = await bench.ask(purchases.buy_thing, holder, amount=amount, currency=currency)
    assert refused.status == 403 and says in str(refused.json["error"])
    assert await bench.used(holder, currency) == await bench.called(holder) == 0


@pytest.mark.cases
@pytest.mark.parametrize("operation", [purchases.open_ways, purchases.leave_unsaid])
async def test_what_nobody_can_say_the_price_of_waits_for_a_person_where_money_is_limited(bench: LimitBench, operation: object) -> None:
    assert isinstance(operation, type(purchases.open_ways))
    waiting = await bench.ask(operation, await bench.holder(SpendLimits(per_month=euros(10))))
    assert bench.world.faults == []
    assert waiting.status == 202 and "approval" in waiting.json
    assert (await bench.counters()).get("x", 0) == 0
    holder = await bench.holder(SpendLimits(times=((operation.id, 1),)))
    assert statuses([await bench.ask(operation, holder), await bench.ask(operation, holder)]) == {201: 1, 403: 1}


async def test_a_replay_and_a_challenge_take_nothing(bench: LimitBench) -> None:
    holder = await bench.holder(SpendLimits(per_day=euros(100), times=(("buy_thing", 5), ("buy_with_confirmation", 1))))
    for _ in range(3):
        assert (await bench.ask(purchases.buy_thing, holder, key="k", amount=60)).status == 201
    token = await bench.token(purchases.buy_with_confirmation, holder, amount=40)
    assert (await bench.used(holder), await bench.used(holder, "buy_thing"), await bench.used(holder, "buy_with_confirmation")) == (
        60,
        1,
        0,
    )
    assert (await bench.ask(purchases.buy_with_confirmation, holder, token=token, amount=40)).status == 200
    assert (await bench.used(holder), await bench.used(holder, "buy_with_confirmation")) == (100, 1)


async def test_a_token_is_not_lost_when_the_limit_refuses_its_call(bench: LimitBench) -> None:
    holder = await bench.holder(SpendLimits(per_day=euros(100)))
    token = await bench.token(purchases.buy_with_confirmation, holder, amount=60)
    assert (await bench.ask(purchases.buy_thing, holder, amount=50)).status == 201
    assert (await bench.ask(purchases.buy_with_confirmation, holder, token=token, amount=60)).status == 403
    bench.clock.advance(60)
    assert await bench.used(holder) == 50


@pytest.mark.cases
@pytest.mark.parametrize(
    ("how", "status", "used", "sent"),
    [
        ("ok", 201, 10, 10),
        ("early", 409, 0, 0),
        ("sure", 502, 0, 0),
        ("unknown", 502, 10, 10),
        ("crash", 500, 10, 10),
        ("refused", 404, 10, 0),
    ],
)
async def test_nothing_done_is_given_back_and_an_unknown_outcome_is_kept(
    bench: LimitBench, how: str, status: int, used: int, sent: int
) -> None:
    holder = await bench.holder(SpendLimits(per_day=euros(10), times=(("buy_from_provider", 1),)))
    assert (await bench.ask(purchases.buy_from_provider, holder, key="k", amount=10, how=how)).status == status
    assert (await bench.used(holder), await bench.used(holder, "buy_from_provider")) == (used, used // 10)
    assert (await bench.counters()).get("money", 0) == sent
    assert (await bench.ask(purchases.buy_from_provider, holder, key="other", amount=10)).status == (403 if used else 201)


async def test_a_write_that_refuses_takes_nothing(bench: LimitBench) -> None:
    holder = await bench.holder(SpendLimits(per_day=euros(10)))
    assert (await bench.ask(purchases.buy_thing, holder, amount=10, how="refused")).status == 409
    assert await bench.used(holder) == 0


async def test_keys_made_with_a_limited_key_share_its_count_and_have_their_own(bench: LimitBench) -> None:
    parent = await bench.holder(SpendLimits(per_day=euros(100)))
    above = SpendLimits(per_day=euros(100), counted_as=parent.key_id)
    one, other = [await bench.holder(SpendLimits(per_day=euros(70)), above, of=parent) for _ in range(2)]
    assert (await bench.ask(purchases.buy_thing, one, amount=70)).status == 201
    assert (await bench.ask(purchases.buy_thing, one, amount=1)).status == 403
    assert (await bench.ask(purchases.buy_thing, other, amount=31)).status == 403
    assert (await bench.ask(purchases.buy_thing, other, amount=30)).status == 201
    assert (await bench.ask(purchases.buy_thing, parent, amount=1)).status == 403
    assert [await bench.used(each) for each in (parent, one, other)] == [100, 70, 30]


async def test_16_parallel_callers_of_a_key_and_16_of_its_child_on_two_replicas_are_not_one_cent_over(bench: LimitBench) -> None:
    parent = await bench.holder(SpendLimits(per_day=euros(100), times=(("buy_thing", 40),)))
    above = SpendLimits(per_day=euros(100), times=(("buy_thing", 40),), counted_as=parent.key_id)
    child = await bench.holder(SpendLimits(per_day=euros(60)), above, of=parent)
    other = await bench.replica()
    answers: list[BenchAnswer] = []

    async def call(number: int) -> None:
        who, at = (parent, None) if number % 2 else (child, other)
        answers.append(await bench.ask(purchases.buy_thing, who, at=at, amount=7))

    async with anyio.create_task_group() as group:
        for number in range(32):
            group.start_soon(call, number)
    assert statuses(answers) == {201: 14, 403: 18}
    assert (await bench.counters())["money"] == await bench.used(parent) == 98
    assert await bench.used(child) <= 60


async def test_a_read_that_may_be_made_twice_a_day_is_refused_the_third_time(bench: LimitBench) -> None:
    holder = await bench.holder(SpendLimits(times=(("look_at_purchase", 2),)))
    answers = [await bench.ask(purchases.look_at_purchase, holder, name="x") for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 403]
    bench.clock.advance(DAY_SECONDS)
    assert (await bench.ask(purchases.look_at_purchase, holder, name="x")).status == 200


async def test_callers_without_limits_are_counted_nowhere(bench: LimitBench) -> None:
    caller = await bench.connected()
    assert (await bench.ask(purchases.buy_thing, caller, amount=60)).status == 201
    assert (await bench.ask(purchases.open_ways, caller)).status == 201
    assert await bench.used(caller) == 0
