"""Each connected account's share of the calls under way: one whose calls hang takes nothing from the others."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio


class Share:
    """The places of one account, and how many calls hold one or wait for one."""

    def __init__(self, places: int) -> None:
        self.places = anyio.Semaphore(places)
        self.calls = 0


class Shares:
    """So many places for each account; an account that has no call under way and none waiting is forgotten."""

    def __init__(self, places: int, seconds: float) -> None:
        """`seconds`: how long one more call waits for a place."""
        self._places, self._seconds = places, seconds
        self._of: dict[str, Share] = {}

    def __len__(self) -> int:
        """How many accounts are remembered."""
        return len(self._of)

    @asynccontextmanager
    async def place(self, account: str) -> AsyncGenerator[bool]:
        """A place as long as the block runs; False where none became free in time."""
        with self._remembered(account) as share:
            if not await self._taken(share.places):
                yield False
                return
            try:
                yield True
            finally:
                share.places.release()

    @contextmanager
    def _remembered(self, account: str) -> Generator[Share]:
        share = self._of.get(account) or self._of.setdefault(account, Share(self._places))
        share.calls += 1
        try:
            yield share
        finally:
            share.calls -= 1
            if share.calls == 0:
                del self._of[account]

    async def _taken(self, places: anyio.Semaphore) -> bool:
        try:
            places.acquire_nowait()  # at no cost, and before time can be up
        except anyio.WouldBlock:
            pass
        else:
            return True
        with anyio.move_on_after(self._seconds):
            await places.acquire()
            return True
        return False
