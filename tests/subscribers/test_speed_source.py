"""Whose speed limit it is: a package's, the green zone's, or somebody's who set it."""

from typing import Any, NamedTuple

import pytest

from simulators.network import packages as engine
from simulators.network.entities import MEBIBYTE, Line, Package
from tests.accounts.stage import AccountsStage, open_accounts_stage
from tests.stage import opened

stage = opened(open_accounts_stage)
THROTTLED, PLAIN = "Europe 10GB 30d", "Nordic 1GB 30d"
"""Templates of the simulated network: thresholds at 80 % (5120 kbit/s) and 95 % (512 kbit/s); none."""
MORE_CALLS = ["listSubscriberPrepaidPackages", "listPrepaidPackageTemplate"]


class Held(NamedTuple):
    """A package of a line: its template, and how much of its data is used, in percent."""

    template: str
    percent: int


def limited_line(stage: AccountsStage, limit: str, *held: Held, green_megabytes: int = 0) -> Line:
    """A line in use that has these packages alone, whatever else the seed gave it."""
    line = stage.used()
    line.packages.clear()
    line.series.clear()
    for each in held:
        buy(stage, line, each)
    line.bitrate, line.green_bytes = limit, green_megabytes * MEBIBYTE
    return line


def buy(stage: AccountsStage, line: Line, held: Held) -> Package:
    template = next(row for row in stage.network.templates.values() if (row.name, row.reseller_id) == (held.template, 7001))
    package = engine.assign_package(stage.network, line, template, period=None, validity_days=30)
    package.data_used = (package.data_limit or 0) * held.percent // 100
    return package


async def asked(stage: AccountsStage, line: Line) -> tuple[str, list[str]]:
    """Whose limit it is, and what was asked of the network beside the line and its limit."""
    since = len(stage.sent())
    said = await stage.managed.get(f"/v1/subscribers/{line.iccid}/bitrate")
    assert (said.status_code, said.json()["data"]["limit"]) == (200, line.bitrate), said.text
    first, second, *more = stage.sent(since)
    assert [first, second] == ["getSingleSubscriber", "hlrGetBitrate"]
    return said.json()["data"]["limitSource"], more


async def test_no_limit_is_nobody_s_and_costs_no_call(stage: AccountsStage) -> None:
    assert await asked(stage, limited_line(stage, "UNLIMITED", Held(THROTTLED, 96))) == ("none", [])


@pytest.mark.cases
@pytest.mark.parametrize("limit", ["KB_32", "KB_64", "KB_2048"])
async def test_a_limit_that_no_template_can_set_was_set_by_hand(stage: AccountsStage, limit: str) -> None:
    assert await asked(stage, limited_line(stage, limit, Held(THROTTLED, 96))) == ("manual", [])


async def test_a_limit_of_a_line_whose_packages_are_unused_was_set_by_hand(stage: AccountsStage) -> None:
    assert await asked(stage, limited_line(stage, "KB_512")) == ("manual", MORE_CALLS[:1])
    assert await asked(stage, limited_line(stage, "KB_512", Held(THROTTLED, 0))) == ("manual", MORE_CALLS[:1])


async def test_once_a_package_was_used_the_documented_charging_system_does_not_tell(stage: AccountsStage) -> None:
    assert await asked(stage, limited_line(stage, "KB_512", Held(THROTTLED, 96))) == ("unknown", MORE_CALLS)
    assert await asked(stage, limited_line(stage, "KB_512", Held(PLAIN, 50))) == ("unknown", MORE_CALLS[:1])  # a minute old at most


@pytest.mark.cases
@pytest.mark.parametrize(
    ("limit", "held", "source"),
    [
        ("KB_5120", [Held(THROTTLED, 80)], "package"),
        ("KB_512", [Held(THROTTLED, 96)], "package"),
        ("KB_512", [Held(PLAIN, 50), Held(THROTTLED, 95)], "package"),
        ("KB_512", [Held(THROTTLED, 80)], "manual"),
        ("KB_5120", [Held(THROTTLED, 79)], "manual"),
        ("KB_512", [Held(PLAIN, 99)], "manual"),
    ],
)
async def test_where_thresholds_are_told_a_package_s_limit_is_told_from_one_set_by_hand(
    stage: AccountsStage, limit: str, held: list[Held], source: str
) -> None:
    stage.network.tells_more = True
    assert await asked(stage, limited_line(stage, limit, *held)) == (source, MORE_CALLS)


async def test_a_package_that_has_ended_may_have_left_its_limit(stage: AccountsStage) -> None:
    stage.network.tells_more = True
    line = limited_line(stage, "KB_512", Held(THROTTLED, 96))
    line.packages[0].active = False
    assert (await asked(stage, line))[0] == "unknown"


async def test_the_green_zone_s_limit_is_told_when_the_data_is_used_up(stage: AccountsStage) -> None:
    used_up = limited_line(stage, "KB_128", Held(PLAIN, 100), green_megabytes=10)
    assert await asked(stage, used_up) == ("fair_use", MORE_CALLS[:1])
    some_left = limited_line(stage, "KB_128", Held(PLAIN, 90), green_megabytes=10)
    assert (await asked(stage, some_left))[0] == "unknown"
    never_there = limited_line(stage, "KB_128", Held(PLAIN, 0))
    assert (await asked(stage, never_there))[0] == "manual"


@pytest.mark.cases
@pytest.mark.parametrize("method", MORE_CALLS)
@pytest.mark.parametrize("kind", [{"code": 3}, {"code": 18}, {"code": 14}, {"malformed": True}, {"status": 502}], ids=str)
async def test_the_limit_is_told_although_nothing_more_can_be_read(stage: AccountsStage, method: str, kind: dict[str, Any]) -> None:
    stage.trouble(method, **kind, times=None)
    source, more = await asked(stage, limited_line(stage, "KB_512", Held(THROTTLED, 96)))
    assert source == "unknown" and more[: MORE_CALLS.index(method) + 1] == MORE_CALLS[: MORE_CALLS.index(method) + 1]
