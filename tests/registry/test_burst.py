"""The burst limits: token buckets on the monotonic clock."""

from pathlib import Path

import pytest

from operations.system.health import health_check
from registry.caller import Tier
from registry.limits import Limits
from registry.rate_limits import TokenBuckets
from tests.registry import things
from tests.registry.bench import Bench, open_bench

FIGURES = {Tier.FREE: (5, 10), Tier.PRO: (25, 50), Tier.ENTERPRISE: (100, 200)}


async def burst(bench: Bench, who: object, most: int) -> int:
    """How many reads in a row are let through."""
    for count in range(most):
        if (await bench.ask(things.read_free, who)).status == 429:  # pyright: ignore[reportArgumentType]  # credentials
            return count
    return most


@pytest.mark.parametrize("tier", list(Tier))
async def test_a_tier_may_burst_and_then_call_at_its_rate(tmp_path: Path, tier: Tier) -> None:
    rate, size = FIGURES[tier]
    async with open_bench(tmp_path, limits=Limits()) as bench:
        caller = await bench.world.caller(tier)
        assert await burst(bench, caller, size + 5) == size
        bench.clock.advance(1)
        assert await burst(bench, caller, size + 5) == rate
        bench.clock.advance(3600)
        assert await burst(bench, caller, size + 5) == size


async def test_a_burst_429_is_the_same_body_and_says_when_to_come_again(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits()) as bench:
        caller = await bench.world.caller(Tier.FREE)
        await burst(bench, caller, 11)
        said = await bench.ask(things.make_thing, caller, name="x")
        assert (said.status, said.code, said.headers["Retry-After"]) == (429, "rate_limited", "1")
        assert (said.json["limit"], said.json["used"], said.json["reset_at"]) == (10, 10, "2027-01-15T12:00:01Z")
        assert "RateLimit" in said.headers and "RateLimit-Policy" in said.headers
        assert await bench.called(caller) == 0
        bench.clock.advance(0.2)
        assert (await bench.ask(things.make_thing, caller, name="x")).status == 201


async def test_members_share_a_bucket_and_organisations_do_not(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits()) as bench:
        caller = await bench.world.caller(Tier.FREE)
        colleague = await bench.world.caller(organisation=caller.organisation)
        assert await burst(bench, caller, 11) == 10
        assert await burst(bench, colleague, 1) == 0
        assert await burst(bench, await bench.world.caller(Tier.FREE), 11) == 10


async def test_writes_to_the_upstream_are_ten_a_second_for_every_tier(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits()) as bench:
        caller = await bench.connected(Tier.ENTERPRISE)
        answers = [await bench.ask(things.order_thing, caller, key=f"k{count}", name="x") for count in range(11)]
        assert [each.status for each in answers] == [201] * 10 + [429]
        assert (answers[-1].json["limit"], answers[-1].code) == (10, "rate_limited")
        assert (await bench.ask(things.make_thing, caller, name="x")).status == 201
        assert (await bench.ask(things.ask_upstream, caller, name="x")).status == 200
        bench.clock.advance(0.1)
        assert (await bench.ask(things.order_thing, caller, key="k11", name="x")).status == 201


async def test_public_routes_take_60_calls_a_minute_from_an_address_and_health_is_free(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits()) as bench:
        answers = [await bench.ask(things.read_publicly, client="192.0.2.1") for _ in range(61)]
        assert [each.status for each in answers] == [200] * 60 + [429]
        assert (await bench.ask(things.read_publicly, client="192.0.2.2")).status == 200
        assert {(await bench.ask(health_check, client="192.0.2.1")).status for _ in range(100)} == {200}
        bench.clock.advance(1)
        assert (await bench.ask(things.read_publicly, client="192.0.2.1")).status == 200


async def test_the_wall_clock_moves_no_bucket(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits()) as bench:
        caller = await bench.world.caller(Tier.FREE)
        assert await burst(bench, caller, 11) == 10
        bench.clock.wall += 600
        assert await burst(bench, caller, 1) == 0


def test_a_flood_of_addresses_forgets_full_buckets_first() -> None:
    throttle = TokenBuckets()
    for address in range(20_000):
        assert throttle.take(f"old {address}", 1, 1, 0.0) is None
    assert throttle.take("fresh", 1, 1, 100.0) is None
    for address in range(100):
        assert throttle.take(f"new {address}", 1, 1, 100.0) is None
    assert throttle.take("fresh", 1, 1, 100.0) is not None


def test_looking_at_a_bucket_takes_nothing_from_it() -> None:
    throttle = TokenBuckets()
    assert {throttle.wait("a", 2, 2, 0.0) for _ in range(5)} == {None}
    assert [throttle.take("a", 2, 2, 0.0) for _ in range(2)] == [None, None]
    assert [throttle.wait("a", 2, 2, 0.0), throttle.wait("a", 2, 2, 0.0), throttle.wait("b", 2, 2, 0.0)] == [
        0.5,
        0.5,
        None,
    ]
    assert throttle.wait("a", 2, 2, 0.5) is None
    assert (throttle.take("a", 2, 2, 0.5), throttle.wait("a", 2, 2, 0.5)) == (None, 0.5)
