"""Lists and rows that are not what they should be: what they say is used as far as it goes, and what is missing is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from operations.intelligence import high_cost_subscribers
from registry.caller import Tier
from simulators.network.simulated_network import SimulatedNetwork
from simulators.server import WireAnswer
from storage.upstream_connections import set_connection
from tests.intelligence_costs.stage import COSTS, PACKAGES, WINDOW, CostsStage, open_costs_stage

UNLISTED = ["The charging system's lists did not show every line; those it left out are in no figure."]
Change = Callable[[Any], None]


class Strange(SimulatedNetwork):
    """A network whose answers to one method are changed."""

    method = ""
    change: Change | None = None

    async def handle(self, *given: Any, **named: Any) -> WireAnswer:
        answer = await super().handle(*given, **named)
        if self.change is None or f'"{self.method}"'.encode() not in answer.body:
            return answer
        told = orjson.loads(answer.body)
        self.change(told[self.method])
        return answer._replace(body=orjson.dumps(told))


def estrange(stage: CostsStage, method: str, change: Change) -> None:
    sandbox = stage.world.sandbox
    assert isinstance(sandbox, Strange)
    sandbox.method, sandbox.change = method, change


@pytest.mark.long
@pytest.mark.parametrize("iccid", ["x" * 20_000, "8988\u202e303700", "", None])
async def test_a_row_without_an_iccid_is_no_line_and_is_told_to_be_missing(tmp_path: Path, iccid: object) -> None:
    def change(told: Any) -> None:
        told["subscriberList"][0]["imsiList"][-1]["iccid"] = iccid

    async with open_costs_stage(tmp_path, kind=Strange) as stage:
        estrange(stage, "listSubscriber", change)
        found = await stage.costs()
        assert (found["of"], found["incomplete"]) == (len(stage.lines()) - 1, {"lines": 0, "reasons": UNLISTED})
        assert {len(row["iccid"]) for row in found["data"]["lines"]} == {19}


@pytest.mark.long
async def test_the_lines_of_an_accounts_list_are_the_accounts_where_they_do_not_say_so(tmp_path: Path) -> None:
    def change(told: Any) -> None:
        for row in told["subscriberList"]:
            row["accountId"] = None

    async with open_costs_stage(tmp_path, kind=Strange) as stage:
        estrange(stage, "listSubscriber", change)
        assert {row["account_id"] for row in (await stage.costs())["data"]["lines"]} == {8101}


@pytest.mark.long
async def test_a_line_that_two_accounts_show_is_counted_once(tmp_path: Path) -> None:
    """It was moved while the lists were read: the older of the two lists still has it."""
    moved: list[Any] = []

    def change(told: Any) -> None:
        rows = told["subscriberList"]
        if moved and rows:
            rows.append({**moved[0], "accountId": rows[0]["accountId"]})
            told["nbFound"] = len(rows)
        moved.extend(rows[:1])

    async with open_costs_stage(tmp_path, kind=Strange) as stage:
        own = await stage.world.caller(Tier.PRO, token="sandbox-7001-token")
        lines = sum(len(stage.lines(account)) for account in (8101, 8102, 8103, 8104))
        estrange(stage, "listSubscriber", change)
        async with stage.world.client(own.secret) as http:
            found = (await http.post(COSTS, json=WINDOW)).json()
        assert moved and (found["sampled"], found["of"], found["incomplete"]) == (lines, lines, None)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
async def test_a_date_outside_the_calendar_is_the_networks_failure(tmp_path: Path, moment: str) -> None:
    def change(told: Any) -> None:
        told["packages"][0].update(tsactivationutc=moment, tsexpirationutc=moment)

    async with open_costs_stage(tmp_path, kind=Strange) as stage:
        line = next(line for line in stage.lines() if line.packages)
        estrange(stage, "listSubscriberPrepaidPackages", change)
        said = await stage.http.post(PACKAGES, json={"iccid": line.iccid})
        assert (said.status_code, said.json()["code"]) == (502, "ocs_error")


async def test_use_that_was_taken_back_is_no_need(tmp_path: Path) -> None:
    def change(told: Any) -> None:
        for usage in told.get("usages", []):
            for day in usage["subsPeriodUsages"]:
                for record in day["subsDailyUsages"]:
                    record["quantity"] = -abs(record["quantity"])

    async with open_costs_stage(tmp_path, kind=Strange) as stage:
        estrange(stage, "subscriberUsageOverPeriod", change)
        data = (await stage.packages())["data"]
        assert {row["need"]["data_mb"] for row in data["lines"]} == {0.0}


@pytest.mark.long
async def test_who_is_connected_to_another_account_sees_nothing_of_the_former_one(stage: CostsStage) -> None:
    """Figures are kept for a minute; these are of the account that they were made for."""
    former = {line.iccid for line in stage.lines()}
    assert {row["iccid"] for row in (await stage.costs())["data"]["lines"]} <= former
    write = stage.world.store.write
    await write(set_connection, organisation=stage.who.organisation, mode="managed", account_id=8102, own_token=None)
    found = await stage.costs()
    assert found["method"] == high_cost_subscribers.COST_METHOD and found["of"] == len(stage.lines(8102))
    assert not former & {row["iccid"] for row in found["data"]["lines"]}
