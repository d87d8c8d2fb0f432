"""A model behind an OpenAI-compatible endpoint, through the vendor's library, which is imported when it is first asked.

A turn is put together from the pieces it comes in. Nothing of them is believed: types, order and sizes are looked at.
"""

from __future__ import annotations

from asyncio import timeout
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from clients.http import trusted_authorities
from clients.model.port import ChatMessage, ModelError, ModelFailure, ModelSettings, TextDelta, ToolCall, ToolSpec
from clients.outside_system import CallOutcome, OutsideSystem
from registry.characters import UNSPOKEN_CHARACTERS
from registry.clock import ACTIVE_REQUEST, ActiveRequest, Clock, seconds_left

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam, ChatCompletionToolUnionParam


RequestJson = dict[str, object]


def message_json(message: ChatMessage) -> RequestJson:
    """One turn."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    calls = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in message.calls]
    return {"role": "assistant", "content": message.content or None, "tool_calls": calls}


def chat_request(messages: Sequence[ChatMessage], tools: Sequence[ToolSpec], model: str) -> RequestJson:
    """What is asked for. Nothing that only some endpoints know: no limit of tokens, no usage."""
    asked: RequestJson = {"model": model, "messages": [message_json(message) for message in messages], "stream": True}
    if tools:
        asked["tools"] = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}}
            for tool in tools
        ]
    return asked


ChunkJson = dict[str, object]
TOOL_NAME_LIMIT = 64


@dataclass(slots=True)
class PartialToolCall:
    """A tool call that is still coming in."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class ModelTurn:
    """What came so far."""

    def __init__(self, limits: ModelSettings) -> None:
        self._limits = limits
        self._calls: dict[int, PartialToolCall] = {}
        self._characters = 0
        self._finish = ""

    def take(self, chunk: ChunkJson) -> TextDelta | None:
        """One piece; the text that it adds."""
        choices = chunk.get("choices")
        choice = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):  # pieces that only count tokens have none
            return None
        choice = cast(ChunkJson, choice)
        finish, delta = choice.get("finish_reason"), choice.get("delta")
        self._finish = finish if isinstance(finish, str) else self._finish
        if not isinstance(delta, dict):
            return None
        delta = cast(ChunkJson, delta)
        asked, text = delta.get("tool_calls"), delta.get("content")
        for part in cast("list[object]", asked) if isinstance(asked, list) else []:
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
        given = cast(ChunkJson, part)
        function = given.get("function")
        number, function = given.get("index"), cast(ChunkJson, function) if isinstance(function, dict) else ChunkJson()
        call = self._calls.setdefault(number if type(number) is int else len(self._calls), PartialToolCall())
        call.id = call.id or printable_word(given.get("id"))
        call.name = (call.name + printable_word(function.get("name")))[:TOOL_NAME_LIMIT]
        arguments = function.get("arguments")
        call.arguments += UNSPOKEN_CHARACTERS.sub("", arguments) if isinstance(arguments, str) else ""
        if len(self._calls) > self._limits.calls or len(call.arguments) > self._limits.call_characters:
            raise ModelError(ModelFailure.TOO_LONG)


def printable_word(value: object) -> str:
    """A short word of the endpoint's, which goes back to it."""
    return "".join(c for c in value if c.isascii() and c.isprintable())[:TOOL_NAME_LIMIT] if isinstance(value, str) else ""


