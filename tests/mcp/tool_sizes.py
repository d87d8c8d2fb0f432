"""How much of a model's context tools take."""

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import orjson
from mcp_types import Tool

from registry.catalogue import Catalogue, ToolSelection
from transports.mcp.tools import is_tool, tool_definition

CHARACTERS_OF_A_TOKEN = 4
"""Of compact JSON. Choice: a token is an estimate here, since each model has tokens of its own; OpenAI's o200k_base counts 5 % fewer."""


class ToolsSize(NamedTuple):
    """How many tokens of a model's context the tools of a selection take, without output schemas, which few clients show, and with them."""

    tools: int
    tokens: int
    with_outputs: int


def measure_tools(catalogue: Catalogue, names: Iterable[str]) -> ToolsSize:
    """The size of some toolsets and presets in a model's context."""
    ids = catalogue.chosen(ToolSelection(tuple(names)))
    tools = [tool_definition(operation) for operation in catalogue.operations.values() if operation.id in ids and is_tool(operation)]
    return ToolsSize(len(tools), count_tokens([model_view(tool) for tool in tools]), count_tokens([tool_json(tool) for tool in tools]))


def tool_json(tool: Tool) -> dict[str, object]:
    return tool.model_dump(by_alias=True, mode="json", exclude_none=True)


def model_view(tool: Tool) -> dict[str, object]:
    """What of a definition a model is shown: all but the output schema."""
    return {name: value for name, value in tool_json(tool).items() if name != "outputSchema"}


def count_tokens(value: object) -> int:
    """About how many tokens a value takes as compact JSON."""
    return ceil(len(orjson.dumps(value).decode()) / CHARACTERS_OF_A_TOKEN)
