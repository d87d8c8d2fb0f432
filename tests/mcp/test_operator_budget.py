"""What the operator tools cost of a model's context, in definitions and in answers, and how well they are told apart."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from mcp.client.client import Client
from mcp_types import TextContent

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.catalogue import AnyOperation, ToolSelection
from tests.mcp.house import ERAS, House, open_house
from tests.mcp.tool_sizes import measure_tools
from tests.stage import opened
from transports.mcp.tools import is_tool, tool_definition

COUNT = 52
ANSWER = 8_000  # characters, which is 2,000 tokens
FIELDS = frozenset({"idempotency_key", "confirm_token", "starting_after"})
NAME = re.compile(r"(?<![.\w])[a-z][a-z0-9]*(_[a-z0-9]+)+")
WHOLE = frozenset({"list_destination_prefixes"})  # its prefixes are one list, which means something only when it is complete


def operator_tools() -> list[AnyOperation]:
    """Those of the operator preset, in catalogue order."""
    ids = CATALOGUE.chosen(ToolSelection(("operator",)))
    return [operation for operation in CATALOGUE.operations.values() if operation.id in ids and is_tool(operation)]


def every_tool() -> list[AnyOperation]:
    return [operation for operation in CATALOGUE.operations.values() if is_tool(operation)]


def shown(operation: AnyOperation) -> dict[str, Any]:
    definition = tool_definition(operation).model_dump(by_alias=True, mode="json", exclude_none=True)
    del definition["outputSchema"]
    return definition


def table(sizes: Counter[str]) -> str:
    return "\n".join(f"{size:6} {name}" for name, size in sizes.most_common())


def parameters(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every parameter with its schema, also those of objects within."""
    for name, part in schema.get("properties", {}).items():
        yield name, part
        for inner in (part, part.get("items", {})):
            yield from ((f"{name}.{deeper}", found) for deeper, found in parameters(inner))


def test_the_operator_preset_is_the_fifty_two_tools_of_the_specification() -> None:
    assert measure_tools(CATALOGUE, ["operator"]).tools == len(operator_tools()) == COUNT


@pytest.mark.parametrize("operation", every_tool(), ids=lambda operation: operation.id)
def test_a_tool_is_described_so_that_a_model_can_use_it(operation: AnyOperation) -> None:
    definition = shown(operation)
    first, *rest = definition["description"].split("\n")
    assert (NAME.fullmatch(operation.id) or operation.id == "whoami") and len(operation.id) <= 40
    assert first.endswith(".") and first[0].isupper() and len(first) <= 80
    assert all(line.endswith((".", "?")) for line in rest)
    for name, part in parameters(definition["inputSchema"]):
        said = part.get("description", "")
        assert said.endswith((".", ".)")), f"{name}: {said!r}"
    verbs = {id.partition("_")[0] for id in CATALOGUE.operations}
    named = {name for match in NAME.finditer(definition["description"]) if (name := match.group()).partition("_")[0] in verbs}
    assert named <= set(CATALOGUE.operations) | FIELDS, "it sends a model to a tool that does not exist"
    assert operation.id not in named
    unknown = {name for name in named & set(CATALOGUE.operations) if not is_tool(CATALOGUE.operations[name])}
    assert not unknown, "a model cannot call what is no tool"


def test_no_two_tools_can_be_taken_for_each_other() -> None:
    lines = Counter(shown(operation)["description"].split("\n")[0] for operation in every_tool())
    titles = Counter(operation.title for operation in every_tool())
    assert [line for line, count in (lines + titles).items() if count > 1] == []


def test_no_parameter_has_two_names() -> None:
    for operation in every_tool():
        names = Counter(name.replace("_", "").lower() for name in shown(operation)["inputSchema"]["properties"])
        assert set(names.values()) <= {1}, operation.id


