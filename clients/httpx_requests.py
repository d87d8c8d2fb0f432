"""Requests to one outside system over a transport of httpx. No client of httpx stands between: it adds cookies, redirects and proxies."""

from asyncio import timeout
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from functools import lru_cache
from typing import cast

import anyio
import httpx  # slow to import, so this file is imported when the first call is made

from clients.http import HttpReply, HttpStream, OutboundFailed, failure_kind
from registry.clock import seconds_left

NO_ANSWER = (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError)
"""What a transport raises when the other side or the network fails, or when the address is none."""
URLS_LIMIT = 256


@lru_cache(maxsize=URLS_LIMIT)
def read_url(url: str) -> httpx.URL:
    """The parts of `url`: to read them takes as long as a third of a call, and a system has few addresses."""
    return httpx.URL(url)


class HttpxRequests:
    """Sends requests through `transport`, each within `total_seconds` and the time of the active request."""

    def __init__(self, transport: httpx.AsyncBaseTransport, total_seconds: float) -> None:
        self._transport, self._total_seconds = transport, total_seconds
        self._extensions = {"timeout": httpx.Timeout(total_seconds).as_dict()}

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def exchange(self, method: str, url: str, headers: Mapping[str, str], content: bytes, keep: int) -> HttpReply:
        """As `Outbound.exchange`."""
        try:
            async with timeout(seconds_left(self._total_seconds)):  # a third of the cost of a cancel scope, once per call
                response = await self._send(method, url, headers, content)
                parts = aiter(cast("httpx.AsyncByteStream", response.stream))
                try:
                    return await _read_reply(response, parts, keep)
                finally:
                    await _close(response, parts)
        except NO_ANSWER as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler: the cause may name an address or a secret URL

    @asynccontextmanager
    async def stream(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> AsyncGenerator[HttpStream]:
        """As `Outbound.stream`."""
        response = await self._begin(method, url, headers, content)
        parts = aiter(cast("httpx.AsyncByteStream", response.stream))
        try:
            async with aclosing(_reply_chunks(parts, self._total_seconds)) as chunks:
                yield HttpStream(response.status_code, response.headers, chunks)
        finally:
            with anyio.move_on_after(1, shield=True), suppress(*NO_ANSWER):
                await _close(response, parts)  # what fails now concerns an answer nobody reads any more

    async def _begin(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> httpx.Response:
        try:
            async with timeout(seconds_left(self._total_seconds)):
                return await self._send(method, url, headers, content)
        except NO_ANSWER as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler, as in `exchange`

    async def _send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> httpx.Response:
        sent = httpx.Headers({"accept-encoding": "identity", **headers}, encoding="utf-8")
        request = httpx.Request(method, read_url(url), headers=sent, content=content, extensions=self._extensions)
        return await self._transport.handle_async_request(request)


async def _read_reply(response: httpx.Response, parts: AsyncIterator[bytes], keep: int) -> HttpReply:
    read: list[bytes] = []
    size = 0
    async for part in parts:
        read.append(part)
        size += len(part)
        if size > keep:
            break
    body = b"".join(read)
    return HttpReply(response.status_code, response.headers, body if size <= keep else body[:keep], truncated=size > keep)


async def _reply_chunks(parts: AsyncIterator[bytes], idle_seconds: float) -> AsyncGenerator[bytes]:
    kind = None
    while kind is None:
        try:
            async with timeout(idle_seconds):
                chunk = await anext(parts, None)
        except NO_ANSWER as error:
            kind = failure_kind(error)
        else:
            if chunk is None:
                return
            if chunk:
                yield chunk
    raise OutboundFailed(kind)


async def _close(response: httpx.Response, parts: AsyncIterator[bytes]) -> None:
    if isinstance(parts, AsyncGenerator):
        await parts.aclose()
    await cast("httpx.AsyncByteStream", response.stream).aclose()
