"""What can be read without a tool call."""

import dataclasses
from pathlib import Path

import orjson
import pytest
from inline_snapshot import snapshot
from mcp.shared.exceptions import MCPError
from mcp_types import ReadResourceResult, TextResourceContents

from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from registry.limits import TierLimits
from tests.mcp import ledgers
from tests.mcp.house import ERAS, House, open_house, request
from tests.world import Credentials


def text_of(result: ReadResourceResult) -> str:
    (content,) = result.contents
    assert isinstance(content, TextResourceContents)
    return content.text


@pytest.mark.parametrize("era", ERAS)
async def test_the_plan_catalogue_is_the_answer_of_its_operation(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client, house.world.client(pro.secret) as http:
        listed = await client.list_resources()
        plans = await client.read_resource("connectivity://plans")
        assert text_of(plans) == (await http.get("/v1/connectivity/plans?limit=100")).text
    cards = ["ui://connectivity/confirmation"] if era == "legacy" else []  # an earlier client cannot say whether it shows them
    assert [resource.uri for resource in listed.resources] == ["connectivity://plans", "reference://operations", *cards]


@pytest.mark.parametrize("era", ERAS)
async def test_an_intent_is_read_by_its_id_and_only_by_its_organisation(house: House, pro: Credentials, era: str) -> None:
    other = await house.world.caller(Tier.PRO)
    uri = f"connectivity://intents/cni_{pro.organisation}"
    async with house.connect(pro, era) as client:
        templates = await client.list_resource_templates()
        assert text_of(await client.read_resource(uri)) == f'{{"id":"cni_{pro.organisation}","note":null}}'
    async with house.connect(other, era) as stranger:
        with pytest.raises(MCPError) as foreign:
            await stranger.read_resource(uri)
        with pytest.raises(MCPError) as unknown:
            await stranger.read_resource("connectivity://intents/cni_nowhere")
    assert [template.uri_template for template in templates.resource_templates] == snapshot(
        ["connectivity://intents/{id}", "reference://operations/{id}"]
    )
    code = -32002 if era == "legacy" else -32602
    assert (foreign.value.code, foreign.value.message) == (unknown.value.code, unknown.value.message) == (code, "Resource not found")


@pytest.mark.cases
@pytest.mark.parametrize(
    "uri",
    [
        "connectivity://nothing",
        "connectivity://intents/",
        "connectivity://intents/a/b",
        "reference://operations/get_picture",
        "x",
        "file:///etc/passwd",
    ],
)
async def test_what_is_not_there_is_named(house: House, pro: Credentials, uri: str) -> None:
    answer = await house.post(request("resources/read", uri=uri), secret=pro.secret, **{"mcp-name": uri})
    assert answer.status_code == 400
    assert answer.json()["error"] == {"code": -32602, "message": "Resource not found", "data": {"uri": uri}}


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
async def test_what_is_not_there_has_the_code_of_its_protocol_version(house: House, pro: Credentials, version: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "connectivity://intents/cni_none"}}
    answer = await house.post(body, secret=pro.secret, **{"mcp-protocol-version": version})
    [data] = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    error = {"code": -32002, "message": "Resource not found", "data": {"uri": "connectivity://intents/cni_none"}}
    assert orjson.loads(data)["error"] == error


async def test_reading_costs_what_calling_costs(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        limits = house.world.pipeline.rate_limiter.limits
        house.world.pipeline.rate_limiter.limits = dataclasses.replace(limits, tiers={**limits.tiers, Tier.PRO: TierLimits(1, 25, 50, 0)})
        async with house.connect(await house.world.caller(Tier.PRO)) as client:
            await client.read_resource("connectivity://plans")
            with pytest.raises(MCPError) as refused:
                await client.read_resource("connectivity://plans")
            await client.read_resource("reference://operations")
    assert refused.value.data["body"]["code"] == "quota_exceeded"


async def test_a_catalogue_without_the_operations_shows_no_such_resource(tmp_path: Path) -> None:
    catalogue = Catalogue([Toolset("connectivity", "Ledgers.", (ledgers,))])
    async with open_house(tmp_path, catalogue=catalogue) as house, house.connect(await house.world.caller()) as client:
        assert [resource.uri for resource in (await client.list_resources()).resources] == ["reference://operations"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["reference://operations/{id}"]
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("connectivity://plans")


async def test_the_reference_lists_every_tool_and_tells_each_in_full(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        index = text_of(await client.read_resource("reference://operations"))
        page = text_of(await client.read_resource("reference://operations/get_note"))
        confirmed = text_of(await client.read_resource("reference://operations/purge_ledger"))
    assert "## ledgers" in index
    assert "- `get_note`: Read one note." in index
    assert "get_picture" not in index
    assert page == snapshot("""\
# Get note

`get_note`, over HTTP `GET /v1/notes/{name}`

Read one note.

Use list_notes to find
its name.

Only the reference shows this.

- Changes nothing.

| Input | Meaning |
|---|---|
| `name` (required) | Name of the note, 1-100 characters. |

## The first note

```json
{"name":"first"}
```
""")
    assert "Asks for a confirmation first" in confirmed