@pytest.mark.parametrize("operation", [each for each in operator_tools() if each.confirm], ids=lambda operation: operation.id)
def test_a_tool_that_asks_for_confirmation_says_what_is_lost_or_changed(operation: AnyOperation) -> None:
    assert len(shown(operation)["description"].split("\n")) == 2
    assert "confirm_token" in shown(operation)["inputSchema"]["properties"]


def test_a_tool_shows_the_key_where_a_repeated_call_has_a_second_effect() -> None:
    named = {operation.id for operation in operator_tools() if "idempotency_key" in shown(operation)["inputSchema"]["properties"]}
    assert named == {
        "assign_package",
        "assign_recurring_package",
        "send_sms",
        "modify_account_balance",
        "modify_subscriber_balance",
        "create_package_template",
    }
    for operation in every_tool():
        if "idempotency_key" in shown(operation)["description"]:
            assert "idempotency_key" in shown(operation)["inputSchema"]["properties"], operation.id


def lists() -> list[AnyOperation]:
    return [operation for operation in operator_tools() if operation.id.startswith("list_") or operation.id == "get_tariff"]


def test_every_list_has_a_size_unless_it_means_something_only_as_a_whole() -> None:
    defaults = {operation.id: shown(operation)["inputSchema"]["properties"].get("limit", {}).get("default") for operation in lists()}
    assert {name for name, limit in defaults.items() if limit is None} == WHOLE
    assert all(1 <= limit <= 20 for limit in defaults.values() if limit is not None)


house = opened(open_house, catalogue=CATALOGUE, faultless=True)


async def blocks(client: Client, name: str, **arguments: Any) -> tuple[list[str], dict[str, Any]]:
    """The texts a model reads, and what goes beside them."""
    said = await client.call_tool(name, arguments)
    assert not said.is_error, said.content
    return [block.text for block in said.content if isinstance(block, TextContent)], said.meta or {}


@pytest.mark.long
async def test_no_list_fills_a_models_context_by_default(house: House) -> None:
    me = await house.world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    network = await house.world.network()
    line = max(network.lines_of(8101), key=lambda line: len(line.packages))
    given: dict[str, dict[str, Any]] = {
        "list_subscriber_packages": {"iccid": line.iccid},
        "list_voip_tariff_rule": {"voipPlanId": 92},
        "get_tariff": {"resellerId": 7001},
    }
    sizes: Counter[str] = Counter()
    async with house.connect(me) as client:
        for operation in lists():
            texts, _ = await blocks(client, operation.id, **given.get(operation.id, {}))
            sizes[operation.id] = sum(map(len, texts))
    assert max(sizes.values()) < ANSWER, table(sizes)


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_a_page_of_lines_is_short_whatever_they_are_called_and_says_how_to_go_on(house: House, era: str) -> None:
    me = await house.world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    for line in (await house.world.network()).lines_of(8101):
        line.name = "Æ" * 121 + " " + "W" * 121
    seen: list[str] = []
    async with house.connect(me, era) as client:
        cursor: dict[str, str] = {}
        while True:
            texts, meta = await blocks(client, "list_subscribers", **cursor)
            assert sum(map(len, texts)) < ANSWER
            seen += [row["iccid"] for row in orjson.loads(texts[0])["data"]]
            if "next" not in meta:
                break
            assert texts[1:] == [f'20 of 140. There is more: call again with the same arguments and starting_after="{meta["next"]}"']
            cursor = {"starting_after": meta["next"]}
    assert len(seen) == len(set(seen)) == 140
    assert texts[1:] == []


@pytest.mark.long
async def test_a_model_that_asks_for_more_gets_it(house: House) -> None:
    me = await house.world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    async with house.connect(me) as client:
        texts, _ = await blocks(client, "list_subscribers", limit=1, fields=["*"])
        few, _ = await blocks(client, "list_subscribers", limit=1, fields=["iccid"])
    (row,), (small,) = orjson.loads(texts[0])["data"], orjson.loads(few[0])["data"]
    assert {"sim", "imsiList", "status", "accountId"} <= set(row)
    assert set(small) == {"iccid"}
