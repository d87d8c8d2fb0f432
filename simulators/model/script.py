"""What a simulated model has heard, and what it says next: a function of the conversation, so that an answer depends on the tools."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, cast

ModelJson = dict[str, object]
ModelFault = Literal[
    "",
    "unauthorized",
    "busy",
    "broken",
    "redirect",
    "endless_error",
    "not_events",
    "silent",
    "stalls",
    "breaks_off",
    "unfinished",
    "cut_short",
    "filtered",
    "garbage",
    "deep",
    "wrong_types",
    "error_event",
    "endless",
    "endless_line",
]
"""How a turn fails: `silent` sends nothing, `stalls` and `breaks_off` stop after half of the text."""


class ToolUse(NamedTuple):
    """The model asks for a tool; arguments that are a text are sent as they are."""

    name: str
    arguments: Mapping[str, object] | str = {}


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model says: tools to use, or a text."""

    text: str = ""
    uses: tuple[ToolUse, ...] = ()
    fault: ModelFault = ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request."""

    body: ModelJson
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def messages(self) -> list[ModelJson]:
        """The conversation so far."""
        return cast("list[ModelJson]", self.body.get("messages", []))

    @property
    def question(self) -> str:
        """What the user said last."""
        return next((str(each["content"]) for each in reversed(self.messages) if each["role"] == "user"), "")

    @property
    def tools(self) -> list[str]:
        """The names of the tools it may use."""
        tools = cast("list[dict[str, ModelJson]]", self.body.get("tools", []))
        return [str(tool["function"]["name"]) for tool in tools]

    @property
    def results(self) -> list[ModelJson]:
        """What the tools answered since the user's question, in order."""
        asked = max(index for index, each in enumerate(self.messages) if each["role"] == "user")
        return [cast(ModelJson, json.loads(str(each["content"]))) for each in self.messages[asked:] if each["role"] == "tool"]


ModelScript: TypeAlias = Callable[[ModelRequest], ModelTurn]
