"""Answers above 1 MB: each credential reads one at a time, and all that are in progress hold so much memory and no more."""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

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
SECONDS = 5


class LargeAnswers:
    """Counts those that are being read. `held` are their bytes in memory, `refused` the calls that were turned away, by reason."""

    def __init__(self, most_held: int = MOST_HELD) -> None:
        self._most_held = most_held
        self._readers = Counter[str]()
        self._ended = asyncio.Event()
        self.held = 0
        self.refused = Counter[str](credential=0, memory=0)

    @property
    def in_progress(self) -> int:
        """How many are being read."""
        return self._readers.total()

    def refusal(self, reader: str, held: int, now: float, upgrade_url: str) -> Refusal | None:
        """Why `reader` cannot begin one that holds so many bytes; None: it may. `now`: Unix seconds."""
        if self._readers[reader]:
            self.refused["credential"] += 1
            return QuotaExceeded(
                "This credential is reading another answer above 1 MB; one is given at a time",
                code="rate_limited",
                limit=1,
                used=1,
                reset_at=stamp(now + SECONDS),
                retry_after=SECONDS,
                upgrade_url=upgrade_url,
                hint="Read that one to its end, or ask with limit",
            )
        # Choice: one that is larger than all of the room is given when there is no other, since nothing else would ever let it in.
        if self.held and self.held + held > self._most_held:
            self.refused["memory"] += 1
            return Overloaded("The server is at its limit of large answers", hint="Repeat the request in a few seconds, or ask with limit")
        return None

    @contextmanager
    def one_more(self, reader: str, held: int) -> Generator[None]:
        """For as long as it is being read."""
        self._readers[reader] += 1
        self.held += held
        try:
            yield
        finally:
            self._readers[reader] -= 1
            self._readers += Counter[str]()  # forgets the readers that have none
            self.held -= held
            self._ended.set()
            self._ended = asyncio.Event()

    async def turn(self, reader: str) -> None:
        """Wait until `reader` has none in progress: for an answer that cannot be refused any more."""
        while self._readers[reader]:
            await self._ended.wait()


def reader_of(call: Call) -> str:
    """Whose large answers are counted together: those of a credential, or of the network of a caller who has none."""
    caller = call.identified
    if caller is None or caller.kind == "public":
        return network_of(call.client)
    return caller.key_id or caller.principal
