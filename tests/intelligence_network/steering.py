"""Lines in Norway with two steering lists and packages of one zone, and what networks and the operator charge there."""

from typing import Any

from simulators.network.entities import Line
from simulators.network.seed.resellers import BUY_TARIFFS, FJORD, SELL_TARIFFS
from simulators.network.world import SteeringList, TariffRule
from tests.intelligence_network.stage import COVERAGE_AUDIT, NORDIC_1GB, DiagnosisStage
from tests.network_facts import MIB

INSIDE_LIST, OUTSIDE_LIST = 41, 42
COSTS_OF_LINES = "/v1/intelligence/high-cost-subscribers"
PACKAGES_OF_LINES = "/v1/intelligence/optimize-package"
MICRO = 1_000_000


def norwegian_networks(stage: DiagnosisStage) -> list[int]:
    """Those that the sponsor of the stage's line has."""
    allowed = stage.network.profiles[stage.line.profile_id].network_ids
    return [one.network_id for one in stage.network.networks.values() if one.iso2 == "no" and one.network_id in allowed]


def price(stage: DiagnosisStage, network_id: int, buying: int, *, selling: int | None = None, active: bool = True) -> None:
    """What data on a network costs the operator, and its customers outside packages: micro-euros per MiB. `active`: of the former."""
    sold = 3 * buying if selling is None else selling
    for tariff, rate, offered in ((BUY_TARIFFS[FJORD], buying, active), (SELL_TARIFFS[FJORD], sold, True)):
        found = stage.network.tariffs[tariff]
        number, rest = 900_000 + 1000 * tariff + network_id, [rule for rule in found.rules if rule.network_id != network_id]
        found.rules = (*rest, TariffRule(number, tariff, network_id, None, offered, rate, 4 * rate, rate, 2 * rate, 0, 0))


def alike(stage: DiagnosisStage, count: int) -> list[Line]:
    """Lines of the account whose SIMs are of the same sponsor; they live quietly, and all others are suspended."""
    mine = [line for line in stage.lines() if line.status == "ACTIVE" and line.profile_id == stage.line.profile_id][:count]
    assert len(mine) == count
    for line in stage.lines():
        if line not in mine:
            line.statuses[-1].status = "SUSPENDED"
        line.persona = line.persona._replace(active_share=0.0, travel_iso2=(), calls=0.0, messages=0.0)
    return mine


def list_of(stage: DiagnosisStage, number: int, *networks: int) -> None:
    """A steering list that prefers these networks."""
    stage.network.steering[number] = SteeringList(number, f"List {number}", FJORD, networks)


async def settle(stage: DiagnosisStage, line: Line, list_id: int | None, zone: int, network_id: int, mebibytes: int) -> None:
    """The line has this list and one package of the zone, and uses data on a network."""
    await stage.package(NORDIC_1GB, line)
    line.packages[0].zone_id, line.use_account, line.steering_list_id = zone, False, list_id
    line.cdrs.clear()
    await stage.ocs.subscriber.modify_balance(line.id, 500.0, set_balance=True)
    await stage.control("attach", iccid=line.iccid, networkId=network_id)
    await stage.use(mebibytes * MIB, network_id, line)


async def split_fleet(stage: DiagnosisStage, *, inside: int = 6, outside: int = 6) -> tuple[list[Line], list[Line]]:
    """Lines that their list leads to the network of their packages, and lines that another list leads past it. A day has passed."""
    good, bad, *_ = norwegian_networks(stage)
    zone, lines = stage.zone("Norway, one network", (good,)), alike(stage, inside + outside)
    list_of(stage, INSIDE_LIST, good)
    list_of(stage, OUTSIDE_LIST, bad)
    for line in lines[:inside]:
        await settle(stage, line, INSIDE_LIST, zone, good, 20)
    for line in lines[inside:]:
        await settle(stage, line, OUTSIDE_LIST, zone, bad, 40)
    await stage.advance(1)
    return lines[:inside], lines[inside:]


async def audit_row(stage: DiagnosisStage, line: Line) -> dict[str, Any]:
    rows = (await stage.answer(COVERAGE_AUDIT, limit=200))["data"]["lines"]
    return next(row for row in rows if row["iccid"] == line.iccid)


async def cost_row(stage: DiagnosisStage, line: Line) -> dict[str, Any]:
    rows = (await stage.answer(COSTS_OF_LINES, start="2026-12-20", end="2027-01-31", limit=500))["data"]["lines"]
    return next(row for row in rows if row["iccid"] == line.iccid)


async def plan_row(stage: DiagnosisStage, line: Line) -> dict[str, Any]:
    return (await stage.answer(PACKAGES_OF_LINES, iccid=line.iccid))["data"]["lines"][0]


async def carry_out(stage: DiagnosisStage, row: dict[str, Any]) -> None:
    """Calls what a row of advice says, in its order."""
    paths = {"modify_subscriber_steering_list": ("PUT", "steering-list"), "push_steering_to_subscriber": ("POST", "steering-list/push")}
    for step in row["do"]:
        method, path = paths[step["operation"]]
        body = {name: value for name, value in step["arguments"].items() if name != "iccid"}
        said = await stage.http.request(method, f"/v1/subscribers/{step['arguments']['iccid']}/{path}", json=body)
        assert said.status_code == 200, said.text


def deactivate(stage: DiagnosisStage, network_id: int) -> None:
    """All rules of a network are inactive."""
    for tariff in (BUY_TARIFFS[FJORD], SELL_TARIFFS[FJORD]):
        found = stage.network.tariffs[tariff]
        found.rules = tuple(rule._replace(active=False) if rule.network_id == network_id else rule for rule in found.rules)
