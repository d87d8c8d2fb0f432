"""A program in this process in place of the network, behind httpx's transport interface."""

import logging
from collections.abc import AsyncGenerator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import cast

import httpx  # slow to import, so this file is imported when the first call is made


class ArrivedInside:
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


class InProcess:
    """One httpx client over a given transport."""

    failures: tuple[type[Exception], ...] = (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError)

    def __init__(self, transport: httpx.AsyncBaseTransport, *, idle_seconds: float) -> None:
        logging.getLogger("httpx").addFilter(_unlogged)
        self._client = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(idle_seconds),
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
            follow_redirects=False,
        )

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> ArrivedInside:
        """Send a request and wait for the head of its answer."""
        request = self._client.build_request(method, url, headers=headers, content=content)
        return ArrivedInside(await self._client.send(request, stream=True))

    async def aclose(self) -> None:
        """End it."""
        await self._client.aclose()


def _unlogged(record: logging.LogRecord) -> bool:
    """The library logs every URL it calls, and some of ours hold a secret. What it has to complain about is let through."""
    return record.levelno > logging.INFO
