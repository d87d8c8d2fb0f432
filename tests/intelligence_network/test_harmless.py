"""Whatever networks charge and lines use: nothing that is advised costs the operator or the customer more than what is."""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.intelligence_advice import harms_nobody, led_to, list_told
from simulators.network.entities import Cdr, Line
from tests.intelligence_network.stage import COVERAGE_AUDIT, NORDIC_1GB, DiagnosisStage, open_diagnosis_stage
from tests.intelligence_network.steering import COSTS_OF_LINES, INSIDE_LIST, PACKAGES_OF_LINES, alike, list_of, norwegian_networks, price
from tests.network_facts import MIB, SIBLING

LISTS, LINES = 3, 5
RATES = st.tuples(st.integers(10, 60_000), st.integers(10, 200_000), st.sampled_from([True] * 6 + [False]))


class Habit(NamedTuple):
    """What a line uses on the network of its list, in MiB; whether it strays, and what its package holds, in MiB; None: it has none."""

    mebibytes: int
    strays: bool
    package: int | None


class Market(NamedTuple):
    """What networks cost to buy and to sell and whether they are bought; the networks of the zone, by place; and the lines of each list."""

    rates: tuple[tuple[int, int, bool], ...]
    covered: frozenset[int]
    habits: tuple[tuple[Habit, ...], ...]


HABITS = st.builds(Habit, st.integers(1, 150), st.sampled_from([False] * 5 + [True]), st.sampled_from([None, 20, 1024, 1024, 1024]))
MARKETS = st.builds(
    Market,
    st.tuples(RATES, RATES, RATES),
    st.frozensets(st.integers(0, 2), min_size=1, max_size=2),
    st.tuples(*[st.tuples(*[HABITS] * LINES)] * LISTS),
)


async def live(stage: DiagnosisStage, market: Market) -> None:
    """A day in which each list leads its lines to one network of Norway; a few use another one as well."""
    networks = norwegian_networks(stage)[:3]
    for network, (buying, selling, bought) in zip(networks, market.rates, strict=True):
        price(stage, network, buying, selling=selling, active=bought)
    zone = stage.zone("Norway, some networks", tuple(networks[place] for place in sorted(market.covered)))
    lines = alike(stage, LISTS * LINES)
    for other in stage.lines():
        if other not in lines:
            other.account_id = SIBLING  # what is not looked at need not be read
    for place, habits in enumerate(market.habits):
        list_of(stage, INSIDE_LIST + place, networks[place])
        for line, habit in zip(lines[place * LINES : (place + 1) * LINES], habits, strict=True):
            await stage.package(NORDIC_1GB, line)
            line.packages[0].zone_id, line.use_account, line.steering_list_id = zone, False, INSIDE_LIST + place
            line.packages[0].data_limit = (habit.package or 0) * MIB
            line.cdrs.clear()
            await stage.ocs.subscriber.modify_balance(line.id, 900.0, set_balance=True)
            if habit.package is None:
                await stage.ocs.subscriber.clean_all_packages(line.id)
            if habit.strays:
                await stage.use(habit.mebibytes * MIB // 4 + 1, networks[(place + 1) % 3], line)
            await stage.use(habit.mebibytes * MIB, networks[place], line)
    await stage.advance(1)


def judge(stage: DiagnosisStage, row: dict[str, Any], line: Line, records: list[Cdr], tally: Counter[str]) -> None:
    """One row of advice against what the network itself would charge."""
    tally[row["action"]] += 1
    for saving in (row["saving_operator"], row["saving_customer"]):
        assert saving is None or saving >= 0, row
    if row["action"] in ("change_steering_list", "push_steering"):
        list_id = list_told(row, line, stage.network)
        told = stage.network.networks[led_to(stage.network, line, list_id, "no") or 0]
        assert (row["leads_to"]["mcc"], row["leads_to"]["mnc"]) in told.codes, row
        assert harms_nobody(stage.network, line, list_id, records, None), row
    if row["action"] == "offer_package" and row["saving_customer"] is not None:
        assert sum(cdr.subscriber_cost for cdr in records) > 0 < row["saving_customer"], row


async def trial(market: Market, tally: Counter[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_diagnosis_stage(Path(folder)) as stage:
            await live(stage, market)
            lines = {line.iccid: line for line in stage.lines()}
            audit = (await stage.answer(COVERAGE_AUDIT, limit=200))["data"]["lines"]
            costs = (await stage.answer(COSTS_OF_LINES, start="2026-12-25", end="2027-01-20", limit=500))["data"]["lines"]
            for row in (*audit, *costs):
                line = lines[row["iccid"]]
                judge(stage, row, line, [cdr for cdr in line.cdrs if cdr.at < stage.network.now], tally)
            for row in (await stage.answer(PACKAGES_OF_LINES, limit=500))["data"]["lines"]:
                tally[row["verdict"]] += 1
                assert row["best"] is None or row["best"]["total"] <= row["now"]["total"], row
                assert row["saving_operator"] == 0 <= row["saving_customer"], row
                assert row["verdict"] != "keep" or row["margin"] >= 0, row


@pytest.mark.long
def test_no_advice_costs_the_operator_or_the_customer_more_than_what_is() -> None:
    tally = Counter[str]()

    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(MARKETS)
    def hold(market: Market) -> None:
        asyncio.run(trial(market, tally))

    hold()
    for word in ("change_steering_list", "push_steering", "offer_package", "none", "change", "keep", "loses_money", "mis_steered"):
        assert tally[word] > 0, tally
