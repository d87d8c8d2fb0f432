"""Where the lines of the log go. A thread of its own writes them: a pipe that nobody reads, or a disk that stalls, holds up no call."""

import atexit
import io
import select
import sys
import threading
from collections import deque
from typing import BinaryIO, TypeAlias, cast

import orjson

from registry.clock import Clock
from transports.logs import log_time

LogStream: TypeAlias = io.RawIOBase | BinaryIO
MOST_WAITING_BYTES = 8 * 1024 * 1024
CLOSING_SECONDS = 2.0
"""How long the end of the process waits for what is not written yet."""


def unbuffered_stderr() -> LogStream:
    """The standard error below Python's buffer for it."""
    return cast("LogStream", getattr(sys.stderr.buffer, "raw", sys.stderr.buffer))


class LogOutput:
    """Writes to a stream, in the order of the calls. Lines that it has no room for, or cannot write, are lost, and counted.

    Nothing stays in a buffer: Python's own one for the standard error is written when it is full, which takes some thirty lines.
    """

    def __init__(self, stream: LogStream, clock: Clock, *, most_bytes: int = MOST_WAITING_BYTES) -> None:
        self._stream, self._clock, self._most = stream, clock, most_bytes
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._closing = False
        self._begun = b""
        """What ends a line of which only the beginning was written."""
        self._untold = 0
        self._thread: threading.Thread | None = None
        self.lost = 0
        """Lines since the process began."""

    def write(self, lines: bytes) -> None:
        """Have whole lines written soon; any thread may."""
        with self._changed:
            if self._closing or self._size + len(lines) > self._most:
                self._lose(lines)
                return
            self._waiting.append(lines)
            self._size += len(lines)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="log", daemon=True)
                self._thread.start()
                atexit.register(self.close)  # after the hook of an exception that ends the process: it has a line, too
            self._changed.notify()

    def close(self) -> None:
        """Wait a moment until all is written; what comes later is lost."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSING_SECONDS)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return
                lines = b"".join(self._waiting)
                self._waiting.clear()
            try:
                self._put(self._begun + lines)
            except OSError:  # nobody reads any more, or the disk is full
                self._begun = b"\n"
                with self._changed:
                    self._lose(lines)
            else:
                self._begun = b""
                self._tell(self._untold)
            with self._changed:
                self._size -= len(lines)

    def _put(self, lines: bytes) -> None:
        rest = memoryview(lines)
        while rest:
            written = self._stream.write(rest)
            if written is None:  # full, and set not to block by whoever shares the terminal or the pipe with this process
                select.select((), (self._stream,), ())
            else:
                rest = rest[written:]

    def _tell(self, lost: int) -> None:
        """A line about those that were lost before."""
        if lost == 0:
            return
        line = orjson.dumps({"time": log_time(self._clock.now()), "level": "warning", "kind": "log_lost", "lines": lost})
        try:
            self._put(line + b"\n")
        except OSError:
            self._begun = b"\n"
            return
        with self._changed:
            self._untold -= lost

    def _lose(self, lines: bytes) -> None:
        count = lines.count(b"\n")
        self.lost += count
        self._untold += count
