"""Whose request begins next: a few in each turn of the loop, and of those that wait everybody's first before anybody's second.

A request costs what it costs, and while it runs nobody else does. Without this a client with forty connections has forty requests run
between two of everybody else's; with it one, and the others wait for as many requests as there are clients.
"""

import asyncio
from collections import deque
from collections.abc import Callable

MOST = 4
"""Requests that begin in one turn of the loop: so many that looking for news from the network costs little, so few that it comes soon."""
LONG = 0.004
"""Seconds after which a turn was long: the next one begins with one request alone."""


class Turns:
    """Lets requests begin: each network in turn, and of a network each credential in turn.

    Networks come first, since a credential is not looked at yet, and whoever makes credentials up has as many as they like.
    """

    def __init__(self, clock: Callable[[], float], most: int = MOST) -> None:
        """`clock` tells seconds, from any beginning."""
        self._most, self._clock = most, clock
        self._begun, self._since, self._allowed = 0, 0.0, most
        self._waiting: dict[str, dict[bytes, deque[asyncio.Future[None]]]] = {}

    def __len__(self) -> int:
        """How many requests wait."""
        return sum(len(requests) for row in self._waiting.values() for requests in row.values())

    def begin_at_once(self) -> bool:
        """Whether a request may begin without waiting, because there is no crowd; it has then begun."""
        if self._begun >= self._allowed or self._waiting:
            return False
        self._begin()
        return True

    async def wait(self, network: str, credential: bytes) -> None:
        """Returns when a request of `credential` from `network` may begin."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(network, {}).setdefault(credential, deque()).append(turn)
        await turn

    def _begin(self) -> None:
        self._begun += 1
        if self._begun == 1:
            self._since = self._clock()
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """The next turn of the loop."""
        self._begun, self._allowed = 0, 1 if self._clock() - self._since > LONG else self._most
        while self._waiting and self._begun < self._allowed:
            turn = self._take()
            if not turn.done():  # its task was cancelled
                turn.set_result(None)
                self._begin()

    def _take(self) -> asyncio.Future[None]:
        """Who is next: the first credential of the first network. Both go to the end of their rows with what else they have."""
        network = next(iter(self._waiting))
        row = self._waiting.pop(network)
        credential = next(iter(row))
        requests = row.pop(credential)
        turn = requests.popleft()
        if requests:
            row[credential] = requests
        if row:
            self._waiting[network] = row
        return turn
