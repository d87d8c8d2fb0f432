"""An agent's walk over MCP: find a line, see why it has no data, help it, with confirmations where they belong."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import TextContent

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from simulators.network import charging, packages
from simulators.network.entities import DATA, DAY_SECONDS, MEBIBYTE, Line, StatusRow
from simulators.network.world import World as Network
from tests.harness.fork_server import reseller
from tests.harness.processes import ROOT, environment
from tests.interop.agent import Agent
from tests.mcp.house import ERAS, House, open_house
from tests.mcp.refusals import refusal_of
from tests.mcp.test_confirm import AnsweringPerson

READS = ("list", "get", "subscriber")
WAYS = [("auto", True), ("auto", False), ("legacy", True), ("legacy", False)]
NAMES = ["modern, a person is asked", "modern, by token", "legacy that could ask, by token", "legacy, by token"]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path, catalogue=CATALOGUE) as house:
        house.world.pipeline.rate_limiter.limits = Limits(burst_enabled=False)
        yield house
        assert house.world.faults == []


@asynccontextmanager
async def agent(house: House, era: str = "auto", *, elicits: bool = False) -> AsyncGenerator[Agent]:
    """An agent of account 8101; on the legacy protocol no server can ask a person."""
    me = await house.world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    person = AnsweringPerson("accept", {"confirm": True}) if elicits else None
    async with house.connect(me, era, query="?toolsets=subscribers,network,accounts", elicit=person) as client:
        yield Agent(client, None if era == "legacy" else person)


def sent(house: House, since: int = 0) -> list[tuple[str, Any]]:
    calls = house.world.sandbox.calls[since:]
    return [(call.method, call.payload) for call in calls if not call.method.startswith(READS)]


async def exhausted_line(house: House) -> tuple[Network, Line]:
    """A line of account 8101 that was used, and whose packages have nothing left."""
    network = await house.world.network()
    used = (line for line in network.lines_of(8101) if line.status == "ACTIVE" and line.sighting is not None and not line.series)
    line = next(line for line in used if any(package.activated and package.data_limit for package in line.packages))
    for package in line.packages:
        package.moc_limit = package.mtc_limit = package.mo_sms_limit = package.mt_sms_limit = None
        package.data_used, package.activated = package.data_limit or 0, package.activated or network.now
        package.expires = network.now + 20 * DAY_SECONDS
    return network, line


def expire(network: Network, line: Line) -> None:
    for package in line.packages:
        package.expires = network.now - 1


def block(network: Network, line: Line) -> None:
    for package in line.packages:
        packages.set_package_active(network, package, False)


def suspend(network: Network, line: Line) -> None:
    line.statuses[-1].end = network.now
    line.statuses.append(StatusRow(network.next_id("status"), "SUSPENDED", network.now))


def forbid(network: Network, line: Line) -> None:
    line.allowed_data = False


def nothing(network: Network, line: Line) -> None:
    del network, line


@pytest.mark.long
@pytest.mark.parametrize(
    ("happened", "why"),
    [
        (nothing, "packages are exhausted"),
        (expire, "packages are expired"),
        (block, "packages are blocked"),
        (packages.remove_all_packages, "no package"),
        (suspend, "the line is Suspended"),
        (forbid, "data is not allowed"),
    ],
    ids=["exhausted", "expired", "blocked", "without a package", "suspended", "forbidden"],
)
async def test_an_agent_sees_why_a_line_has_no_data(house: House, happened: Callable[[Network, Line], None], why: str) -> None:
    network, line = await exhausted_line(house)
    happened(network, line)
    async with agent(house) as walker:
        assert await walker.why_no_data(await walker.find(line.iccid[:-1])) == why
    assert sent(house) == []


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_gives_a_line_data_again_and_pauses_it(house: House, era: str) -> None:
    network, line = await exhausted_line(house)
    held = len(line.packages)
    async with agent(house, era) as walker:
        iccid = await walker.find(line.iccid[:-1])
        templates = await walker.rows("list_package_templates", limit=10)
        chosen = next(row["templateId"] for row in templates if row["prepaidpackagetemplatename"] == "World 1GB 30d")
        arguments = {"iccid": iccid, "packageTemplateId": chosen, "idempotency_key": f"help-{era}"}
        made = await walker.call("assign_package", **arguments)
        again = await walker.call("assign_package", **arguments)
        package = network.packages[made["packageId"]]
        assert again == made
        assert (len(line.packages), package.line_id, package.template_id) == (held + 1, line.id, chosen)
        assert await walker.why_no_data(iccid) == "it should work"

        charging.use_service(network, line, DATA, MEBIBYTE, network_id=network.zones[package.zone_id].network_ids[0])
        running = await walker.package(iccid, made["packageId"])
        assert (running["state"], running["useddatabyte"]) == ("running", MEBIBYTE)
        await walker.call("modify_package_status", iccid=iccid, packageId=made["packageId"], status="INACTIVE")
        assert (package.active, (await walker.package(iccid, made["packageId"]))["state"]) == (False, "blocked")
        await walker.call("modify_package_status", iccid=iccid, packageId=made["packageId"], status="ACTIVE")
        assert (package.active, await walker.why_no_data(iccid)) == (True, "it should work")
    assert [method for method, _ in sent(house)] == ["affectPackageToSubscriber", *["modifySubscriberPrepaidPackageStatus"] * 2]


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_changes_a_lines_network_and_tells_its_sim(house: House, era: str) -> None:
    _, line = await exhausted_line(house)
    async with agent(house, era) as walker:
        iccid = await walker.find(line.iccid[:-1])
        lists = await walker.rows("list_steering_lists")
        wanted = next(row["id"] for row in lists if row["id"] != line.steering_list_id)
        foreign = await walker.try_to("modify_subscriber_steering_list", iccid=iccid, listId=999_999)
        assert (foreign.is_error, refusal_of(foreign)["code"]) == (True, "not_found")
        assert "list_steering_lists" in str(foreign.content[0])
        await walker.call("modify_subscriber_steering_list", iccid=iccid, listId=wanted)
        pushed = await walker.call("push_steering_to_subscriber", iccid=iccid)
        assert (pushed["pushed"], pushed["listId"], pushed["networksKnown"]) == (True, wanted, False)
        assert (await walker.call("get_subscriber", iccid=iccid))["steeringListId"] == wanted
    assert line.steering_list_id == wanted
    assert sent(house) == [
        ("modifySubscriberSteeringList", {"subscriber": {"subscriberId": line.id}, "steeringListId": wanted}),
        ("pushSteeringToSubs", {"subscriberId": line.id}),
    ]


@pytest.mark.long
@pytest.mark.parametrize(("era", "elicits"), WAYS, ids=NAMES)
async def test_an_agent_sends_a_message_and_cleans_a_line_once_they_are_agreed_to(house: House, era: str, elicits: bool) -> None:
    _, line = await exhausted_line(house)
    async with agent(house, era, elicits=elicits) as walker:
        iccid = await walker.find(line.iccid[:-1])
        done = await walker.confirmed("send_sms", iccid=iccid, message="Your data is used up.", sender="Fjord")
        assert done == {"sent": True, "unicode": False, "length": 21}
        assert sent(house) == [("sendMtSms", {"imsi": line.imsi, "text": "Your data is used up.", "senderId": "Fjord"})]
        assert line.packages
        await walker.confirmed("clean_all_packages", iccid=iccid)
        assert (line.packages, await walker.why_no_data(iccid)) == ([], "no package")
    assert [method for method, _ in sent(house)] == ["sendMtSms", "cleanSubscriberAllPackages"]


async def test_what_a_person_declines_is_not_sent(house: House) -> None:
    _, line = await exhausted_line(house)
    async with agent(house, elicits=True) as walker:
        assert walker.person is not None
        walker.person.action, walker.person.content = "decline", None
        for tool, arguments in (("send_sms", {"message": "Hi"}), ("clean_all_packages", {})):
            refused = await walker.try_to(tool, iccid=line.iccid, **arguments)
            assert (refused.is_error, refusal_of(refused)["code"]) == (True, "confirm_declined")
        assert len(walker.person.asked) == 2
        assert line.iccid in walker.person.asked[0]
    assert (sent(house), len(line.packages) > 0) == ([], True)


async def test_a_token_that_is_used_for_another_text_sends_nothing(house: House) -> None:
    _, line = await exhausted_line(house)
    async with agent(house) as walker:
        token = await walker.token("send_sms", iccid=line.iccid, message="Hello")
        other = await walker.try_to("send_sms", iccid=line.iccid, message="Send money", confirm_token=token)
        assert refusal_of(other)["code"] == "confirm_token_invalid"
        assert sent(house) == []
        await walker.call("send_sms", iccid=line.iccid, message="Hello", confirm_token=token)
    assert [method for method, _ in sent(house)] == ["sendMtSms"]


async def test_what_an_agent_asks_for_in_vain_tells_it_how_to_go_on(house: House) -> None:
    network = await house.world.network()
    foreign = next(iter(network.lines_of(8102)))
    async with agent(house) as walker:
        lost = await walker.try_to("get_subscriber", iccid=foreign.iccid)
        block = lost.content[0]
        assert isinstance(block, TextContent) and lost.is_error
        assert "list_subscribers" in block.text
        assert await walker.rows("list_subscribers", q=foreign.iccid[:-1]) == []


@pytest.mark.long
async def test_the_walk_over_standard_input_and_output(tmp_path: Path) -> None:
    words = ["mcp", "stdio", "--toolsets", "operator", "--data", str(tmp_path / "data")]
    with anyio.fail_after(60):
        async with Client(StdioServerParameters(command=str(reseller()), args=words, cwd=ROOT, env=environment())) as client:
            walker = Agent(client, None)
            lines = await walker.rows("list_subscribers", status="ACTIVE", limit=50)
            iccid = await walker.find(lines[0]["iccid"][:-1])
            before = await walker.rows("list_subscriber_packages", iccid=iccid)
            templates = await walker.rows("list_package_templates")
            chosen = next(row["templateId"] for row in templates if row["prepaidpackagetemplatename"] == "World 1GB 30d")
            made = await walker.call("assign_package", iccid=iccid, packageTemplateId=chosen)
            assert (await walker.package(iccid, made["packageId"]))["state"] == "assigned"
            await walker.call("modify_package_status", iccid=iccid, packageId=made["packageId"], status="INACTIVE")
            assert (await walker.package(iccid, made["packageId"]))["state"] == "blocked"
            await walker.confirmed("delete_subscriber_package", iccid=iccid, packageId=made["packageId"])
            after = await walker.rows("list_subscriber_packages", iccid=iccid)
    assert len(lines) > 60
    assert [row["packageId"] for row in after] == [row["packageId"] for row in before]
