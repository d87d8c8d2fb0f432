"""Draws from an account that one answer does not list: what the looks at its stock cost, and that they are as true as whole ones."""

import pytest

from operations.ledger.stock_snapshot import look_at_stock
from operations.upstream.connection import upstream_of_organisation
from storage.stock_snapshots import StockSnapshot
from tests.issuance.stage import FREE_ESIMS, IssuanceStage, another_process
from tests.network_facts import ACCOUNT

CAP = 20
READS = ("listSubscriber", "esimStatusPerAccount")


async def large(stage: IssuanceStage) -> None:
    """From now on the account's 140 lines are seven times as many as one answer lists."""
    (await stage.world.network()).row_cap = CAP


async def look(stage: IssuanceStage) -> tuple[StockSnapshot, int]:
    await stage.live_on(6)
    deps, before = stage.world.pipeline.deps, len(stage.world.sandbox.calls)
    found = await look_at_stock(deps, await upstream_of_organisation(deps, stage.me.organisation), ACCOUNT)
    return found, sum(call.method in READS for call in stage.world.sandbox.calls[before:])


async def known(stage: IssuanceStage) -> None:
    """The account is large, an eSIM was drawn from it under the key first, and looks have learned its parts."""
    await large(stage)
    assert (await stage.issue("first")).status_code == 201
    for _ in range(60):
        if (await look(stage))[0].complete:
            return
    raise AssertionError("the parts were not learned")


async def free(stage: IssuanceStage) -> frozenset[str]:
    return frozenset(line.iccid for line in (await stage.world.network()).lines_of(ACCOUNT) if line.sim.status == "FREE")


async def test_the_first_draws_wait_for_a_few_calls_and_not_for_all_lines(stage: IssuanceStage) -> None:
    await large(stage)
    for number in range(3):
        before = len(stage.world.sandbox.calls)
        assert (await stage.issue(f"k{number}")).status_code == 201
        assert len(stage.world.sandbox.calls) - before <= 9, "the account's list, five parts, the template and the draw"
        await stage.live_on(6)
    assert not {line.iccid for line in (await stage.world.network()).lines_of(ACCOUNT) if line.sim.status == "FREE"} & {
        row.iccid for row in await stage.ledger()
    }


@pytest.mark.long
async def test_a_look_after_draws_reads_what_they_changed_and_is_true(stage: IssuanceStage) -> None:
    await known(stage)
    for number in range(FREE_ESIMS - 2):
        assert (await stage.issue(f"k{number}")).status_code == 201
        found, calls = await look(stage)
        assert (found.free, found.complete, found.returned) == (await free(stage), 1, "")
        assert calls <= 5, number
    assert (await stage.issue("last")).status_code == 201
    assert (await stage.issue("none")).json()["code"] == "no_inventory"
    assert len({row.iccid for row in await stage.ledger() if row.state == "issued"}) == FREE_ESIMS


@pytest.mark.long
async def test_an_esim_that_came_back_is_known_as_returned_and_is_drawn_again(stage: IssuanceStage) -> None:
    await known(stage)
    iccid = (await stage.ledger())[0].iccid or ""
    (await stage.line(iccid)).sim.status = "FREE"
    found, _ = await look(stage)
    assert iccid in found.free and found.returned == f"{iccid} {stage.me.organisation} first"
    assert (await stage.issue("again")).json()["data"]["iccid"] == iccid


@pytest.mark.long
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_an_esim_that_was_rolled_back_is_in_stock_at_the_next_look(stage: IssuanceStage, elsewhere: bool) -> None:
    await known(stage)
    iccid = (await stage.ledger())[0].iccid or ""
    if elsewhere:
        other = await another_process(stage)
        async with other.client(stage.me.secret) as http:
            assert (await stage.give_back("first", http=http)).status_code == 200
    else:
        assert (await stage.give_back("first")).status_code == 200
    found, _ = await look(stage)
    assert iccid in found.free and found.free == await free(stage)


@pytest.mark.long
async def test_stock_that_others_took_or_brought_is_seen_though_the_ledger_knows_nothing_of_it(stage: IssuanceStage) -> None:
    await known(stage)
    lines = list((await stage.world.network()).lines_of(ACCOUNT))
    for line in (lines[3], lines[77]):
        line.sim.status = "FREE"
    found, calls = await look(stage)
    assert (found.free, found.complete) == (await free(stage), 1)
    assert calls > 5
    taken = next(line for line in lines if line.iccid in found.free)
    taken.sim.status = "AFFECTED"
    looks = [await look(stage) for _ in range(60)]
    assert looks[-1][0].free == await free(stage)
    assert all(calls <= 5 for _, calls in looks)


@pytest.mark.long
async def test_another_process_looks_as_cheaply_as_the_one_that_learned(stage: IssuanceStage) -> None:
    await known(stage)
    other = await another_process(stage)
    deps, before = other.pipeline.deps, len(other.sandbox.calls)
    upstream = await upstream_of_organisation(deps, stage.me.organisation)
    deps.stock.parts.memory(upstream.place(ACCOUNT))  # as after a list of the account
    found = await look_at_stock(deps, upstream, ACCOUNT)
    assert found.free == await free(stage) and len(other.sandbox.calls) - before <= 5
