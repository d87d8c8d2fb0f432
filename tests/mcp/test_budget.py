"""What the tools cost of a model's context."""

from operations.catalogue import CATALOGUE
from tests.mcp import house
from transports.mcp.tools import Tools, is_tool, measure

CONNECTIVITY = 10_000


def test_the_connectivity_tools_fit_into_ten_thousand_characters() -> None:
    if "connectivity" in CATALOGUE.names():
        assert measure(CATALOGUE, ["connectivity"]).input_chars <= CONNECTIVITY


def test_a_measure_counts_tools_and_tells_what_the_model_is_shown_from_what_it_is_not() -> None:
    core = measure(house.CATALOGUE, ["core"])
    whole = measure(house.CATALOGUE, ["all"])
    assert (core.tools, whole.tools) == (2, 18)
    assert 300 < core.input_chars < whole.input_chars
    assert 100 < core.output_chars < whole.output_chars


def test_every_tool_of_the_service_has_an_object_at_both_roots() -> None:
    tools = Tools(CATALOGUE)
    for operation in CATALOGUE.operations.values():
        if is_tool(operation):
            tool = tools.tool(operation)
            assert tool.input_schema["type"] == "object"
            assert tool.output_schema is not None
            assert tool.output_schema["type"] == "object"
            assert "$ref" not in str(tool.input_schema)
