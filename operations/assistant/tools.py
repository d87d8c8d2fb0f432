"""The operations that a model may call for its caller, and calling them.

Choice: the operations themselves and not a pair of tools that find and call one. The catalogue's 60 to 80 reading tools are some 30,000
characters, 8,000 tokens, which models hold; finding one first would cost a round of every chat and is what small models do badly.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

import orjson

from clients.model.port import ToolCall, ToolSpec
from operations.assistant.result import mistake, told
from registry.caller import Caller
from registry.inside import Inside, Tool

MOST_TOOLS = 128
"""What common endpoints take."""
MOST_CHARACTERS = 40_000
# What does not fit is left out from the end.
ORDER = (
    "intelligence",
    "subscribers",
    "accounts",
    "network",
    "connectivity",
    "invoicing",
    "storefronts",
    "billing",
    "setup",
)
NEVER = "assistant"
"""A chat in a chat would spend the allowance again."""


class Used(NamedTuple):
    """An operation that was called, and the status it answered with."""

    operation: str
    status: int


class Toolbox:
    """What one chat may call: its caller's operations, so many times, for so many characters."""

    def __init__(self, inside: Inside, caller: Caller, *, calls: int, characters: int) -> None:
        self._inside, self._caller = inside, caller
        self._calls, self._characters = calls, characters
        self.specs = offered(inside, caller)
        self._names = {spec.name for spec in self.specs}
        self.used: list[Used] = []

    @property
    def empty(self) -> bool:
        """Nothing more can be called."""
        return self._calls <= 0 or self._characters <= 0

    async def use(self, call: ToolCall) -> str:
        """Call it and say what came of it; everything that is wrong with the call is taught back."""
        if self.empty:
            return mistake(call.name, "No more tools can be used in this chat; answer now")
        self._calls -= 1
        text = await self._answer(call)
        self._characters -= len(text)
        return text

    async def _answer(self, call: ToolCall) -> str:
        if call.name not in self._names:
            return self._denied(call.name)
        arguments = read(call.arguments)
        if arguments is None:
            return mistake(call.name, "The arguments are not a JSON object; send one, such as {}")
        reply = await self._inside.call(call.name, arguments, caller=self._caller, surface="assistant")
        self.used.append(Used(call.name, reply.status))
        return told(call.name, reply, self._characters)

    def _denied(self, name: str) -> str:
        """What is no tool of this chat. An operation that there is was tried to be called: that is in the audit log."""
        if name not in self._inside.pipeline.catalogue.operations:
            return mistake("unknown", "There is no such tool; use one of those that you were given")
        reply = self._inside.deny(name, caller=self._caller, surface="assistant")
        self.used.append(Used(name, reply.status))
        return told(name, reply, self._characters)


def offered(inside: Inside, caller: Caller) -> list[ToolSpec]:
    """The caller's reading operations, as many as a model can hold."""
    toolset_of = inside.pipeline.catalogue.toolset_of
    found = [tool for tool in inside.tools(caller) if toolset_of[tool.name] != NEVER]
    found.sort(key=lambda tool: ORDER.index(toolset_of[tool.name]) if toolset_of[tool.name] in ORDER else len(ORDER))
    specs: list[ToolSpec] = []
    characters = 0
    for tool in found[:MOST_TOOLS]:
        characters += size(tool)
        if characters <= MOST_CHARACTERS:
            specs.append(ToolSpec(tool.name, tool.description, tool.schema))
    return specs


def size(tool: Tool) -> int:
    """Characters of a tool's definition."""
    return len(tool.name) + len(tool.description) + len(orjson.dumps(dict(tool.schema)))


def read(arguments: str) -> Mapping[str, object] | None:
    """The arguments as the model wrote them, if they are an object."""
    try:
        found = cast(object, orjson.loads(arguments or "{}"))
    except orjson.JSONDecodeError:
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None
