"""What a refused tool call says: JSON in its first text, and no structured content, which clients would hold against the output schema.

A call that is asked back with a challenge says so in a sentence first, and the JSON is the line behind it.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from mcp_types import CallToolResult, TextContent


def refusal_of(result: CallToolResult) -> dict[str, Any]:
    """The body of a refusal, of a client's result."""
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    assert result.is_error and result.structured_content is None and texts
    return orjson.loads(refusal_text(texts))


def refusal_in(result: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a result as it goes over the wire."""
    assert result["isError"] and "structuredContent" not in result
    return orjson.loads(refusal_text([block["text"] for block in result["content"]]))


def refusal_text(texts: list[str]) -> str:
    """The JSON: the whole first text, or behind the sentence of a question its last line."""
    return texts[0].rpartition("\n")[2]
