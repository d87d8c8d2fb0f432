"""The way of the vendor's library to the network: what it may say of us, and how much it may read. Imported with httpx2."""

from collections.abc import AsyncIterator

import httpx2

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
        """One request, and an answer that ends where it is too long."""
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
        """Close all connections."""
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
        """Done with it."""
        await self._stream.aclose()
