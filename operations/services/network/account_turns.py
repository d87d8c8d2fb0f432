"""Turns at reading one account: who asks while others read shares what is read next, and nobody waits longer than their request lasts."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

from registry.active_request import REQUEST_SECONDS, seconds_left
from registry.errors import OcsUnavailable

T = TypeVar("T")


@asynccontextmanager
async def turn(lock: anyio.Lock) -> AsyncGenerator[None]:
    """The lock, within the time of the request; OcsUnavailable where that is over."""
    try:
        with anyio.fail_after(seconds_left(REQUEST_SECONDS)):
            await lock.acquire()
    except TimeoutError:
        raise OcsUnavailable(
            "Too many calls wait for the lines of this account, so this one was not sent; nothing was done.",
            hint="Call again, with fewer calls at once",
            retry_after=1,
        ) from None
    try:
        yield
    finally:
        lock.release()


class SharedRead(Generic[T]):
    """A read that all who wait for it share. It begins after each of them has asked, so that it shows what they did before."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._begun = 0
        self._waiting = 0
        self._last: tuple[int, T] | None = None

    async def get(self, load: Callable[[], Awaitable[T]]) -> T:
        """What a read finds that begins from now on; a failure is only for the caller whose turn it was."""
        wanted = self._begun + 1
        self._waiting += 1
        try:
            async with turn(self._lock):
                if self._last is None or self._last[0] < wanted:
                    self._begun += 1
                    number = self._begun
                    self._last = (number, await load())
                return self._last[1]
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._last = None
