"""A language model, as operations see one."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

Role = Literal["system", "user", "assistant", "tool"]


class ToolSpec(NamedTuple):
    """A tool that the model may ask for: JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, object]


class ToolCall(NamedTuple):
    """The model asks for a tool; `arguments` is JSON text as the model wrote it, which may be no JSON at all."""

    id: str
    name: str
    arguments: str


class Message(NamedTuple):
    """One turn of a conversation. A turn of the assistant may ask for tools; a turn of a tool answers the call it names."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


class Delta(NamedTuple):
    """Some more text."""

    text: str


class Model(Protocol):
    """An OpenAI-compatible endpoint. Its failures are ModelError (clients/model/failure.py)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The models that may be asked for, the default one first."""
        ...

    def answer(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], *, model: str | None = None
    ) -> AsyncGenerator[Delta | ToolCall]:
        """One turn as it is made: its text in pieces, then the tools it asks for. Closing the generator ends the call at the endpoint."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...
