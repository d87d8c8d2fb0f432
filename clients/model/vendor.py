"""The vendor's library: what it may say of us, how much it may read, and its errors in our words.

It takes a second to import, so this file is imported when the model is first asked.
"""

from asyncio import timeout
from collections.abc import AsyncIterator
from typing import cast

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam, ChatCompletionToolUnionParam

from clients.http import trusted_authorities
from clients.model.port import ModelError, ModelFailure, ModelJson, ModelSettings
from registry.clock import seconds_left

MODEL_REQUEST_HEADERS = frozenset({"host", "authorization", "accept", "content-type", "content-length"})
"""The library adds what machine this is, and whatever its own environment variables say; none of it is the endpoint's concern."""
MODEL_USER_AGENT = "connectivity-reseller"


class AnswerTooLong(httpx2.TransportError):
    """The endpoint sent more than is read of it."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sockets, without a proxy of the environment's."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, most: int, authorized: bool) -> None:
        self._inner, self._most = inner, most
        self._sent = MODEL_REQUEST_HEADERS if authorized else MODEL_REQUEST_HEADERS - {"authorization"}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        kept = [(name, value) for name, value in request.headers.multi_items() if name.lower() in self._sent]
        request.headers = httpx2.Headers([*kept, ("user-agent", MODEL_USER_AGENT), ("accept-encoding", "identity")])
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=BoundedStream(response.stream, self._most),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundedStream(httpx2.AsyncByteStream):
    """An answer's bytes, so many and no more."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream, self._left = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._left -= len(part)
            if self._left < 0:
                raise AnswerTooLong("the endpoint's answer is longer than is read")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


MALFORMED_CHUNK_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the library raises, without meaning to, when a piece is not what it expects."""
PLACEHOLDER_KEY = "none"


def open_vendor(settings: ModelSettings) -> openai.AsyncOpenAI:
    """The vendor's client over sockets of our choice."""
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


async def begin_turn(
    vendor: openai.AsyncOpenAI, query: ModelJson, first_seconds: float
) -> tuple[openai.AsyncStream[ChatCompletionChunk], ModelJson | None]:
    """Sends `query` and waits for the first piece, `first_seconds` and the active request's time at most; else raises ModelError."""
    try:
        async with timeout(seconds_left(first_seconds)):
            stream = await vendor.chat.completions.create(
                messages=cast("list[ChatCompletionMessageParam]", query["messages"]),
                model=cast(str, query["model"]),
                tools=cast("list[ChatCompletionToolUnionParam]", query["tools"]) if "tools" in query else openai.omit,
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


async def next_chunk_in_time(stream: openai.AsyncStream[ChatCompletionChunk], seconds: float) -> ModelJson | None:
    """The next piece within some seconds, or the failure in our words."""
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
    raise failure  # outside the handler, as in `begin_turn`


async def next_chunk(stream: openai.AsyncStream[ChatCompletionChunk]) -> ModelJson | None:
    """The next piece as plain JSON; None at the end."""
    async for chunk in cast("AsyncIterator[object]", stream):
        return chunk_json(chunk)
    return None


def chunk_json(chunk: object) -> ModelJson:
    """A piece, which is of the library's type only when it was what the library expects."""
    if isinstance(chunk, dict):
        return cast(ModelJson, chunk)
    return cast(ModelJson, getattr(chunk, "to_dict")(mode="json", warnings=False))  # noqa: B009  # as above


def model_error(error: Exception) -> ModelError:
    """The library's error as ours; what is no error of its own is one of the network's that it let through."""
    if is_answer_too_long(error):
        return ModelError(ModelFailure.TOO_LONG)
    if isinstance(error, openai.APITimeoutError):
        return ModelError(ModelFailure.TIMEOUT)
    if isinstance(error, openai.APIStatusError):
        return model_error_of_status(error.status_code)
    broken = isinstance(error, openai.OpenAIError) and not isinstance(error, openai.APIConnectionError)
    return ModelError(ModelFailure.BROKEN if broken else ModelFailure.UNAVAILABLE)


def is_answer_too_long(error: Exception) -> bool:
    return isinstance(error, AnswerTooLong) or isinstance(error.__cause__, AnswerTooLong)


MODEL_OPERATOR_HINT = "Whoever runs the service checks it: `reseller doctor`"


def model_error_of_status(status: int) -> ModelError:
    if status == 429:
        return ModelError(ModelFailure.BUSY)
    if status in (408, 504):
        return ModelError(ModelFailure.TIMEOUT)
    if status >= 500:
        return ModelError(ModelFailure.UNAVAILABLE)
    return ModelError(ModelFailure.REFUSED, hint=MODEL_OPERATOR_HINT)
