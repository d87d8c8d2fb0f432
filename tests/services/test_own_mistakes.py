"""What the caller's own input or the state of their things causes is 400 or 409, with the charging system's code; never 502."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.faults import NetworkFault
from simulators.network.world import World as Network
from tests.world import World, open_world

TOKEN = "sandbox-7001-token"
ACCOUNT, PACKAGES_ONLY, OTHER_ACCOUNT = 8101, 8104, 8102
ONCE, OTHER_SPONSOR = 55010, 55036
ZONE, ZONE_OF_OTHER_SPONSOR, PROFILE, NARROW_PROFILE = 2301, 2316, 412, 413


class Stage(NamedTuple):
    """An operator with the token of their own reseller, and lines of theirs in every state."""

    world: World
    network: Network
    http: httpx.AsyncClient
    path: str
    """Of a line in use that has no steering list."""

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None, *, key: str | None = None) -> httpx.Response:
        """One call; a confirm challenge is answered with its token."""
        headers = {} if key is None else {"Idempotency-Key": key}
        said = await self.http.request(method, path, json=body, headers=headers)
        if said.status_code != 202:
            return said
        return await self.http.request(method, path, json=body, headers={**headers, "X-Confirm-Token": said.json()["confirm_token"]})


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    async with open_world(tmp_path, CATALOGUE, limits=Limits(burst_enabled=False)) as world:
        network = await world.network()
        me = await world.caller(Tier.ENTERPRISE, token=TOKEN)
        line = next(line for line in network.lines_of(ACCOUNT) if line.status == "ACTIVE" and line.sighting is not None)
        line.steering_list_id = network.accounts[ACCOUNT].steering_list_id = None
        async with world.client(me.secret) as http:
            yield Stage(world, network, http, f"/v1/subscribers/{line.iccid}")
        assert world.faults == []


def mistakes(stage: Stage) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Calls that are wrong, each in one way that only the charging system can see."""
    network, line = stage.network, stage.path
    lines = list(network.lines_of(ACCOUNT))
    ended = next(one for one in lines if one.status == "END_OF_LIFE") if any(one.status == "END_OF_LIFE" for one in lines) else None
    paused = next(one for one in lines if one.status == "SUSPENDED")
    unseen = next(one for one in lines if (one.sighting is None and one.status == "ACTIVE") or one.sim.status == "FREE")
    taken = next(one.number for one in lines if f"/{one.iccid}" not in line)
    own_iccid = line.rpartition("/")[2]
    known = [network.networks[number].tadigs[0] for number in network.zones[ZONE].network_ids]
    every = [one.tadigs[0] for one in network.networks.values()]
    zone = {"locationZoneName": "New", "networkProfileId": PROFILE}
    template = {"name": "Mine", "locationZoneId": ZONE, "validityDays": 30}
    move = {"rangeType": "ICCID", "rangeStart": own_iccid, "rangeEnd": own_iccid}
    if ended is None:
        ended = next(one for one in lines if one not in (paused, unseen) and one.iccid != own_iccid)
        ended.statuses[-1].status = "END_OF_LIFE"
    return {
        "a template's name that is taken": ("POST", "/v1/package-templates", template),
        "another template's name": ("PUT", "/v1/package-templates/{other}/core", {"name": "Mine"}),
        "a zone of another sponsor": ("PUT", "/v1/package-templates/{other}/core", {"locationZoneId": ZONE_OF_OTHER_SPONSOR}),
        "a blank template's name": ("POST", "/v1/package-templates", template | {"name": "  "}),
        "a zone's name that is taken": ("POST", "/v1/location-zones", zone | {"locationZoneName": "Nordics", "tadigList": every[:1]}),
        "an unknown network": ("POST", "/v1/location-zones", zone | {"tadigList": ["ZZZZ9"]}),
        "the networks of a zone that exists": ("POST", "/v1/location-zones", zone | {"tadigList": known}),
        "networks outside the tariff": ("POST", "/v1/location-zones", zone | {"tadigList": every}),
        "a profile without the zone's networks": (
            "PUT",
            f"/v1/location-zones/{ZONE}/network-profile",
            {"networkProfileId": NARROW_PROFILE},
        ),
        "the balance of an account for packages only": ("PUT", f"/v1/accounts/{PACKAGES_ONLY}/balance", {"amount": -1}),
        "a balance with a blank description": ("PUT", f"/v1/accounts/{ACCOUNT}/balance", {"amount": -1, "description": " "}),
        "a line's balance with a blank description": ("PUT", f"{line}/balance", {"amount": -1, "description": " "}),
        "a phone number that is taken": ("PUT", f"{line}/phone-number", {"phoneType": "real", "phoneNumber": f"+{taken}"}),
        "a template of another sponsor": ("POST", f"{line}/packages", {"packageTemplateId": OTHER_SPONSOR}),
        "a series of a template of one time": ("POST", f"{line}/packages/recurring", {"packageTemplateId": ONCE}),
        "an eSIM with a template of another sponsor": (
            "POST",
            "/v1/subscribers/issue-from-inventory",
            {"accountId": ACCOUNT, "packageTemplateId": OTHER_SPONSOR},
        ),
        "a blank message": ("POST", f"{line}/sms", {"message": " "}),
        "a message to a paused line": ("POST", f"/v1/subscribers/{paused.iccid}/sms", {"message": "Hello"}),
        "a push without a steering list": ("POST", f"{line}/steering-list/push", {}),
        "a push to a line that was never seen": ("POST", f"/v1/subscribers/{unseen.iccid}/steering-list/push", {}),
        "a push to a line that has ended": ("POST", f"/v1/subscribers/{ended.iccid}/steering-list/push", {}),
        "a move to a profile of another sponsor": (
            "POST",
            f"/v1/accounts/{ACCOUNT}/move-subscribers",
            move | {"destAccount": OTHER_ACCOUNT, "destNetworkProfileId": NARROW_PROFILE},
        ),
    }


