"""Where the process dies: ports around the real ones that pull the plug when a call passes a named point for the n-th time."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import orjson

from clients.http import MEBIBYTE, HttpReply, Outbound, OutboundLimits
from clients.mail.letter import Letter, MailTransport
from registry.ports import (
    AuditRecord,
    CallRecord,
    ChangeAuthor,
    ChangeLookup,
    Conclusion,
    Journal,
    SpendingCharge,
    StoredAnswer,
    WriteArguments,
    WriteFunction,
    WriteList,
)
from storage.engine.sql import Connection
from storage.engine.store import Store
from tests.wrapped_store import WrappedStore

P = ParamSpec("P")
T = TypeVar("T")

MAIL = "mail"
"""What a point at the mail server is called."""


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

    async def stored(self, entry: CallRecord) -> StoredAnswer | None:
        return await self._journal.stored(entry)

    async def challenge(self, entry: CallRecord, digest: bytes, expires_at: float) -> None:
        await self._journal.challenge(entry, digest, expires_at)

    async def charge(self, charges: Sequence[SpendingCharge], now: float) -> None:
        await self._journal.charge(charges, now)

    async def settle(self, entry: CallRecord, stored: StoredAnswer, write: WriteFunction[T] | None, arguments: WriteArguments) -> T | None:
        self._trap.at("before settle", entry.operation)
        result = await self._journal.settle(entry, stored, write, arguments)
        self._trap.at("after settle", entry.operation)
        return result

    async def settle_result(
        self, entry: CallRecord, encode: Callable[[T], StoredAnswer], write: WriteFunction[T], arguments: WriteArguments
    ) -> T:
        self._trap.at("before settle", entry.operation)
        result = await self._journal.settle_result(entry, encode, write, arguments)
        self._trap.at("after settle", entry.operation)
        return result

    async def open(self, entry: CallRecord) -> None:
        self._trap.at("before claim", entry.operation)
        await self._journal.open(entry)
        self._trap.at("after claim", entry.operation)

    async def dispatch(self, entry: CallRecord, lost: StoredAnswer, writes: WriteList) -> None:
        self._trap.at("before dispatch", entry.operation)
        await self._journal.dispatch(entry, lost, writes)
        self._trap.at("after dispatch", entry.operation)

    async def close(
        self, entry: CallRecord, stored: StoredAnswer, *, outcome: str, unknown: bool, writes: WriteList, lost: WriteList
    ) -> None:
        self._trap.at("before save", entry.operation)
        await self._journal.close(entry, stored, outcome=outcome, unknown=unknown, writes=writes, lost=lost)
        self._trap.at("after save", entry.operation)

    async def conclude(
        self,
        entry: CallRecord,
        encode: Callable[[Any], bytes],
        write: Callable[..., Conclusion],
        arguments: WriteArguments,
        *,
        lost: WriteList,
    ) -> Conclusion:
        def within(*given: object, **named: object) -> Conclusion:
            concluded = write(*given, **named)
            self._trap.at("within save", entry.operation)  # written, and not committed
            return concluded

        self._trap.at("before save", entry.operation)
        concluded = await self._journal.conclude(entry, encode, within, arguments, lost=lost)
        self._trap.at("after save", entry.operation)
        return concluded

    async def release(self, entry: CallRecord, writes: WriteList, *, refund: bool) -> None:
        await self._journal.release(entry, writes, refund=refund)

    async def read(self, read: Callable[..., T], *arguments: Any) -> T:
        return await self._journal.read(read, *arguments)

    async def last_change(self, lookup: ChangeLookup) -> ChangeAuthor | None:
        return await self._journal.last_change(lookup)

    def record(self, line: AuditRecord) -> None:
        self._journal.record(line)

    async def flush(self) -> None:
        await self._journal.flush()


class TrappedStore(WrappedStore):
    """The store, with a point before and after each commit of a storage function that is not a call's own, by the function's name."""

    def __init__(self, store: Store, trap: Trap) -> None:
        super().__init__(store)
        self._trap = trap

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        name = str(getattr(fn, "__name__", ""))
        self._trap.at("before write", name)
        result = await super().write(fn, *args, **kwargs)
        self._trap.at("after write", name)
        return result


class TrappedOutbound(Outbound):
    """The way to the charging system, with a point before a request is written and one after its answer was read."""

    def __init__(self, limits: OutboundLimits, trap: Trap) -> None:
        super().__init__(limits)
        self._trap = trap

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> HttpReply:
        called = next(iter(orjson.loads(content)))
        self._trap.at("before send", called)
        reply = await super().exchange(method, url, headers=headers, content=content, keep=keep)
        self._trap.at("after reply", called)
        return reply


class TrappedMail:
    """The way to the mail server, with a point before a mail is handed over and one after it was taken."""

    def __init__(self, transport: MailTransport, trap: Trap) -> None:
        self._transport, self._trap = transport, trap

    async def send(self, letter: Letter, id: str) -> None:
        self._trap.at("before send", MAIL)
        await self._transport.send(letter, id)
        self._trap.at("after reply", MAIL)

    async def aclose(self) -> None:
        await self._transport.aclose()
