"""Server-sent events of a chat: how one is written, and how their reader is kept while nothing happens."""

from asyncio import Queue, create_task, gather, timeout
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import orjson

SILENCE = b": still working\n\n"
SILENT_SECONDS = 15.0
"""Choice: shorter than the 30 s after which common proxies give an idle connection up."""


def event(name: str, data: Mapping[str, object]) -> bytes:
    """One event. Its JSON is on one line, whatever is in it."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(data))


async def kept_alive(pieces: AsyncGenerator[bytes], *, late: bytes, most: float, every: float = SILENT_SECONDS) -> AsyncGenerator[bytes]:
    """The pieces, with a comment wherever none comes for a while, and `late` in place of those that come after too long a time.

    They are made in a task of their own, which is over when this is: closing it, or cancelling whoever reads it, ends what they wait for.
    A slow reader makes nobody wait; what waits is no more than a chat may say.
    """
    ready: Queue[bytes | None] = Queue()
    making = create_task(make(pieces, ready, late, most))
    making.add_done_callback(lambda _: ready.put_nowait(None))
    try:
        while True:
            try:
                async with timeout(every):
                    piece = await ready.get()
            except TimeoutError:
                piece = SILENCE
            if piece is None:
                break
            yield piece
        await making
    finally:
        making.cancel()
        await gather(making, return_exceptions=True)


async def make(pieces: AsyncGenerator[bytes], ready: Queue[bytes | None], late: bytes, most: float) -> None:
    """Make them one by one, in the time there is."""
    try:
        async with timeout(most), aclosing(pieces):
            async for piece in pieces:
                ready.put_nowait(piece)
    except TimeoutError:
        ready.put_nowait(late)
