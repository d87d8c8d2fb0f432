"""A model behind an OpenAI-compatible endpoint, through the vendor's library, which is imported when it is first asked.

A turn is put together from the pieces it comes in. Nothing of them is believed: types, order and sizes are looked at.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import anyio.to_thread

from clients.model.port import ChatMessage, ModelError, ModelFailure, ModelJson, ModelSettings, TextDelta, ToolCall, ToolSpec
from clients.outside_system import CallOutcome, OutsideSystem
from registry.characters import UNSPOKEN_CHARACTERS
from registry.clock import ACTIVE_REQUEST, ActiveRequest, Clock, seconds_left

if TYPE_CHECKING:
    import openai


def load_model_library():  # noqa: ANN201  # the type checker infers the module
    """Slow to import, so it is done in a thread, when the model is first asked."""
    from clients.model import vendor

    return vendor


def message_json(message: ChatMessage) -> ModelJson:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    calls = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in message.calls]
    return {"role": "assistant", "content": message.content or None, "tool_calls": calls}


def chat_request(messages: Sequence[ChatMessage], tools: Sequence[ToolSpec], model: str) -> ModelJson:
    """The JSON of a chat request. It has no members that only some endpoints know, such as a limit of tokens."""
    query: ModelJson = {"model": model, "messages": [message_json(message) for message in messages], "stream": True}
    if tools:
        query["tools"] = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}}
            for tool in tools
        ]
    return query


TOOL_NAME_LIMIT = 64


@dataclass(slots=True)
class PartialToolCall:
    """A tool call that is still coming in."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class ModelTurn:
    def __init__(self, limits: ModelSettings) -> None:
        self._limits = limits
        self._calls: dict[int, PartialToolCall] = {}
        self._characters = 0
        self._finish = ""

    def take(self, chunk: ModelJson) -> TextDelta | None:
        """One piece; the text that it adds."""
        choices = chunk.get("choices")
        choice = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):  # pieces that only count tokens have none
            return None
        choice = cast(ModelJson, choice)
        finish, delta = choice.get("finish_reason"), choice.get("delta")
        self._finish = finish if isinstance(finish, str) else self._finish
        if not isinstance(delta, dict):
            return None
        delta = cast(ModelJson, delta)
        calls, text = delta.get("tool_calls"), delta.get("content")
        for part in cast("list[object]", calls) if isinstance(calls, list) else []:
            self._add(part)
        return self._text(text) if isinstance(text, str) else None

    def end(self) -> Iterator[ToolCall]:
        """The tools it asks for; an answer that did not come to its end is none."""
        if self._finish == "length":
            raise ModelError(ModelFailure.TOO_LONG)
        if self._finish == "content_filter":
            raise ModelError(ModelFailure.REFUSED)
        if not self._finish:
            raise ModelError(ModelFailure.BROKEN)
        for index, call in sorted(self._calls.items()):
            yield ToolCall(call.id or f"call_{index}", call.name, call.arguments)

    def _text(self, text: str) -> TextDelta | None:
        self._characters += len(text)
        if self._characters > self._limits.text_characters:
            raise ModelError(ModelFailure.TOO_LONG)
        clean = UNSPOKEN_CHARACTERS.sub("", text)
        return TextDelta(clean) if clean else None

    def _add(self, part: object) -> None:
        """Some more of a tool call. An endpoint that does not number them sends each in one piece."""
        if not isinstance(part, dict):
            raise ModelError(ModelFailure.BROKEN)
        given = cast(ModelJson, part)
        function = given.get("function")
        number, function = given.get("index"), cast(ModelJson, function) if isinstance(function, dict) else ModelJson()
        call = self._calls.setdefault(number if type(number) is int else len(self._calls), PartialToolCall())
        call.id = call.id or printable_word(given.get("id"))
        call.name = (call.name + printable_word(function.get("name")))[:TOOL_NAME_LIMIT]
        arguments = function.get("arguments")
        call.arguments += UNSPOKEN_CHARACTERS.sub("", arguments) if isinstance(arguments, str) else ""
        if len(self._calls) > self._limits.calls or len(call.arguments) > self._limits.call_characters:
            raise ModelError(ModelFailure.TOO_LONG)


def printable_word(value: object) -> str:
    """A name or id from the endpoint: printable ASCII, at most 64 characters; empty where `value` is no text."""
    return "".join(c for c in value if c.isascii() and c.isprintable())[:TOOL_NAME_LIMIT] if isinstance(value, str) else ""


CHAT_METHOD = "chat"
MODEL_REFUSALS = (ModelFailure.REFUSED, ModelFailure.BUSY, ModelFailure.TOO_LONG)


class ModelClient:
    """Asks an endpoint. Nothing is connected before the first call."""

    def __init__(self, settings: ModelSettings, clock: Clock, system: OutsideSystem | None = None) -> None:
        """`system` counts who waits for it."""
        self._settings, self._clock = settings, clock
        self.system = system or OutsideSystem("model", clock)
        self._vendor: openai.AsyncOpenAI | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self._settings.names

    async def aclose(self) -> None:
        """Close all connections; the next call opens anew."""
        vendor, self._vendor = self._vendor, None
        if vendor is not None:
            await vendor.close()

    async def answer(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSpec], *, model: str | None = None
    ) -> AsyncGenerator[TextDelta | ToolCall]:
        """One turn as it is made. Closing the generator ends the call at the endpoint, by closing the connection."""
        turn = ModelTurn(self._settings)
        async with aclosing(self._chunks(chat_request(messages, tools, model or self.names[0]))) as chunks:
            async for chunk in chunks:
                delta = turn.take(chunk)
                if delta is not None:
                    yield delta
        for call in turn.end():
            yield call

    async def _chunks(self, query: ModelJson) -> AsyncGenerator[ModelJson]:
        """The pieces, each within its time. No scope stays open between two of them, so any task may read and leave."""
        request = ACTIVE_REQUEST.get() or ActiveRequest(self._clock)  # what is streamed holds a connection as well
        if self.system.enter(request, "") is not None:
            raise ModelError(ModelFailure.CROWDED)
        began = self._clock.monotonic()
        ended: CallOutcome = "abandoned"  # unless it comes to an end
        try:
            ends = self._clock.monotonic() + seconds_left(self._settings.turn_seconds)
            vendor = await anyio.to_thread.run_sync(load_model_library)
            self._vendor = self._vendor or vendor.open_vendor(self._settings)
            stream, chunk = await vendor.begin_turn(self._vendor, query, self._settings.first_seconds)
            try:
                while chunk is not None:
                    yield chunk
                    seconds = min(self._settings.idle_seconds, ends - self._clock.monotonic())
                    chunk = await vendor.next_chunk_in_time(stream, seconds)
                ended = "ok"
            finally:
                await stream.close()
        except ModelError as error:
            ended = "refused" if error.failure in MODEL_REFUSALS else "failed"
            raise
        finally:
            self.system.observe(CHAT_METHOD, ended, began=began, placed=began)
            self.system.leave(request, "")