MALFORMED_CHUNK_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the library raises, without meaning to, when a piece is not what it expects."""
PLACEHOLDER_KEY = "none"
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
        """The models that may be asked for."""
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

    async def _chunks(self, asked: RequestJson) -> AsyncGenerator[RequestJson]:
        """The pieces, each within its time. No scope stays open between two of them, so any task may read and leave."""
        request = ACTIVE_REQUEST.get() or ActiveRequest(self._clock)  # what is streamed holds a connection as well
        if self.system.enter(request, "") is not None:
            raise ModelError(ModelFailure.CROWDED)
        began = self._clock.monotonic()
        ended: CallOutcome = "abandoned"  # unless it comes to an end
        try:
            ends = self._clock.monotonic() + seconds_left(self._settings.turn_seconds)
            stream, chunk = await self._begun(asked)
            try:
                while chunk is not None:
                    yield chunk
                    seconds = min(self._settings.idle_seconds, ends - self._clock.monotonic())
                    chunk = await next_chunk_in_time(stream, seconds)
                ended = "ok"
            finally:
                await stream.close()
        except ModelError as error:
            ended = "refused" if error.failure in MODEL_REFUSALS else "failed"
            raise
        finally:
            self.system.observe(CHAT_METHOD, ended, began=began, placed=began)
            self.system.leave(request, "")

    async def _begun(self, asked: RequestJson) -> tuple[openai.AsyncStream[ChatCompletionChunk], RequestJson | None]:
        """Sent, and the first piece there."""
        import httpx2  # start-up budget, as the next one
        import openai

        vendor = self._open()
        try:
            async with timeout(seconds_left(self._settings.first_seconds)):
                stream = await vendor.chat.completions.create(
                    messages=cast("list[ChatCompletionMessageParam]", asked["messages"]),
                    model=cast(str, asked["model"]),
                    tools=cast("list[ChatCompletionToolUnionParam]", asked["tools"]) if "tools" in asked else openai.omit,
                    stream=True,
                )
                try:
                    return stream, await next_chunk(stream)
                except BaseException:
                    await stream.close()
                    raise
        except TimeoutError:
            failure = ModelError(ModelFailure.TIMEOUT)
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            failure = model_error(error)
        except MALFORMED_CHUNK_ERRORS:
            failure = ModelError(ModelFailure.BROKEN)
        raise failure  # outside the handler: the cause may quote the endpoint

    def _open(self) -> openai.AsyncOpenAI:
        if self._vendor is None:
            self._vendor = open_vendor(self._settings)
        return self._vendor


def open_vendor(settings: ModelSettings) -> openai.AsyncOpenAI:
    """The vendor's client over sockets of our choice."""
    import httpx2  # start-up budget, as the next ones
    import openai

    from clients.model.bounded_transport import BoundedTransport

    seconds = httpx2.Timeout(settings.turn_seconds, connect=settings.connect_seconds)
    sockets = httpx2.AsyncHTTPTransport(verify=trusted_authorities(settings.ca_file), trust_env=False)
    return openai.AsyncOpenAI(
        api_key=settings.key or PLACEHOLDER_KEY,
        base_url=settings.url,
        max_retries=settings.repeats,
        http_client=httpx2.AsyncClient(
            transport=BoundedTransport(sockets, most=settings.wire_bytes, authorized=bool(settings.key)), timeout=seconds, trust_env=False
        ),
    )


async def next_chunk_in_time(stream: openai.AsyncStream[ChatCompletionChunk], seconds: float) -> RequestJson | None:
    """The next piece within some seconds, or the failure in our words."""
    import httpx2  # start-up budget, as the next one
    import openai

    try:
        async with timeout(max(0.0, seconds)):
            return await next_chunk(stream)
    except TimeoutError:
        failure = ModelError(ModelFailure.TIMEOUT)
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        # What has begun and fails is broken, whatever the library calls it.
        failure = (
            model_error(error)
            if isinstance(error, openai.APITimeoutError) or is_answer_too_long(error)
            else ModelError(ModelFailure.BROKEN)
        )
    except MALFORMED_CHUNK_ERRORS:
        failure = ModelError(ModelFailure.BROKEN)
    raise failure  # outside the handler, as above


async def next_chunk(stream: openai.AsyncStream[ChatCompletionChunk]) -> RequestJson | None:
    """The next piece as plain JSON; None at the end."""
    async for chunk in cast("AsyncIterator[object]", stream):
        return chunk_json(chunk)
    return None


def chunk_json(chunk: object) -> RequestJson:
    """A piece, which is of the library's type only when it was what the library expects."""
    if isinstance(chunk, dict):
        return cast(RequestJson, chunk)
    return cast(RequestJson, getattr(chunk, "to_dict")(mode="json", warnings=False))  # noqa: B009  # as above


def model_error(error: Exception) -> ModelError:
    """The library's error as ours; what is no error of its own is one of the network's that it let through."""
    import openai  # start-up budget

    if is_answer_too_long(error):
        return ModelError(ModelFailure.TOO_LONG)
    return model_error_of_library(error) if isinstance(error, openai.OpenAIError) else ModelError(ModelFailure.UNAVAILABLE)


def is_answer_too_long(error: Exception) -> bool:
    """Whether we stopped reading."""
    from clients.model.bounded_transport import AnswerTooLong  # brings httpx2

    return isinstance(error, AnswerTooLong) or isinstance(error.__cause__, AnswerTooLong)


MODEL_OPERATOR_HINT = "Whoever runs the service checks it: `reseller doctor`"


def model_error_of_library(error: openai.OpenAIError) -> ModelError:
    """The library's error as ours."""
    import openai  # start-up budget

    if isinstance(error, openai.APITimeoutError):
        return ModelError(ModelFailure.TIMEOUT)
    if isinstance(error, openai.APIStatusError):
        return model_error_of_status(error.status_code)
    if isinstance(error, openai.APIConnectionError):
        return ModelError(ModelFailure.UNAVAILABLE)
    return ModelError(ModelFailure.BROKEN)


def model_error_of_status(status: int) -> ModelError:
    """What an endpoint's status means."""
    if status == 429:
        return ModelError(ModelFailure.BUSY)
    if status in (408, 504):
        return ModelError(ModelFailure.TIMEOUT)
    if status >= 500:
        return ModelError(ModelFailure.UNAVAILABLE)
    return ModelError(ModelFailure.REFUSED, hint=MODEL_OPERATOR_HINT)
