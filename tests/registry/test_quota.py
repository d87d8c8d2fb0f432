"""The daily quota: never oversold, one count for every door, and only for calls that did something."""

from pathlib import Path

import pytest

from registry.caller import Role, Tier
from registry.clock import DAY_SECONDS
from registry.errors import QuotaExceededBody
from registry.limits import Limits, TierLimits
from registry.policy import quota_period
from storage.quota import EXHAUSTED_SECONDS
from tests.registry import ledgers, things
from tests.registry.bench import Bench, open_bench, statuses
from tests.world import NOON, SITE, Credentials

MIDNIGHT = NOON + DAY_SECONDS / 2


@pytest.fixture
async def free(bench: Bench) -> Credentials:
    return await bench.world.caller(Tier.FREE)


@pytest.mark.cases
@pytest.mark.parametrize("operation", ["reads", "writes"])
async def test_64_parallel_calls_with_10_left_are_10_answers_and_54_refusals(bench: Bench, free: Credentials, operation: str) -> None:
    await bench.leave(free, 10, Tier.FREE)
    answers = await bench.at_once(64, things.read_thing if operation == "reads" else things.make_thing, free, name="x")
    assert statuses(answers) == {200 if operation == "reads" else 201: 10, 429: 54}
    assert await bench.called(free) == 1000
    assert (await bench.store.read(ledgers.used))[free.organisation] == 1000
    assert (await bench.counters()).get("x", 0) == (0 if operation == "reads" else 10)


async def test_reads_and_writes_at_once_on_two_replicas_share_one_count(bench: Bench, free: Credentials) -> None:
    await bench.leave(free, 10, Tier.FREE)
    other = await bench.replica()
    answers = await bench.at_once(16, things.read_thing, free, name="x")
    answers += await bench.at_once(16, things.make_thing, free, name="x", at=other)
    assert sum(each.status < 300 for each in answers) == 10
    assert (await bench.store.read(ledgers.used))[free.organisation] == 1000


