"""How much is under way at once: streams, answers above 1 MB, and the requests that begin in one turn of the event loop."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

from registry.call import Call
from registry.clock import rfc3339_utc
from registry.errors import QuotaExceeded, Refusal
from transports.http.asgi import Overloaded
from transports.http.forwarded import network_of

STREAMS_OF_ONE = 4
STREAMS_OF_ALL = 64
"""A third of the connections there are: slow readers never keep others from asking."""
EVENT_STREAMS_OF_ONE, EVENT_STREAMS_OF_ALL = 64, 256
"""Streams of events: half of the connections that a server takes, and what one organisation may have of them."""
STREAM_RETRY_SECONDS = 5


class StreamSlots:
    """Counts them, by organisation."""

    def __init__(self, of_one: int = STREAMS_OF_ONE, of_all: int = STREAMS_OF_ALL) -> None:
        self.of_one, self.of_all = of_one, of_all
        self._under_way: Counter[str] = Counter()

    def has_room(self, owner: str) -> bool:
        return self._under_way[owner] < self.of_one and self._under_way.total() < self.of_all

    @contextmanager
    def one_more(self, owner: str) -> Generator[None]:
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            self._under_way += Counter[str]()  # forgets the owners that have none


def too_many_streams(passing: StreamSlots, now: float, upgrade_url: str) -> QuotaExceeded:
    return QuotaExceeded(
        f"{passing.of_one} long answers of your organisation, or {passing.of_all} of all, are being read; finish one, or ask with limit",
        code="rate_limited",
        limit=passing.of_one,
        used=passing.of_one,
        reset_at=rfc3339_utc(now + STREAM_RETRY_SECONDS),
        retry_after=STREAM_RETRY_SECONDS,
        upgrade_url=upgrade_url,
    )


LARGE_ANSWER_BYTES = 1 << 20
"""Bytes of an answer that is counted."""
STREAM_BYTES = 512 * 1024
"""What an answer that is read in pieces holds at most: a piece that is made, and what the connection has not taken."""
LARGE_ANSWER_MEMORY = 64 << 20
LARGE_ANSWER_MEMORY_OF_ONE = LARGE_ANSWER_MEMORY // 2
"""An organisation has as many credentials as it likes; its answers leave room for those of others."""
LARGE_ANSWER_RETRY_SECONDS = 5


class AnswerReader(NamedTuple):
    """Who reads an answer: the credential, and whose it is. A caller without a credential is its network in both."""

    credential: str
    owner: str


class LargeAnswers:
    """Counts those that are being read. `held` are their bytes in memory, `refused` the calls that were turned away, by reason."""

    def __init__(self, most_held: int = LARGE_ANSWER_MEMORY, most_of_one: int = LARGE_ANSWER_MEMORY_OF_ONE) -> None:
        self._most_held, self._most_of_one = most_held, most_of_one
        self._readers, self._owners = Counter[str](), Counter[str]()
        self._ended = asyncio.Event()
        self.held = 0
        self.refused = Counter[str](credential=0, organisation=0, memory=0)

    @property
    def in_progress(self) -> int:
        return self._readers.total()

    def refusal(self, reader: AnswerReader, held: int, now: float, upgrade_url: str) -> Refusal | None:
        """Why `reader` cannot begin one that holds so many bytes; None: it may. `now`: Unix seconds."""
        why, limit, used = "", 1, self._readers[reader.credential]
        if used:
            self.refused["credential"] += 1
            why = "This credential is reading another answer above 1 MB; one is given at a time"
        elif self._owners[reader.owner] and self._owners[reader.owner] + held > self._most_of_one:
            limit, used = self._most_of_one, self._owners[reader.owner]
            self.refused["organisation"] += 1
            why = f"Your organisation is reading answers above 1 MB that hold {used} bytes; all of them may hold {limit}"
        if why:
            return QuotaExceeded(
                why,
                code="rate_limited",
                limit=limit,
                used=used,
                reset_at=rfc3339_utc(now + LARGE_ANSWER_RETRY_SECONDS),
                retry_after=LARGE_ANSWER_RETRY_SECONDS,
                upgrade_url=upgrade_url,
                hint="Read what was asked for to its end, or ask with limit",
            )
        # Choice: one that is larger than all of the room is given when there is no other, since nothing else would ever let it in.
        if self.held and self.held + held > self._most_held:
            self.refused["memory"] += 1
            return Overloaded("The server is at its limit of large answers", hint="Repeat the request in a few seconds, or ask with limit")
        return None

    @contextmanager
    def one_more(self, reader: AnswerReader, held: int) -> Generator[None]:
        self._readers[reader.credential] += 1
        self._owners[reader.owner] += held
        self.held += held
        try:
            yield
        finally:
            self._readers[reader.credential] -= 1
            self._owners[reader.owner] -= held
            self._readers += Counter[str]()  # forgets the readers that have none
            self._owners += Counter[str]()
            self.held -= held
            self._ended.set()
            self._ended = asyncio.Event()

    async def turn(self, reader: AnswerReader) -> None:
        """Wait until the credential has none in progress: for an answer that cannot be refused any more."""
        while self._readers[reader.credential]:
            await self._ended.wait()


def reader_of(call: Call) -> AnswerReader:
    caller = call.identified
    if caller is None or caller.kind == "public":
        network = network_of(call.client)
        return AnswerReader(network, network)
    return AnswerReader(caller.key_id or caller.principal, caller.owner)


REQUESTS_PER_TURN = 8
"""Requests that begin in one turn of the loop at most: so many that looking for news from the network costs little, so few that it comes
soon. At four a GET cost a tenth more."""
TURN_SECONDS = 0.004
"""How long a turn is meant to take: the next one begins with as many requests as fit in, by what the last ones took."""


class RequestTurns:
    """Lets requests begin: each network in turn, and of a network each credential in turn.

    Networks come first, since a credential is not looked at yet, and whoever makes credentials up has as many as they like.
    """

    def __init__(self, clock: Callable[[], float], most: int = REQUESTS_PER_TURN) -> None:
        """`clock` tells seconds, from any beginning."""
        self._most, self._clock = most, clock
        self._begun, self._since, self._allowed = 0, 0.0, most
        self._waiting: dict[str, dict[bytes, deque[asyncio.Future[None]]]] = {}

    def __len__(self) -> int:
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
        self._begun, self._allowed = 0, self._fitting()
        while self._waiting and self._begun < self._allowed:
            turn = self._take()
            if not turn.done():  # its task was cancelled
                turn.set_result(None)
                self._begin()

    def _fitting(self) -> int:
        """How many may begin in the next turn: as many as fit, and at most twice as many as in this one, since what comes may be slow."""
        took = self._clock() - self._since
        fit = int(self._begun * TURN_SECONDS / took) if took > 0 else self._most
        return max(1, min(self._most, 2 * self._allowed, fit))

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
