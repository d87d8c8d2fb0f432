"""A big array on its way through: raw JSON, read as it is written on."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from types import TracebackType
from typing import Self

import orjson

from clients.failure import OutboundFailed
from clients.ocs.envelope import opened, status_code
from clients.ocs.failure import Unreadable
from clients.ocs.numbers import integer
from clients.ocs.outcome import broken_off
from clients.ocs.shape import PLAIN, checked
from clients.ocs.splice import ArrayScan, layout
from clients.ocs.wire.members import Json

HEAD = 64 * 1024
MOST_BUFFERED = 64 << 20
DRAINED = 16
"""Chunks read after the array so that the connection can serve again."""


class RawArray(AsyncGenerator[bytes]):
    """The bytes of one JSON array. Read it to its end or close it: until then it holds a connection.

    It closes them even when it was never begun, which a plain generator would not. An OcsError in the middle means
    that the rest did not come.
    """

    def __init__(self, parts: AsyncGenerator[bytes]) -> None:
        self._parts = parts
        self._held = AsyncExitStack()

    def hold(self, held: AsyncExitStack) -> None:
        """Keep this open until the array is closed."""
        self._held.push_async_callback(held.aclose)

    def within(self, before: bytes, after: bytes) -> Self:
        """The same array with something around it, such as `{"data":` and `}`."""
        self._parts = _within(before, self._parts, after)
        return self

    async def asend(self, value: None, /) -> bytes:
        """The next bytes."""
        try:
            return await self._parts.asend(value)
        except BaseException:  # the end too
            await self._held.aclose()
            raise

    async def athrow(
        self, typ: type[BaseException] | BaseException, val: BaseException | object = None, tb: TracebackType | None = None, /
    ) -> bytes:
        """An error from outside ends the array: nothing here could recover from it."""
        await self.aclose()
        raise val if isinstance(val, BaseException) else typ

    async def aclose(self) -> None:
        """Give the connection back; closing twice is closing once."""
        await self._parts.aclose()
        await self._held.aclose()


async def _within(before: bytes, parts: AsyncGenerator[bytes], after: bytes) -> AsyncGenerator[bytes]:
    async with aclosing(parts):
        yield before
        async for part in parts:
            yield part
        yield after


async def begin(chunks: AsyncIterator[bytes], path: tuple[str, ...]) -> tuple[int, RawArray]:
    """Read the beginning: the status code, and the array at `path`. Small or unusually ordered answers are decoded instead."""
    head, complete = await _read(chunks, HEAD)
    found = None if complete else layout(path).match(head)
    if found is None:
        rest, _ = (b"", True) if complete else await _read(chunks, MOST_BUFFERED)
        document = opened(head + rest)
        return status_code(document), RawArray(_whole(document, path))
    code = _code(found.group(1))
    return code, RawArray(_spliced(head[found.end() :], chunks))


async def _read(chunks: AsyncIterator[bytes], most: int) -> tuple[bytes, bool]:
    """Read until there are `most` bytes; whether that was everything."""
    read = bytearray()
    async for chunk in chunks:
        read += chunk
        if len(read) >= most:
            return bytes(read), False
    return bytes(read), True


def _code(status: bytes) -> int:
    return integer(opened(status).get("code"))


def _whole(document: dict[str, Json], path: tuple[str, ...]) -> AsyncGenerator[bytes]:
    value: Json = document
    for name in path:
        value = None if value is None else checked(value, PLAIN).get(name)
    if value is not None and not isinstance(value, list):
        raise Unreadable("an array is expected")
    return _one(orjson.dumps(value or []))


async def _one(part: bytes) -> AsyncGenerator[bytes]:
    yield part


async def _spliced(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Choice: members that follow the array are left out; the array's own end is found exactly."""
    scan = ArrayScan()
    part: bytes | None = first
    while part is not None:
        try:
            end = scan.feed(part)
        except Unreadable:
            break
        yield part[:end]
        if end is not None:
            await _drain(chunks)
            return
        part = await _next(chunks)
    raise broken_off()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    try:
        return await anext(chunks, None)
    except OutboundFailed:
        return None


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    for _ in range(DRAINED):
        if await _next(chunks) is None:
            return
