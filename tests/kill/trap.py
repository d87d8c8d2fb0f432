"""Where the process dies: ports around the real ones that pull the plug when a call passes a named point for the n-th time."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from clients.http import MEBIBYTE, Outbound, OutboundLimits, Reply
from registry.ports import Arguments, Conclusion, Entry, Journal, Line, Stored, Write, Writes

T = TypeVar("T")


class Point(NamedTuple):
    """Before or after what, of which operation or which method of the wire, and the how many-th time."""

    place: str
    subject: str
    nth: int = 1


class Trap:
    """Kills this process as `kill -9` does: nothing of it runs any more, no buffer is written, no connection is closed by it."""

    def __init__(self, point: Point | None) -> None:
        self._point, self._passed = point, 0

    def at(self, place: str, subject: str) -> None:
        """A call passes here."""
        point = self._point
        if point is None or (place, subject) != (point.place, point.subject):
            return
        self._passed += 1
        if self._passed == point.nth:
            os.kill(os.getpid(), signal.SIGKILL)


class TrappedJournal:
    """The journal, with a point before and after each of its commits."""

    def __init__(self, journal: Journal, trap: Trap) -> None:
        self._journal, self._trap = journal, trap

    async def first_known(self, organisation: str, operation: str, keys: Sequence[str], now: float) -> str | None:
        return await self._journal.first_known(organisation, operation, keys, now)

    async def stored(self, entry: Entry) -> Stored | None:
        return await self._journal.stored(entry)

    async def challenge(self, entry: Entry, digest: bytes, expires_at: float) -> None:
        await self._journal.challenge(entry, digest, expires_at)

    async def settle(self, entry: Entry, stored: Stored, write: Write[T] | None, arguments: Arguments) -> T | None:
        return await self._journal.settle(entry, stored, write, arguments)

    async def settle_result(self, entry: Entry, encode: Callable[[T], Stored], write: Write[T], arguments: Arguments) -> T:
        return await self._journal.settle_result(entry, encode, write, arguments)

    async def open(self, entry: Entry) -> None:
        self._trap.at("before claim", entry.operation)
        await self._journal.open(entry)
        self._trap.at("after claim", entry.operation)

    async def dispatch(self, entry: Entry, lost: Stored, writes: Writes) -> None:
        self._trap.at("before dispatch", entry.operation)
        await self._journal.dispatch(entry, lost, writes)
        self._trap.at("after dispatch", entry.operation)

    async def close(self, entry: Entry, stored: Stored, *, outcome: str, unknown: bool, writes: Writes, lost: Writes) -> None:
        self._trap.at("before save", entry.operation)
        await self._journal.close(entry, stored, outcome=outcome, unknown=unknown, writes=writes, lost=lost)
        self._trap.at("after save", entry.operation)

    async def conclude(
        self, entry: Entry, encode: Callable[[Any], bytes], write: Callable[..., Conclusion], arguments: Arguments, *, lost: Writes
    ) -> Conclusion:
        def within(*given: object, **named: object) -> Conclusion:
            concluded = write(*given, **named)
            self._trap.at("within save", entry.operation)  # written, and not committed
            return concluded

        self._trap.at("before save", entry.operation)
        concluded = await self._journal.conclude(entry, encode, within, arguments, lost=lost)
        self._trap.at("after save", entry.operation)
        return concluded

    async def release(self, entry: Entry, writes: Writes, *, refund: bool) -> None:
        await self._journal.release(entry, writes, refund=refund)

    def record(self, line: Line) -> None:
        self._journal.record(line)

    async def flush(self) -> None:
        await self._journal.flush()


class TrappedOutbound(Outbound):
    """The way to the charging system, with a point before a request is written and one after its answer was read."""

    def __init__(self, limits: OutboundLimits, trap: Trap) -> None:
        super().__init__(limits)
        self._trap = trap

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> Reply:
        called = next(iter(orjson.loads(content)))
        self._trap.at("before send", called)
        reply = await super().exchange(method, url, headers=headers, content=content, keep=keep)
        self._trap.at("after reply", called)
        return reply
