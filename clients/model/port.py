"""A language model, as operations see one: messages, failures in our words, and where the endpoint is.

What the endpoint says of a failure is never read to anybody.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from registry.errors import ProviderError

ModelJson = dict[str, object]
"""A decoded JSON object that goes to the endpoint or comes from it."""
MessageRole = Literal["system", "user", "assistant", "tool"]


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


class ChatMessage(NamedTuple):
    """One turn of a conversation. A turn of the assistant may ask for tools; a turn of a tool answers the call it names."""

    role: MessageRole
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


class TextDelta(NamedTuple):
    text: str


class LanguageModel(Protocol):
    """An OpenAI-compatible endpoint. Its failures are ModelError."""

    @property
    def names(self) -> tuple[str, ...]:
        """The models that may be asked for, the default one first."""
        ...

    def answer(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSpec], *, model: str | None = None
    ) -> AsyncGenerator[TextDelta | ToolCall]:
        """The answer to `messages` as it is made: its text in pieces, then which of the `tools` it asks for. `model`: one of `names`.

        Closing the generator ends the call at the endpoint.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """An OpenAI-compatible endpoint: the address that ends before /chat/completions, and the names of its models, the default first."""

    url: str
    names: tuple[str, ...]
    key: str = field(default="", repr=False)
    """Empty: it asks for none."""
    ca_file: Path | None = None
    """Authorities that are trusted beside the public ones."""
    connect_seconds: float = 5.0
    first_seconds: float = 60.0
    """To the first piece of a turn: a model may think for long before it says something."""
    idle_seconds: float = 30.0
    """Between two pieces."""
    turn_seconds: float = 180.0
    """For a whole turn."""
    repeats: int = 1
    """How often a turn is asked for again that failed before its first piece; what has begun is never repeated."""
    text_characters: int = 64_000
    call_characters: int = 16_000
    calls: int = 16
    wire_bytes: int = 8 << 20
    """Of one turn, whatever is in it."""


class ModelFailure(StrEnum):
    """The code that callers see."""

    UNAVAILABLE = "model_unavailable"
    CROWDED = "upstream_unavailable"
    REFUSED = "model_refused"
    BUSY = "model_busy"
    TIMEOUT = "model_timeout"
    BROKEN = "model_broken"
    TOO_LONG = "model_too_long"


MODEL_FAILURE_TEXTS = {
    ModelFailure.UNAVAILABLE: "The language model cannot be reached",
    ModelFailure.CROWDED: "Too many calls wait for the language model, so it was not asked; ask again later",
    ModelFailure.REFUSED: "The language model refused the request",
    ModelFailure.BUSY: "The language model takes no more requests at the moment; ask again later",
    ModelFailure.TIMEOUT: "The language model did not answer in time; ask again, or ask for less",
    ModelFailure.BROKEN: "The language model's answer broke off, or cannot be read; ask again",
    ModelFailure.TOO_LONG: "The language model's answer is longer than is taken; ask for less",
}


class ModelError(ProviderError):
    """The model gave no whole answer."""

    code = "model_unavailable"

    def __init__(self, failure: ModelFailure, *, hint: str | None = None) -> None:
        super().__init__(MODEL_FAILURE_TEXTS[failure], code=failure.value, hint=hint)
        self.failure = failure
