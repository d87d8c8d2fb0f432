"""The model of the charging system answers as the simulated network does."""

from typing import Any, cast

import orjson
import pytest

from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from tests.simulation.provider import ModelNetwork, Template
from tests.world import NOON

TOKEN = "sandbox-7001-token"
# Members that only lines or accounts with a past have; the model's are new.
PAST = {"listResellerAccount": {"reseller.account.steeringListId"}}


def members(value: object, path: str = "") -> set[str]:
    """The path of every member; rows of one array count as one."""
    if isinstance(value, list):
        return {found for row in cast(list[object], value) for found in members(row, path)}
    if not isinstance(value, dict):
        return set()
    found = set[str]()
    for name, inner in cast(dict[str, object], value).items():
        found |= {f"{path}{name}"} | members(inner, f"{path}{name}.")
    return found


class Both:
    """The two systems, asked the same."""

    def __init__(self) -> None:
        self.sandbox = SimulatedNetwork(build_world(1, int(NOON), history_days=3), wall=lambda: NOON)
        self.model = ModelNetwork(lambda: NOON, {8101: 3}, (Template(55010, "Nordic 1GB 30d", 30),))

    async def of_sandbox(self, method: str, params: object, version: str = "v1") -> dict[str, Any]:
        answer = await self.sandbox.handle("POST", f"/main/{version}", f"token={TOKEN}", {}, orjson.dumps({method: params}))
        return orjson.loads(answer.body)

    def of_model(self, method: str, params: object, version: str = "v1") -> dict[str, Any]:
        return orjson.loads(self.model.perform(orjson.dumps({method: params}), version))

    async def same(self, method: str, params: object, other: object | None = None, version: str = "v1") -> tuple[Any, Any]:
        """Both answers, whose members must have the same names; `other`: what the model is asked, where ids differ."""
        real, modelled = await self.of_sandbox(method, params, version), self.of_model(method, params if other is None else other, version)
        assert real["status"]["code"] == modelled["status"]["code"], (real, modelled)
        assert members(modelled.get(method)) == members(real.get(method)) - PAST.get(method, set())
        return real.get(method), modelled.get(method)


@pytest.mark.long
async def test_the_model_and_the_simulated_network_give_the_same_members() -> None:
    both = Both()
    await both.same("getResellerInfo", {})
    await both.same("listResellerAccount", {})
    await both.same("listDetailedLocationZone", 7001)
    await both.same("listPrepaidPackageTemplate", {"templateId": 55010})
    await both.same("esimStatusPerAccount", {"accountId": 8101})
    drawn = {"packageTemplateId": 55010, "accountForSubs": 8101, "validityPeriod": 5}
    real, ours = await both.same("affectPackageToSubscriber", drawn)
    await both.same("esimStatusPerAccount", {"accountId": 8101})
    lines = {"subscriberId": real["subscriberId"]}, {"subscriberId": ours["subscriberId"]}
    await both.same("getSingleSubscriber", *lines)
    await both.same("getSimProviderStatus", real["esimId"], ours["esimId"])
    for version in ("v1", "v2"):
        await both.same("listSubscriberPrepaidPackages", *lines, version=version)
    await both.same("deleteSubscriberPackage", real["subsPackageId"], ours["subsPackageId"])
    await both.same("deleteSubscriberPackage", real["subsPackageId"], ours["subsPackageId"])
    await both.same("listSubscriberPrepaidPackages", *lines)
    freed = {"simId": real["esimId"], "newStatus": "Free"}, {"simId": ours["esimId"], "newStatus": "Free"}
    await both.same("changeSimStatus", *freed)
    await both.same("getSingleSubscriber", *lines)
    undated = {"packageTemplateId": 55010, "accountForSubs": 8101}
    again_real, again_ours = await both.same("affectPackageToSubscriber", undated)
    assert (again_real["iccid"], again_ours["iccid"]) == (real["iccid"], ours["iccid"])
    await both.same("listSubscriberPrepaidPackages", *lines)


@pytest.mark.long
async def test_the_rows_of_an_account_have_the_members_that_lines_without_a_past_have() -> None:
    both = Both()
    drawn = {"packageTemplateId": 55010, "accountForSubs": 8101, "validityPeriod": 5}
    real, ours = await both.same("affectPackageToSubscriber", drawn)
    listed = await both.of_sandbox("listSubscriber", {"accountId": 8101}), both.of_model("listSubscriber", {"accountId": 8101})
    assert members(listed[1]) - members(listed[0]) == set()
    rows = [found["listSubscriber"]["subscriberList"] for found in listed]
    drawn_rows = [
        next(row for row in each if row["subscriberId"] == one["subscriberId"]) for each, one in zip(rows, (real, ours), strict=True)
    ]
    free_rows = [next(row for row in each if row["sim"]["status"] == "FREE") for each in rows]
    assert members(drawn_rows[0]) == members(drawn_rows[1])
    assert members(free_rows[0]) == members(free_rows[1])


async def test_an_account_without_a_free_esim_and_an_unknown_template_are_refused_alike() -> None:
    both = Both()
    assert both.of_model("affectPackageToSubscriber", {"packageTemplateId": 1, "accountForSubs": 8101}) == {
        "status": {"code": 6, "msg": "refused"}
    }
    refused = await both.of_sandbox("affectPackageToSubscriber", {"packageTemplateId": 1, "accountForSubs": 8101})
    assert refused["status"]["code"] == 6
    for _ in range(3):
        assert both.of_model("affectPackageToSubscriber", {"packageTemplateId": 55010, "accountForSubs": 8101})["status"]["code"] == 0
    assert both.of_model("affectPackageToSubscriber", {"packageTemplateId": 55010, "accountForSubs": 8101})["status"]["code"] == 6
    assert [entry.effect for entry in both.model.log] == [False, True, True, True, False]
