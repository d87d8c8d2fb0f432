"""Operations as tools: definitions made once, lists cached, and the look-up of a call."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple, cast

import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ListToolsResult, Tool, ToolAnnotations

from registry.catalogue import AnyOperation, Catalogue, Selection
from registry.errors import BadRequest
from registry.model import Document
from registry.narrowing import View, shows, view_of
from registry.operation import title_of
from registry.schema import Answer, input_schema, output_schema
from transports.mcp.selection import Chosen, ids_of
from transports.mcp.visitor import Visitor

CACHED = 256


class Size(NamedTuple):
    """How much of a model's context a selection takes; what the model is not shown (output schemas) is counted apart."""

    tools: int
    input_chars: int
    output_chars: int


class Tools:
    """The catalogue's tools. Lists are kept as they go over the wire, by what of a caller decides, selection and page."""

    def __init__(self, catalogue: Catalogue, *, page_size: int = 100) -> None:
        self._catalogue, self._page_size = catalogue, page_size
        self._pages: dict[tuple[View, Chosen, str | None], ListToolsResult] = {}
        self._ids: dict[Chosen, frozenset[str]] = {}

    def answer(self, operation: AnyOperation) -> Answer:
        """What the operation answers."""
        return output_schema(operation.result)

    def tool(self, operation: AnyOperation) -> Tool:
        """The definition, made when it is first asked for."""
        return definition(operation)

    def page(self, visitor: Visitor, cursor: str | None) -> ListToolsResult:
        """One page of what this caller may call and asked to see; the result is already in wire form."""
        key = (view_of(visitor.caller), visitor.chosen, cursor)
        found = self._pages.get(key)
        if found is None:
            found = self._page(visitor, cursor)
            if len(self._pages) >= CACHED:
                self._pages.clear()
            self._pages[key] = found
        return found

    def find(self, visitor: Visitor, name: str) -> AnyOperation:
        """The operation a call means. What the caller may do does not matter here: hiding is a courtesy, the pipeline is the gate."""
        operation = self._catalogue.operations.get(name)
        if operation is None or not is_tool(operation):
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name[:80]!r}; tools/list shows the tools of your selection")
        if operation.id not in self._selected(visitor.chosen):
            toolset = self._catalogue.toolset_of[name]
            raise MCPError(INVALID_PARAMS, f"Unknown tool {name!r} in your selection; the toolset {toolset} holds it", {"toolset": toolset})
        return operation

    def _selected(self, chosen: Chosen) -> frozenset[str]:
        """The ids of a selection; a name nobody knows is told with those that are known."""
        found = self._ids.get(chosen)
        if found is None:
            try:
                found = ids_of(self._catalogue, chosen)
            except BadRequest as refusal:
                raise MCPError(INVALID_PARAMS, refusal.message, {"known": self._catalogue.names()}) from None
            if len(self._ids) >= CACHED:
                self._ids.clear()
            self._ids[chosen] = found
        return found

    def _page(self, visitor: Visitor, cursor: str | None) -> ListToolsResult:
        ids = self._selected(visitor.chosen)
        inside = self._catalogue.inside(visitor.caller.restrictions.toolsets or ())
        found = self._catalogue.tools(ids, visitor.caller.scopes)
        visible = [operation for operation in found if is_tool(operation) and shows(operation, visitor.caller, inside)]
        start = start_of([operation.id for operation in visible], cursor, self._page_size)
        end = start + self._page_size
        result = ListToolsResult(
            tools=[self.tool(operation) for operation in visible[start:end]],
            next_cursor=visible[end].id if end < len(visible) else None,
        )
        # The server takes a mapping as it is, and dumping sixty tools again for every list costs 3 ms.
        return cast(ListToolsResult, result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"ttl_ms", "cache_scope"}))


@cache
def definition(operation: AnyOperation) -> Tool:
    """An operation as a tool: it says nothing of a caller or a catalogue, so there is one in a process."""
    return Tool(
        name=operation.id,
        title=None if operation.title == title_of(operation.id) else operation.title,  # a title that says no more is left out
        description=description(operation),
        input_schema=input_schema(operation, operation.tool_defaults),
        output_schema=output_schema(operation.result).schema,
        annotations=annotations(operation),
    )


def start_of(ids: list[str], cursor: str | None, page_size: int) -> int:
    """Where a page begins: a cursor is the first tool of its page, and nothing else is one."""
    if cursor is None:
        return 0
    start = ids.index(cursor) if cursor in ids else 0
    if start == 0 or start % page_size:
        raise MCPError(INVALID_PARAMS, "cursor: not one of this list; begin again without a cursor")
    return start


def is_tool(operation: AnyOperation) -> bool:
    """Pictures and pages are no tools: a model cannot read them."""
    return operation.tool and operation.result is not Document


def description(operation: AnyOperation) -> str:
    """The summary and the paragraph for agents; further paragraphs are for the reference only."""
    paragraphs = [" ".join(part.split()) for part in operation.description.split("\n\n")]
    return "\n".join(paragraphs[:2])


def annotations(operation: AnyOperation) -> ToolAnnotations:
    """Hints. What MCP takes for granted is left out: a tool writes, is not idempotent, may destroy, and meets an open world."""
    closed = None if operation.provided else False
    if operation.read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=closed)
    repeatable = operation.method in ("PUT", "DELETE") or (operation.once is not None and operation.once.required)
    return ToolAnnotations(
        destructive_hint=None if operation.destructive else False, idempotent_hint=repeatable or None, open_world_hint=closed
    )


def measure(catalogue: Catalogue, names: Iterable[str]) -> Size:
    """Characters of compact JSON of what a model is shown of some toolsets, and of the output schemas."""
    ids = catalogue.chosen(Selection(tuple(names)))
    tools = Tools(catalogue)
    shown = [tools.tool(operation) for operation in catalogue.operations.values() if operation.id in ids and is_tool(operation)]
    dumped = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in shown]
    answers = [tool.pop("outputSchema") for tool in dumped]
    return Size(len(shown), len(orjson.dumps(dumped).decode()), len(orjson.dumps(answers).decode()))
