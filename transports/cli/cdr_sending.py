"""Batches of records on their way through the operation: what is worth waiting for is waited for, what is not ends the import."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, cast

import orjson

from clients.webhooks.retry_after import retry_after_seconds
from operations.invoicing.cdr_ingest import CdrIngested
from registry.call import Reply
from registry.clock import Clock
from registry.policy import stamp
from transports.cli.door import Door, accepted
from transports.cli.failure import Failure, Unreachable
from transports.cli.render import refusal_body

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before a batch is sent again to somebody who does not answer."""
REFUSED = re.compile(r"events\[([0-9]+)\]")

Record = dict[str, object]


class Sent(NamedTuple):
    """What came of a batch; `refused` are the places of records that were not taken, and why."""

    stored: int
    skipped: int
    refused: dict[int, str]


class Sender:
    """Sends batches; one record that is refused does not keep the others from being stored."""

    def __init__(self, door: Door, clock: Clock, *, say: Callable[[str], None], pause: Callable[[float], Awaitable[object]]) -> None:
        self._door, self._clock, self._say, self._pause = door, clock, say, pause

    async def send(self, records: Sequence[Record]) -> Sent:
        """Have a batch stored. Sending it twice does no harm: each record counts once."""
        places, refused = list(range(len(records))), dict[int, str]()
        while places:
            reply = await self._answered({"events": [records[place] for place in places]})
            found = REFUSED.match(str(refusal_body(reply).get("param"))) if reply.status == 400 else None
            if found is None:
                counts = counts_of(accepted(reply, "reseller cdr import"), self._door.name)
                return Sent(counts["stored"], counts["skipped"], refused)
            reason = str(refusal_body(reply).get("error")).removeprefix(found[0]).lstrip(".: ")
            refused[places.pop(int(found[1]))] = reason
        return Sent(0, 0, refused)

    async def _answered(self, batch: Record) -> Reply:
        """The answer, however long whoever gives it asks to wait."""
        failed = 0
        while True:
            try:
                reply = await self._door.ask("ingest_cdr_events", batch)
                trouble = f"{self._door.name} answers {reply.status}"
            except Unreachable as error:
                reply, trouble = None, error.message
            if reply is not None and reply.status == 429:
                await self._wait_as_told(reply)
                continue
            if reply is not None and reply.status < 500:
                return reply
            if failed == len(PAUSES):
                raise Unreachable(trouble if reply is None else told(reply), exit_code=3)
            self._say(f"{trouble}; the next try is in {PAUSES[failed]:g} s")
            await self._pause(PAUSES[failed])
            failed += 1

    async def _wait_as_told(self, reply: Reply) -> None:
        header = next((value for name, value in reply.headers.items() if name.lower() == "retry-after"), None)
        seconds = max(1.0, retry_after_seconds(header, self._clock.now()) or 1.0)
        if seconds > 1:  # the burst limit of a busy import is no news
            self._say(f"429 {refusal_body(reply).get('code', '')}: goes on in {seconds:g} s, at {stamp(self._clock.now() + seconds)}")
        await self._pause(seconds)


def told(reply: Reply) -> str:
    """A refusal of the server's own making, in its words."""
    try:
        accepted(reply, "reseller cdr import")
    except Failure as failure:
        return failure.message
    return f"HTTP {reply.status}"


def counts_of(reply: Reply, where: str) -> CdrIngested:
    """The answer's figures."""
    try:
        counts = cast(CdrIngested, orjson.loads(reply.body))
        if counts["stored"] + counts["skipped"] != counts["received"]:
            raise ValueError
        return counts
    except (ValueError, LookupError, TypeError):
        raise Failure(f"--url: what {where} answers is no count of records; is this the service's address?", exit_code=3) from None
