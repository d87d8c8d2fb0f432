"""Answers above 1 MB: each credential reads one at a time; those of one organisation, and those of all, hold so much memory and no more."""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from registry.call import Call
from registry.errors import QuotaExceeded, Refusal
from registry.policy import stamp
from transports.http.connection import Overloaded
from transports.http.network import network_of

LARGE_ANSWER = 1 << 20
"""Bytes of an answer that is counted."""
STREAM_BYTES = 512 * 1024
"""What an answer that is read in pieces holds at most: a piece that is made, and what the connection has not taken."""
MOST_HELD = 64 << 20
MOST_OF_ONE = MOST_HELD // 2
"""An organisation has as many credentials as it likes; its answers leave room for those of others."""
SECONDS = 5


class Reader(NamedTuple):
    """Who reads an answer: the credential, and whose it is. A caller without a credential is its network in both."""

    credential: str
    owner: str


class LargeAnswers:
    """Counts those that are being read. `held` are their bytes in memory, `refused` the calls that were turned away, by reason."""

    def __init__(self, most_held: int = MOST_HELD, most_of_one: int = MOST_OF_ONE) -> None:
        self._most_held, self._most_of_one = most_held, most_of_one
        self._readers, self._owners = Counter[str](), Counter[str]()
        self._ended = asyncio.Event()
        self.held = 0
        self.refused = Counter[str](credential=0, organisation=0, memory=0)

    @property
    def in_progress(self) -> int:
        """How many are being read."""
        return self._readers.total()

    def refusal(self, reader: Reader, held: int, now: float, upgrade_url: str) -> Refusal | None:
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
                reset_at=stamp(now + SECONDS),
                retry_after=SECONDS,
                upgrade_url=upgrade_url,
                hint="Read what was asked for to its end, or ask with limit",
            )
        # Choice: one that is larger than all of the room is given when there is no other, since nothing else would ever let it in.
        if self.held and self.held + held > self._most_held:
            self.refused["memory"] += 1
            return Overloaded("The server is at its limit of large answers", hint="Repeat the request in a few seconds, or ask with limit")
        return None

    @contextmanager
    def one_more(self, reader: Reader, held: int) -> Generator[None]:
        """For as long as it is being read."""
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

    async def turn(self, reader: Reader) -> None:
        """Wait until the credential has none in progress: for an answer that cannot be refused any more."""
        while self._readers[reader.credential]:
            await self._ended.wait()


def reader_of(call: Call) -> Reader:
    """Who reads the answer of this call."""
    caller = call.identified
    if caller is None or caller.kind == "public":
        network = network_of(call.client)
        return Reader(network, network)
    return Reader(caller.key_id or caller.principal, caller.owner)
