"""A transport that sends the head of an answer together with what follows it."""

import asyncio

HEAD = b"HTTP/1.1 "
MOST_COPIED = 65_536
"""Beyond that a copy costs more than the system call it saves."""


class Joined(asyncio.Transport):
    """uvicorn writes head and body by themselves, which are two system calls and two packets for one small answer.

    A head waits for the next write, though never beyond the turn of the loop in which it was written: when the first piece of an answer
    takes its time, the head is sent without it.
    """

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner, self._loop = inner, loop
        self._head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hold a head; anything else goes at once, behind the head that waits."""
        head, self._head = self._head, b""
        if isinstance(data, bytes) and not head and data.startswith(HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
        elif len(data) <= MOST_COPIED:
            self._inner.write(head + data if head else data)
        else:
            if head:
                self._inner.write(head)
            self._inner.write(data)

    def write_whole(self, head: bytes, body: bytes) -> None:
        """A whole answer. None waits in front of it: the one before was complete."""
        if len(body) <= MOST_COPIED:
            self._inner.write(head + body)
        else:
            self._inner.write(head)
            self._inner.write(body)

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._inner.is_closing():  # the client may have gone since: uvloop would raise
            self._inner.write(head)

    def close(self) -> None:
        """The end, behind all that was written."""
        self._flush()
        self._inner.close()

    def abort(self) -> None:
        """The end at once."""
        self._head = b""
        self._inner.abort()

    def write_eof(self) -> None:
        """Nothing more will be written."""
        self._flush()
        self._inner.write_eof()

    def get_write_buffer_size(self) -> int:
        """What is not yet sent, the head that waits included."""
        return self._inner.get_write_buffer_size() + len(self._head)

    # All else that uvicorn and the protocol ask of a transport; what they did not ask so far fails loudly in asyncio.Transport.

    def can_write_eof(self) -> bool:
        return self._inner.can_write_eof()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._inner.get_extra_info(name, default)
