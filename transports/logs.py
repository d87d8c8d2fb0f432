"""The service's own log: one line per request, faults with masked text; buffered, because a line is cheaper than a write.

A line is an allow-list of fields that are ours (ids, templates, codes), so it needs no masking; all other text is masked.
"""

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NamedTuple, cast

import orjson

from registry.call import Call
from registry.clock import Clock
from registry.redaction import mask

FLUSH_BYTES = 64 * 1024
FRAMES = 20
OURS = frozenset({"request_id", "operation", "status", "code"})  # ids may hold a run of digits that only looks like a secret
Write = Callable[[bytes], object]
Level = Literal["info", "warning", "error"]


class RequestLine(NamedTuple):
    """One request. `path` is the template, never what was sent: a path or a query may hold a secret. `client` is an address, `key` the
    id of a credential; `client_request_id` and `trace` are a trusted proxy's names for it."""

    time: float
    request_id: str
    method: str
    path: str
    operation: str
    status: int
    ms: float
    surface: str
    organisation: str
    code: str
    client: str = ""
    key: str = ""
    client_request_id: str = ""
    trace: str = ""


class Logs:
    """Writes lines for machines, or for a person at a terminal."""

    def __init__(self, write: Write, clock: Clock, *, secrets: Iterable[str] = (), human: bool = False, delay: float = 0.5) -> None:
        self._write, self._clock, self._human, self._delay = write, clock, human, delay
        self._secrets = tuple(secret for secret in secrets if secret.strip())
        self._thread = threading.get_ident()
        self._lines: list[bytes] = []
        self._size = 0

    def request(self, line: RequestLine) -> None:
        """One answered request."""
        self._add(spoken(line) if self._human else orjson.dumps(written(line)))

    def fault(self, request_id: str, operation: str, error: BaseException) -> None:
        """A fault of ours: its type, where it happened, and its masked text."""
        self.event("fault", level="error", request_id=request_id, operation=operation, errors=described(error))

    def report(self, call: Call, error: BaseException) -> None:
        """A fault inside a call, as `registry.answer` reports it."""
        self.fault(call.request_id, call.operation.id, error)

    def note(self, text: str) -> None:
        """Something an operator should know."""
        self.event("note", text=text)

    def event(self, kind: str, *, level: Level = "info", **fields: object) -> None:
        """Anything that is not a request; written at once. Any thread may say it: what waits belongs to the one of the loop."""
        masked = {name: value if name in OURS else self._masked(value) for name, value in fields.items()}
        line = orjson.dumps({"time": stamp(self._clock.now()), "level": level, "kind": kind, **masked})
        if threading.get_ident() != self._thread:
            self._write(line + b"\n")
            return
        self._add(line)
        self.flush()

    def flush(self) -> None:
        """Hand over what is buffered."""
        if self._lines:
            lines, self._lines, self._size = self._lines, [], 0
            self._write(b"\n".join(lines) + b"\n")

    def _masked(self, value: object) -> object:
        """Every text inside a value masked, before JSON escapes could hide a secret from its pattern."""
        if isinstance(value, str):
            return mask(value, self._secrets)
        if isinstance(value, list):
            return [self._masked(item) for item in cast(list[object], value)]
        if isinstance(value, dict):
            return {name: self._masked(item) for name, item in cast(dict[str, object], value).items()}
        return value if isinstance(value, int | float | None) else mask(str(value), self._secrets)

    def _add(self, line: bytes) -> None:
        first = not self._lines
        self._lines.append(line)
        self._size += len(line)
        if self._human or self._size > FLUSH_BYTES or (first and not self._flush_later()):
            self.flush()

    def _flush_later(self) -> bool:
        """Arrange a flush; without a running loop there is no later."""
        try:
            asyncio.get_running_loop().call_later(self._delay, self.flush)
        except RuntimeError:
            return False
        return True


class ServerLog(logging.Handler):
    """What libraries say through `logging`, masked like everything else. The server's warnings are about clients: ours say more."""

    def __init__(self, logs: Logs, least: int = logging.ERROR) -> None:
        super().__init__(least)
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        fields = {} if error is None else {"errors": described(error)}
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._logs.event("server", level=level, logger=record.name, text=record.getMessage(), **fields)


def described(error: BaseException) -> list[dict[str, object]]:
    """An exception and what caused it, innermost frame last. Neither source lines nor local variables."""
    found: list[dict[str, object]] = []
    current: BaseException | None = error
    while current is not None and len(found) < 5:
        frames = traceback.extract_tb(current.__traceback__)[-FRAMES:]
        where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        found.append({"type": type(current).__name__, "text": text_of(current)[:500], "frames": where})
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return found


def text_of(error: BaseException) -> str:
    """What it says. Of an error of PostgreSQL not the details, which repeat values of the row."""
    sqlstate = getattr(error, "sqlstate", None)
    return str(error) if sqlstate is None else f"{str(error).partition(chr(10))[0]} ({sqlstate})"


def stamp(seconds: float) -> str:
    """RFC 3339 UTC with milliseconds."""
    whole, thousandths = divmod(int(seconds * 1000), 1000)
    return f"{second(whole)}.{thousandths:03d}Z"


@lru_cache(maxsize=8)
def second(whole: int) -> str:
    """Date and time to the second; many lines share it."""
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def written(line: RequestLine) -> dict[str, object]:
    """A line for a machine."""
    fields: dict[str, object] = {"time": "", "level": level_of(line.status), **line._asdict()}
    fields["time"] = stamp(line.time)
    if not line.client_request_id:
        del fields["client_request_id"]
    if not line.trace:
        del fields["trace"]
    return fields


def level_of(status: int) -> Level:
    """A fault of ours is an error; an outside system or the database that is away, or a limit that is reached, is a warning."""
    return "info" if status < 500 else "warning" if status in (501, 502, 503, 504) else "error"


def spoken(line: RequestLine) -> bytes:
    """A line for a person."""
    what = line.operation or line.path
    tail = " ".join(part for part in (line.code, line.organisation, line.request_id) if part)
    return f"{stamp(line.time)[11:23]} {line.status} {line.method:<6} {what}  {line.ms:.1f} ms  {tail}".encode()