@pytest.mark.long
async def test_every_mistake_of_the_caller_is_400_or_409_with_the_code_of_the_charging_system(stage: Stage) -> None:
    made = [
        await stage.ask("POST", "/v1/package-templates", {"name": name, "locationZoneId": ZONE, "validityDays": 1})
        for name in ("Mine", "Other")
    ]
    other = made[1].json()["data"]["templateId"]
    found: dict[str, tuple[int, str, int | None, str | None]] = {}
    for number, (name, (method, path, body)) in enumerate(mistakes(stage).items()):
        path = path.replace("{other}", str(other))
        said = await stage.ask(method, path, body, key=f"k{number}")
        told = said.json()
        found[name] = (said.status_code, told["code"], told.get("ocs_code"), told.get("param"))
        again = await stage.ask(method, path, body, key=f"k{number}")
        assert (again.status_code, again.json() | {"request_id": ""}) == (said.status_code, told | {"request_id": ""}), name
    assert found == snapshot(
        {
            "a template's name that is taken": (409, "conflict", 4, "name"),
            "another template's name": (409, "conflict", 4, "name"),
            "a zone of another sponsor": (409, "conflict", 14, "changeSponsor"),
            "a blank template's name": (400, "invalid_request", 2, None),
            "a zone's name that is taken": (409, "conflict", 4, "locationZoneName"),
            "an unknown network": (400, "invalid_request", 10001, "tadigList"),
            "the networks of a zone that exists": (409, "conflict", 10002, "tadigList"),
            "networks outside the tariff": (400, "invalid_request", 10003, "tadigList"),
            "a profile without the zone's networks": (409, "conflict", 14, None),
            "the balance of an account for packages only": (409, "conflict", 12, None),
            "a balance with a blank description": (400, "invalid_request", 2, None),
            "a line's balance with a blank description": (400, "invalid_request", 2, None),
            "a phone number that is taken": (409, "conflict", 4, "phoneNumber"),
            "a template of another sponsor": (409, "conflict", 14, None),
            "a series of a template of one time": (409, "conflict", 14, None),
            "an eSIM with a template of another sponsor": (409, "issuance_failed", 14, None),
            "a blank message": (400, "invalid_request", 2, None),
            "a message to a paused line": (409, "conflict", 14, None),
            "a push without a steering list": (409, "conflict", 16, None),
            "a push to a line that was never seen": (409, "conflict", 14, None),
            "a push to a line that has ended": (409, "subscriber_end_of_life", 17, None),
            "a move to a profile of another sponsor": (409, "conflict", 14, None),
        }
    )


async def test_a_refusal_is_told_in_words_that_name_what_to_do(stage: Stage) -> None:
    body = {"locationZoneName": "Nordics", "tadigList": ["NORAA"], "networkProfileId": PROFILE}
    said = await stage.ask("POST", "/v1/location-zones", body)
    assert said.status_code == 409
    assert said.json() | {"request_id": ""} == snapshot(
        {
            "error": "A location zone with this name exists already. Choose another name.",
            "code": "conflict",
            "request_id": "",
            "param": "locationZoneName",
            "ocs_code": 4,
        }
    )


@pytest.mark.cases
@pytest.mark.parametrize(
    ("code", "status"), [(3, 502), (5, 502), (7, 502), (13, 502), (16, 502), (4, 409), (12, 409), (14, 409), (2, 400), (6, 400)]
)
async def test_what_a_repeated_call_may_cure_stays_502(stage: Stage, code: int, status: int) -> None:
    stage.world.sandbox.faults.add(NetworkFault("modifySubscriberContactInfo", code=code))
    said = await stage.ask("PUT", f"{stage.path}/contact", {"company": "Fjell"})
    assert (said.status_code, said.json()["ocs_code"]) == (status, code)


async def test_a_push_that_the_steering_system_refuses_for_a_line_with_a_list_may_be_repeated(stage: Stage) -> None:
    await stage.ask("PUT", f"{stage.path}/steering-list", {"listId": 17})
    stage.world.sandbox.faults.add(NetworkFault("pushSteeringToSubs", code=16))
    said = await stage.ask("POST", f"{stage.path}/steering-list/push", {})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 16)


@pytest.mark.cases
@pytest.mark.parametrize("code", [2, 6, 14])
async def test_a_read_that_is_refused_is_not_laid_to_its_caller(stage: Stage, code: int) -> None:
    stage.world.sandbox.faults.add(NetworkFault("listResellerAccount", code=code))
    said = await stage.http.get("/v1/accounts")
    assert (said.status_code, said.json()["ocs_code"]) == (502, code)
