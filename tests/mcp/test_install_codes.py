"""What installs an eSIM is bearer goods: a tool that looks at a line shows it only to whoever names it."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.entities import Line
from tests.mcp.house import House, open_house
from tests.mcp.refusals import refusal_of
from tests.world import Credentials
from transports.mcp.tools import is_tool

READS = [operation for operation in CATALOGUE.operations.values() if is_tool(operation) and operation.read_only]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path, catalogue=CATALOGUE) as house:
        house.world.pipeline.rate_limiter.limits = Limits(burst_enabled=False)
        yield house
        assert house.world.faults == []


@pytest.fixture
async def me(house: House) -> Credentials:
    return await house.world.caller(Tier.ENTERPRISE, mode="managed", account=8101)


async def a_line(house: House) -> Line:
    return next(line for line in (await house.world.network()).lines_of(8101) if line.sim.activation_code)


SHOWN = (
    (None, "all but the code", True),
    (["*"], "all but the code", True),
    (["sim"], "all but the code", False),
    (["sim", "activationCode"], "with the code", False),
    (["*", "sim.activationCode"], "with the code", True),
    (["iccid", "activationCode"], "the code alone", True),
    (["activationCode", "confirmationCode"], "the code alone", False),
    (["iccid"], "none", True),
)
"""Asked for members: how the SIM is shown, and whether there is more."""


@pytest.mark.parametrize("tool", ["get_subscriber", "list_subscribers"])
async def test_a_line_shows_its_activation_code_only_to_whoever_names_it(house: House, me: Credentials, tool: str) -> None:
    line = await a_line(house)
    whole = {"activationCode", "affectationDateUtc", "esim", "id", "smdpServer", "status", "subscriberId"}
    members = {"none": None, "the code alone": {"activationCode"}, "with the code": whole, "all but the code": whole - {"activationCode"}}
    async with house.connect(me) as client:
        for fields, sim, beside in SHOWN:
            said = await client.call_tool(tool, {"iccid": line.iccid} | ({"fields": fields} if fields else {}))
            assert not said.is_error, said.content
            found = said.structured_content["data"]
            row: dict[str, Any] = found if isinstance(found, dict) else found[0]
            if fields is None and tool == "list_subscribers":
                sim = "none"  # its default is a few members
            assert ("iccid" in row) is beside, fields
            assert (set(row["sim"]) if "sim" in row else None) == members[sim], fields
            assert (line.sim.activation_code in str(said)) is (sim in ("with the code", "the code alone")), fields


async def test_http_shows_the_whole_line_unless_it_is_asked_for_members(house: House, me: Credentials) -> None:
    line = await a_line(house)
    async with house.world.client(me.secret) as http:
        whole = (await http.get(f"/v1/subscribers/{line.iccid}")).json()["data"]
        closed = (await http.get(f"/v1/subscribers/{line.iccid}?fields=*")).json()["data"]
        named = (await http.get(f"/v1/subscribers/{line.iccid}?fields=iccid,activationCode")).json()["data"]
    assert whole["sim"]["activationCode"] == line.sim.activation_code
    assert closed == {**whole, "sim": {name: value for name, value in whole["sim"].items() if name != "activationCode"}}
    assert named == {"iccid": line.iccid, "sim": {"activationCode": line.sim.activation_code}}


async def test_a_list_of_orders_shows_no_code_unless_it_is_named_and_one_order_does(house: House, me: Credentials) -> None:
    async with house.connect(me) as client, house.world.client(me.secret) as http:
        issued = await client.call_tool("create_connectivity_intent", {"plan": "test_eu_1gb", "idempotency_key": "k"})
        listed = await client.call_tool("list_connectivity_intents", {})
        named = await client.call_tool("list_connectivity_intents", {"activation_codes": True})
        one = await client.call_tool("get_connectivity_intent", {"id": issued.structured_content["id"]})
        whole = (await http.get("/v1/connectivity/intents")).json()["data"]
    esim = issued.structured_content["esim"]
    closed = {"iccid": esim["iccid"], "smdp_address": esim["smdp_address"]}
    assert listed.structured_content["data"] == [{**issued.structured_content, "esim": closed}]
    assert esim["matching_id"] not in str(listed)
    assert named.structured_content["data"] == whole == [one.structured_content] == [issued.structured_content]


async def test_members_that_no_line_has_are_refused(house: House, me: Credentials) -> None:
    line = await a_line(house)
    async with house.connect(me) as client:
        refused = refusal_of(await client.call_tool("get_subscriber", {"iccid": line.iccid, "fields": ["colour"]}))
    assert (refused["code"], refused["param"]) == ("invalid_request", "fields")


@pytest.mark.long
async def test_no_tool_that_reads_shows_the_activation_code_of_a_line_unasked(house: House, me: Credentials) -> None:
    line = await a_line(house)
    given = {"iccid": line.iccid, "accountId": 8101, "resellerId": 7001, "voipPlanId": 92, "start": "2027-01-01", "end": "2027-01-05"}
    codes = [each.sim.activation_code for each in (await house.world.network()).lines_of(8101) if each.sim.activation_code]
    answered = 0
    async with house.connect(me, query="?toolsets=all") as client:
        for operation in READS:
            example = dict(operation.examples[0].input)
            said = await client.call_tool(operation.id, {**example, **{name: given[name] for name in example.keys() & given.keys()}})
            text = orjson.dumps(said.model_dump(mode="json")).decode()
            assert [code for code in codes if code in text] == [], operation.id
            answered += not said.is_error
    assert answered > 45
