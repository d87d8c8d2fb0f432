"""A model behind an OpenAI-compatible endpoint, through the vendor's library, which is imported when it is first asked."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from clients.authorities import authorities
from clients.model.failure import ModelError, ModelFailure, translated
from clients.model.port import Delta, Message, ToolCall, ToolSpec
from clients.model.settings import ModelSettings
from clients.model.turn import Turn
from clients.model.wire import Json, body
from clients.outside_system import CallOutcome, OutsideSystem
from registry.active_request import ACTIVE, ActiveRequest, seconds_left
from registry.clock import Clock

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam, ChatCompletionToolUnionParam

GARBAGE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the library raises, without meaning to, when a piece is not what it expects."""
NO_KEY = "none"
METHOD = "chat"
REFUSALS = (ModelFailure.REFUSED, ModelFailure.BUSY, ModelFailure.TOO_LONG)


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
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], *, model: str | None = None
    ) -> AsyncGenerator[Delta | ToolCall]:
        """One turn as it is made. Closing the generator ends the call at the endpoint, by closing the connection."""
        turn = Turn(self._settings)
        async with aclosing(self._chunks(body(messages, tools, model or self.names[0]))) as chunks:
            async for chunk in chunks:
                delta = turn.take(chunk)
                if delta is not None:
                    yield delta
        for call in turn.end():
            yield call

    async def _chunks(self, asked: Json) -> AsyncGenerator[Json]:
        """The pieces, each within its time. No scope stays open between two of them, so any task may read and leave."""
        request = ACTIVE.get() or ActiveRequest(self._clock)  # what is streamed holds a connection as well
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
                    chunk = await guarded(stream, seconds)
                ended = "ok"
            finally:
                await stream.close()
        except ModelError as error:
            ended = "refused" if error.failure in REFUSALS else "failed"
            raise
        finally:
            self.system.observe(METHOD, ended, began=began, placed=began)
            self.system.leave(request, "")

    async def _begun(self, asked: Json) -> tuple[openai.AsyncStream[ChatCompletionChunk], Json | None]:
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
                    return stream, await following(stream)
                except BaseException:
                    await stream.close()
                    raise
        except TimeoutError:
            failure = ModelError(ModelFailure.TIMEOUT)
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            failure = told(error)
        except GARBAGE:
            failure = ModelError(ModelFailure.BROKEN)
        raise failure  # outside the handler: the cause may quote the endpoint

    def _open(self) -> openai.AsyncOpenAI:
        if self._vendor is None:
            self._vendor = opened(self._settings)
        return self._vendor


def opened(settings: ModelSettings) -> openai.AsyncOpenAI:
    """The vendor's client over sockets of our choice."""
    import httpx2  # start-up budget, as the next ones
    import openai

    from clients.model.transport import Bounded

    seconds = httpx2.Timeout(settings.turn_seconds, connect=settings.connect_seconds)
    sockets = httpx2.AsyncHTTPTransport(verify=authorities(settings.ca_file), trust_env=False)
    return openai.AsyncOpenAI(
        api_key=settings.key or NO_KEY,
        base_url=settings.url,
        max_retries=settings.repeats,
        http_client=httpx2.AsyncClient(
            transport=Bounded(sockets, most=settings.wire_bytes, authorized=bool(settings.key)), timeout=seconds, trust_env=False
        ),
    )


async def guarded(stream: openai.AsyncStream[ChatCompletionChunk], seconds: float) -> Json | None:
    """The next piece within some seconds, or the failure in our words."""
    import httpx2  # start-up budget, as the next one
    import openai

    try:
        async with timeout(max(0.0, seconds)):
            return await following(stream)
    except TimeoutError:
        failure = ModelError(ModelFailure.TIMEOUT)
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        # What has begun and fails is broken, whatever the library calls it.
        failure = told(error) if isinstance(error, openai.APITimeoutError) or too_much(error) else ModelError(ModelFailure.BROKEN)
    except GARBAGE:
        failure = ModelError(ModelFailure.BROKEN)
    raise failure  # outside the handler, as above


async def following(stream: openai.AsyncStream[ChatCompletionChunk]) -> Json | None:
    """The next piece as plain JSON; None at the end."""
    async for chunk in cast("AsyncIterator[object]", stream):
        return plain(chunk)
    return None


def plain(chunk: object) -> Json:
    """A piece, which is of the library's type only when it was what the library expects."""
    if isinstance(chunk, dict):
        return cast(Json, chunk)
    return cast(Json, getattr(chunk, "to_dict")(mode="json", warnings=False))  # noqa: B009  # as above


def told(error: Exception) -> ModelError:
    """The library's error as ours; what is no error of its own is one of the network's that it let through."""
    import openai  # start-up budget

    if too_much(error):
        return ModelError(ModelFailure.TOO_LONG)
    return translated(error) if isinstance(error, openai.OpenAIError) else ModelError(ModelFailure.UNAVAILABLE)


def too_much(error: Exception) -> bool:
    """Whether we stopped reading."""
    from clients.model.transport import TooMuch  # brings httpx2

    return isinstance(error, TooMuch) or isinstance(error.__cause__, TooMuch)
