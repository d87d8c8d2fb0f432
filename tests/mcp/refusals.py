"""What a refused tool call says: JSON in its first text, and no structured content, which clients would hold against the output schema."""

from collections.abc import Mapping
from typing import Any

import orjson
from mcp_types import CallToolResult, TextContent


def refusal_of(result: CallToolResult) -> dict[str, Any]:
    """The body of a refusal, of a client's result."""
    block = result.content[0]
    assert result.is_error and result.structured_content is None and isinstance(block, TextContent)
    return orjson.loads(block.text)


def refusal_in(result: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a result as it goes over the wire."""
    assert result["isError"] and "structuredContent" not in result
    return orjson.loads(result["content"][0]["text"])
