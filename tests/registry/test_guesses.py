"""Ids that let in whoever knows them: wrong ones are counted by address, and what is done with right ones is their shop's."""

from collections import Counter
from pathlib import Path

import anyio

from registry.caller import ANONYMOUS_CALLER
from registry.limits import Limits
from registry.ports import SharedSecrets
from tests.registry import things
from tests.registry.bench import BENCH_SECRETS, Bench, BenchAnswer, open_bench

OPEN = SharedSecrets(internal="internal-secret")
HERE, THERE = "192.0.2.1", "192.0.2.2"


async def guess(bench: Bench, count: int = 1, *, client: str = HERE) -> list[int]:
    return [(await bench.ask(things.read_guessed, client=client, name=f"wrong {at}")).status for at in range(count)]


async def right(bench: Bench, *, client: str = HERE) -> BenchAnswer:
    return await bench.ask(things.read_guessed, client=client, name="it")


async def planted(bench: Bench) -> Bench:
    """With something that can be found."""
    await bench.store.write(things.add, name="owner it")
    return bench


async def test_an_address_has_ten_wrong_guesses_a_minute_and_is_then_told_nothing(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits(), secrets=OPEN) as bench:
        await planted(bench)
        assert await guess(bench, 12) == [404] * 10 + [429] * 2
        said = await right(bench)
        assert (said.status, said.code, said.json["limit"], said.headers["Retry-After"]) == (429, "rate_limited", 10, "6")
        assert (await right(bench, client=THERE)).status == 200
        bench.clock.advance(6)
        assert (await right(bench)).status == 200
        assert await guess(bench, 2) == [404, 429]


async def test_right_guesses_are_none_and_what_is_not_guessed_is_not_counted(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits(), secrets=OPEN) as bench:
        await planted(bench)
        assert {(await right(bench)).status for _ in range(20)} == {200}
        assert {(await bench.ask(things.find_nothing, client=HERE)).status for _ in range(20)} == {404}
        assert await guess(bench, 11) == [404] * 10 + [429]


async def test_all_operations_share_the_guesses_of_an_address_and_a_customer_of_ipv6_has_one(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits(), secrets=OPEN) as bench:
        for at in range(5):
            assert await guess(bench, client=f"2001:db8::{at}") == [404]
            assert (await bench.ask(things.change_guessed, client=f"2001:db8::a:{at}", name="x")).status == 404
        assert await guess(bench, client="2001:db8::ffff") == [429]
        assert await guess(bench, client="2001:db8:0:1::1") == [404]


async def test_of_32_wrong_guesses_at_once_ten_are_answered(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits(), secrets=OPEN) as bench:
        said = Counter[int]()

        async def one(at: int) -> None:
            said[(await bench.ask(things.read_guessed, client=HERE, name=f"wrong {at}")).status] += 1

        async with anyio.create_task_group() as group:
            for at in range(32):
                group.start_soon(one, at)
        assert said == {404: 10, 429: 22}


async def test_who_shows_the_shops_key_does_not_guess(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits(), secrets=BENCH_SECRETS) as bench:
        said = [await bench.ask(things.read_guessed, "storefront-secret", client=HERE, name=f"wrong {at}") for at in range(80)]
        assert {each.status for each in said} == {404}


async def test_a_call_for_a_page_was_counted_with_the_page_and_its_wrong_guesses_are_not_forgotten(tmp_path: Path) -> None:
    async with open_bench(tmp_path, limits=Limits(), secrets=BENCH_SECRETS) as bench:
        await planted(bench)
        shown = {"surface": "web", "caller": ANONYMOUS_CALLER, "client": HERE}
        said = [await bench.ask(things.read_guessed, name="it", **shown) for _ in range(100)]  # pyright: ignore[reportArgumentType]
        said += [await bench.ask(things.read_publicly, **shown) for _ in range(100)]  # pyright: ignore[reportArgumentType]
        assert {each.status for each in said} == {200}
        public = [(await bench.ask(things.read_publicly, client=HERE)).status for _ in range(61)]
        assert public == [200] * 60 + [429]
        wrong = [(await bench.ask(things.read_guessed, name="wrong", **shown)).status for _ in range(11)]  # pyright: ignore[reportArgumentType]
        assert wrong == [404] * 10 + [429]


async def test_without_burst_limits_nothing_is_counted(tmp_path: Path) -> None:
    async with open_bench(tmp_path, secrets=OPEN) as bench:
        assert await guess(bench, 20) == [404] * 20


async def test_what_is_done_with_somebody_s_thing_is_in_their_audit_log(tmp_path: Path) -> None:
    async with open_bench(tmp_path, secrets=BENCH_SECRETS) as bench:
        await planted(bench)
        for how in ("ok", "early"):
            await bench.ask(things.change_guessed, "storefront-secret", name="it", how=how)
        said = await bench.ask(things.read_guessed, "storefront-secret", name="it")
        assert said.json["name"] == f"{things.SHOP} it"
        await bench.ask(things.read_guessed, "storefront-secret", name="wrong")
        rows = [(row.organisation, row.operation, row.principal, row.outcome, row.status) for row in await bench.audited()]
        assert sorted(rows) == [
            ("", "read_guessed", "storefront", "not_found", 404),
            (things.SHOP, "change_guessed", "storefront", "ok", 200),
            (things.SHOP, "change_guessed", "storefront", "too_early", 409),
            (things.SHOP, "read_guessed", "storefront", "ok", 200),
        ]


async def test_a_change_by_whoever_knows_the_id_is_recorded_and_a_look_is_not(tmp_path: Path) -> None:
    async with open_bench(tmp_path, secrets=OPEN) as bench:
        await planted(bench)
        assert (await bench.ask(things.change_guessed, name="it")).status == 200
        assert (await right(bench)).status == 200
        assert [(row.organisation, row.operation, row.outcome) for row in await bench.audited()] == [(things.SHOP, "change_guessed", "ok")]
        assert await bench.counters() == {"owner it": 1, "it": 1}