@pytest.mark.rule("7.7")
@pytest.mark.rule("2.1.4")
async def test_a_429_says_the_limit_and_when_it_starts_again(bench: Bench, free: Credentials) -> None:
    await bench.leave(free, 0, Tier.FREE)
    for operation in (things.read_thing, things.make_thing, things.label_thing):
        said = await bench.ask(operation, free, name="x")
        body = said.json
        assert set(body) == QuotaExceededBody.__required_keys__
        assert (said.status, said.code, body["limit"], body["used"]) == (429, "quota_exceeded", 1000, 1000)
        assert (body["reset_at"], body["upgrade_url"]) == ("2027-01-16T00:00:00Z", SITE.upgrade_url)
        assert int(said.headers["Retry-After"]) in (DAY_SECONDS // 2, DAY_SECONDS // 2 + 1)


@pytest.mark.cases
@pytest.mark.parametrize("operation", [things.read_thing, things.make_thing], ids=["read", "write"])
async def test_a_daily_429_carries_both_ratelimit_headers(bench: Bench, free: Credentials, operation: object) -> None:
    await bench.leave(free, 0, Tier.FREE)
    assert isinstance(operation, type(things.read_thing))
    said = await bench.ask(operation, free, name="x")
    assert said.status == 429
    assert said.headers["RateLimit-Policy"] == '"tier";q=1000;w=86400'
    assert said.headers["RateLimit"] == f'"tier";r=0;t={said.headers["Retry-After"]}'


async def test_every_answer_tells_what_is_left(bench: Bench, free: Credentials) -> None:
    left: list[str] = []
    for operation in (things.read_thing, things.make_thing, things.label_thing, things.read_thing):
        said = await bench.ask(operation, free, name="x")
        assert said.headers["RateLimit-Policy"] == '"tier";q=1000;w=86400'
        left.append(said.headers["RateLimit"])
    assert left == [f'"tier";r={left};t={DAY_SECONDS // 2}' for left in (999, 998, 997, 996)]
    assert await bench.called(free) == 4


async def test_members_and_doors_share_one_count(bench: Bench, free: Credentials) -> None:
    colleague = await bench.world.caller(role=Role.MEMBER, organisation=free.organisation)
    stranger = await bench.world.caller(Tier.FREE)
    await bench.leave(free, 2, Tier.FREE)
    assert (await bench.ask(things.read_thing, free, name="x")).status == 200
    assert (await bench.ask(things.make_thing, colleague, surface="mcp", name="x")).status == 201
    assert (await bench.ask(things.read_thing, free, surface="mcp", name="x")).status == 429
    assert (await bench.ask(things.make_thing, stranger, name="x")).status == 201


async def test_what_did_nothing_costs_nothing(bench: Bench) -> None:
    caller = await bench.connected(Tier.PRO)
    unconnected = await bench.world.caller(Tier.FREE)
    ask = bench.ask
    assert (await ask(things.make_thing, caller, key="k", name="x")).status == 201
    assert await bench.called(caller) == 1
    refusals = [
        await ask(things.make_thing, caller, key="k", name="x"),  # a replay
        await ask(things.make_thing, caller, key="k", name="other"),  # a key that was used
        await ask(things.make_thing, caller, nonsense=1),
        await ask(things.keep_thing, caller, name="x"),  # no key
        await ask(things.administer, caller, name="x"),
        await ask(things.remove_thing, caller, name="x"),  # a challenge
        await ask(things.remove_thing, caller, token="wrong", name="x"),
        await ask(things.use_owned, caller, name="x"),  # access refused it
        await ask(things.refuse_in_write, caller, name="x"),
        await ask(things.fail_before_write, caller, name="x"),
        await ask(things.order_thing, caller, key="e", name="x", how="early"),
        await ask(things.read_thing, caller, name="x", how="early"),
        await ask(things.read_free, caller),
    ]
    assert [each.status for each in refusals] == [201, 409, 400, 400, 402, 202, 400, 404, 409, 503, 409, 404, 200]
    assert await bench.called(caller) == 1
    assert (await ask(things.ask_upstream, unconnected, name="x")).status == 409
    assert await bench.called(unconnected) == 0


async def test_what_reached_the_provider_costs_one_call_whatever_came_of_it(bench: Bench) -> None:
    caller = await bench.connected(Tier.PRO)
    answers = [
        await bench.ask(things.read_thing, caller, name="x", how="late"),
        await bench.ask(things.use_owned, caller, name="x", how="late"),
        *[await bench.ask(things.order_thing, caller, key=how, name="x", how=how) for how in ("late", "sure", "unknown", "crash")],
    ]
    assert [each.status for each in answers] == [404, 404, 404, 502, 502, 500]
    assert await bench.called(caller) == len(answers)


async def test_a_quota_refusal_leaves_key_and_token_as_they_were(bench: Bench) -> None:
    caller = await bench.connected(Tier.PRO)
    token = await bench.token(things.release_thing, caller, name="x")
    await bench.leave(caller, 0, Tier.PRO)
    assert (await bench.ask(things.release_thing, caller, key="k", token=token, name="x")).status == 429
    assert await bench.claimed() == [] and await bench.counters() == {}
    bench.clock.advance(100)
    await bench.leave(caller, 1, Tier.PRO)
    tomorrow = bench.clock.now() < MIDNIGHT
    assert tomorrow  # the same day, with one call given back
    fresh = await bench.replica()
    assert (await bench.ask(things.release_thing, caller, key="k", token=token, at=fresh, name="x")).status == 200


async def test_the_count_starts_again_at_midnight_utc(bench: Bench, free: Credentials) -> None:
    await bench.leave(free, 0, Tier.FREE)
    bench.clock.advance(MIDNIGHT - NOON - 0.001)
    assert (await bench.ask(things.read_thing, free, name="x")).status == 429
    assert (await bench.ask(things.make_thing, free, name="x")).headers["Retry-After"] == "1"
    bench.clock.advance(0.001)
    assert (await bench.ask(things.read_thing, free, name="x")).status == 200
    said = await bench.ask(things.make_thing, free, name="x")
    assert (said.status, said.headers["RateLimit"]) == (201, f'"tier";r=998;t={DAY_SECONDS}')


async def test_calls_leased_before_midnight_are_not_spent_after_it(bench: Bench, free: Credentials) -> None:
    assert (await bench.ask(things.read_thing, free, name="x")).status == 200
    bench.clock.advance(DAY_SECONDS)
    assert (await bench.ask(things.read_thing, free, name="x")).headers["RateLimit"] == f'"tier";r=999;t={DAY_SECONDS // 2}'


async def test_an_organisation_that_used_up_its_tier_goes_on_after_an_upgrade(bench: Bench, free: Credentials) -> None:
    await bench.leave(free, 0, Tier.FREE)
    for operation in (things.read_thing, things.make_thing):
        assert (await bench.ask(operation, free, name="x")).status == 429
    await bench.world.move_to(Tier.PRO, free.organisation)
    for operation in (things.read_thing, things.make_thing):
        assert (await bench.ask(operation, free, name="x")).status < 300, operation.id


async def test_unused_calls_are_given_back_when_a_process_ends(bench: Bench, free: Credentials) -> None:
    other = await bench.replica()
    assert (await bench.ask(things.read_thing, free, at=other, name="x")).status == 200
    assert (await bench.store.read(ledgers.used))[free.organisation] == 20
    await other.blocks.drain()
    assert (await bench.store.read(ledgers.used))[free.organisation] == 1


async def test_calls_that_a_process_gives_back_when_it_ends_are_soon_those_of_one_that_had_none(tmp_path: Path, database_url: str) -> None:
    limits = Limits(burst_enabled=False, quota_block=2, tiers={tier: TierLimits(21, 5, 10, 10) for tier in Tier})
    async with open_bench(tmp_path, database_url, limits=limits) as bench:
        caller, ending = await bench.world.caller(Tier.FREE), await bench.replica()
        assert (await bench.ask(things.read_thing, caller, at=ending, name="x")).status == 200  # it leases two
        said = [(await bench.ask(things.read_thing, caller, name="x")).status for _ in range(20)]
        assert said == [200] * 19 + [429]
        await ending.blocks.drain()
        bench.clock.advance(EXHAUSTED_SECONDS)
        assert [(await bench.ask(things.read_thing, caller, name="x")).status for _ in range(2)] == [200, 429]


async def test_near_the_limit_no_replica_sits_on_the_last_calls(tmp_path: Path, database_url: str) -> None:
    limits = Limits(burst_enabled=False, quota_block=2, tiers={tier: TierLimits(30, 5, 10, 10) for tier in Tier})
    async with open_bench(tmp_path, database_url, limits=limits) as bench:
        caller = await bench.world.caller(Tier.FREE)
        replicas = [await bench.replica() for _ in range(3)]
        good = 0
        for turn in range(60):
            good += (await bench.ask(things.read_thing, caller, at=replicas[turn % 3], name="x")).status == 200
        period = quota_period(bench.clock.now())
        assert good + sum(each.blocks.unspent(caller.organisation, period) for each in replicas) == 30
        assert good >= 30 - 3 * 2
