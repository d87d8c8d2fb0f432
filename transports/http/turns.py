"""Whose request begins next: a few in each turn of the loop, and of those that wait everybody's first before anybody's second.

A request costs what it costs, and while it runs nobody else does. Without this a client with forty connections has forty requests run
between two of everybody else's; with it one, and the others wait for as many requests as there are clients.
"""

import asyncio
from collections import deque

MOST = 4
"""Requests that begin in one turn of the loop: so many that looking for news from the network costs little, so few that it comes soon."""


class Turns:
    """Lets requests begin."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._begun = 0
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def wait(self, client: str) -> None:
        """Returns when a request of `client` may begin; at once while there is no crowd."""
        if self._begun < self._most and not self._waiting:
            self._begin()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        await turn

    def _begin(self) -> None:
        self._begun += 1
        if self._begun == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """The next turn of the loop: whoever has waited longest for their first goes to the end of the row with their second."""
        self._begun = 0
        while self._waiting and self._begun < self._most:
            client = next(iter(self._waiting))
            row = self._waiting.pop(client)
            turn = row.popleft()
            if row:
                self._waiting[client] = row
            if not turn.done():  # its task was cancelled
                turn.set_result(None)
                self._begin()
