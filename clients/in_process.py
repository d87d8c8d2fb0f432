"""A program in this process in place of the network, behind httpx's transport interface."""

from collections.abc import AsyncGenerator, Mapping
from typing import cast

import httpx  # slow to import, so this file is imported when the first call is made


class InProcessResponse:
    """httpx's answer as ours."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._parts = cast("AsyncGenerator[bytes]", response.aiter_raw())  # declared as a mere iterator
        self.status = response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        return {name.lower(): value for name, value in self._response.headers.items()}

    async def read(self) -> bytes:
        """What came next; an empty part is not the end."""
        async for part in self._parts:
            if part:
                return part
        return b""

    async def aclose(self) -> None:
        """Done with it."""
        await self._parts.aclose()
        await self._response.aclose()


class InProcessBackend:
    """A given transport, asked directly: what a client of httpx adds to it is for networks."""

    failures: tuple[type[Exception], ...] = (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError)

    def __init__(self, transport: httpx.AsyncBaseTransport, *, idle_seconds: float) -> None:
        self._transport = transport
        self._extensions = {"timeout": httpx.Timeout(idle_seconds).as_dict()}

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> InProcessResponse:
        """Send a request and wait for the head of its answer."""
        request = httpx.Request(method, url, headers=headers, content=content, extensions=self._extensions)
        return InProcessResponse(await self._transport.handle_async_request(request))

    async def aclose(self) -> None:
        """End it."""
        await self._transport.aclose()
