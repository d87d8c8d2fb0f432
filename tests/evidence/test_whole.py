"""Lists that leave something out, or show lines that we do not understand, never prove that nothing was drawn."""

from typing import Any

import pytest

from operations.upstream.account_lines import read_account_lines
from operations.upstream.connection import upstream_of_organisation
from tests.evidence.crooked_road import Bend, CrookedRoad
from tests.evidence.issuing import OTHER_ACCOUNT, Issuing
from tests.network_facts import ACCOUNT, HOUR, MINUTE

Rows = list[dict[str, Any]]
ENDED = "2026-01-01T00:00:00"


def lower_case(rows: Rows) -> Rows:
    rows[0]["sim"]["status"] = rows[0]["sim"]["status"].lower()
    return rows


def another_word(rows: Rows) -> Rows:
    rows[0]["sim"]["status"] = "RESERVED"
    return rows


def no_sim(rows: Rows) -> Rows:
    del rows[0]["sim"]
    return rows


def no_iccid(rows: Rows) -> Rows:
    for history in rows[0]["imsiList"]:
        del history["iccid"]
    return rows


def ended(rows: Rows) -> Rows:
    for history in rows[0]["imsiList"]:
        history["endDate"] = ENDED
    return rows


def of_another(rows: Rows) -> Rows:
    rows[0]["accountId"] = OTHER_ACCOUNT
    return rows


def twice(rows: Rows) -> Rows:
    rows[1]["imsiList"] = rows[0]["imsiList"]
    return rows


BENDS: list[Bend] = [lower_case, another_word, no_sim, no_iccid, ended, of_another, twice]


@pytest.mark.long
async def test_a_line_that_cannot_be_understood_hinders_the_proof_of_failure(issuing: Issuing, road: CrookedRoad) -> None:
    await issuing.lose("order", drawn=False)
    for bend in BENDS:
        road.bend = bend
        assert [await issuing.look(later=minutes * MINUTE) for minutes in (6, 16)] == [0, 0], bend
        assert await issuing.state("order") == "outcome_unknown"
    road.bend = None
    assert [await issuing.look(later=minutes * MINUTE) for minutes in (6, 16)] == [0, 1]
    assert await issuing.state("order") == "failed"


async def test_it_hinders_it_before_the_draw_as_well(issuing: Issuing, road: CrookedRoad) -> None:
    road.bend = no_sim
    await issuing.lose("order", drawn=False)
    road.bend = None
    assert await issuing.work(HOUR, every=30 * MINUTE) == 0
    assert await issuing.state("order") == "outcome_unknown"


async def test_a_list_that_is_cut_off_and_does_not_say_so_is_known_by_its_count(issuing: Issuing, road: CrookedRoad) -> None:
    """What is left out is read by parts, as where the list says itself that it is cut off."""
    await issuing.lose("order", drawn=True)
    drawn = issuing.drawn()
    road.bend = lambda rows: [row for row in rows if row["imsiList"][-1]["iccid"] not in drawn]
    assert await issuing.look() == 1
    assert (await issuing.row("order")).iccid == drawn[0]


@pytest.mark.long
async def test_a_list_that_is_cut_off_out_of_reach_proves_nothing(issuing: Issuing, road: CrookedRoad) -> None:
    road.bend = lambda rows: [row for row in rows if row["sim"]["status"] != "FREE"]
    issuing.network.row_cap = 1
    await issuing.lose("order", drawn=False)
    assert await issuing.work(HOUR, every=30 * MINUTE) == 0
    assert await issuing.state("order") == "outcome_unknown"


@pytest.mark.parametrize("account", [ACCOUNT, OTHER_ACCOUNT])
async def test_the_accounts_of_the_simulated_network_are_whole(issuing: Issuing, account: int) -> None:
    lines = list(issuing.network.lines_of(account))
    assert all(line.imsis[-1].end is None and line.sim.status in ("FREE", "AFFECTED") for line in lines)
    assert len({line.iccid for line in lines}) == len(lines)


@pytest.mark.long
@pytest.mark.parametrize("drawn", [True, False])
async def test_a_lost_answer_of_an_account_that_one_list_does_not_hold_is_found_out(issuing: Issuing, drawn: bool) -> None:
    issuing.network.row_cap = 20
    await read_account_lines(
        await upstream_of_organisation(issuing.world.pipeline.deps, issuing.operator.organisation), [ACCOUNT]
    )  # as after some pages and draws
    await issuing.lose("order", drawn=drawn)
    if drawn:
        assert await issuing.look() == 1
        assert (await issuing.row("order")).iccid == issuing.drawn()[0]
    else:
        assert await issuing.work(HOUR, every=30 * MINUTE) == 1
        assert await issuing.state("order") == "failed"
