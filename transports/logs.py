"""The service's own log: one line per request, faults with masked text; buffered, because a line is cheaper than a write.

A line is an allow-list of fields that are ours (ids, templates, codes), so it needs no masking; all other text is masked.
"""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import Literal, NamedTuple, cast

import orjson
from pydantic import SecretStr

from registry.call import Call
from registry.clock import Clock, SystemClock
from registry.redaction import redact
from transports.settings import Settings

LOG_FLUSH_BYTES = 64 * 1024
LOGGED_FRAMES = 20
UNMASKED_FIELDS = frozenset({"request_id", "operation", "status", "code"})  # ids may hold a run of digits that only looks like a secret
LogWrite = Callable[[bytes], object]
LogLevel = Literal["info", "warning", "error"]


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

    def __init__(self, write: LogWrite, clock: Clock, *, secrets: Iterable[str] = (), human: bool = False, delay: float = 0.5) -> None:
        self._write, self._clock, self._human, self._delay = write, clock, human, delay
        self._secrets = tuple(secret for secret in secrets if secret.strip())
        self._thread = threading.get_ident()
        self._lines: list[bytes] = []
        self._size = 0

    def request(self, line: RequestLine) -> None:
        self._add(terminal_line(line) if self._human else orjson.dumps(json_fields(line)))

    def fault(self, request_id: str, operation: str, error: BaseException) -> None:
        """A fault of ours: its type, where it happened, and its masked text."""
        self.event("fault", level="error", request_id=request_id, operation=operation, errors=describe_error(error))

    def report(self, call: Call, error: BaseException) -> None:
        """A fault inside a call, as `registry.answer` reports it."""
        self.fault(call.request_id, call.operation.id, error)

    def note(self, text: str) -> None:
        """Something an operator should know."""
        self.event("note", text=text)

    def event(self, kind: str, *, level: LogLevel = "info", **fields: object) -> None:
        """Anything that is not a request; written at once. Any thread may say it: what waits belongs to the one of the loop."""
        masked = {name: value if name in UNMASKED_FIELDS else self._masked(value) for name, value in fields.items()}
        line = orjson.dumps({"time": log_time(self._clock.now()), "level": level, "kind": kind, **masked})
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
            return redact(value, self._secrets)
        if isinstance(value, list):
            return [self._masked(item) for item in cast(list[object], value)]
        if isinstance(value, dict):
            return {name: self._masked(item) for name, item in cast(dict[str, object], value).items()}
        return value if isinstance(value, int | float | None) else redact(str(value), self._secrets)

    def _add(self, line: bytes) -> None:
        first = not self._lines
        self._lines.append(line)
        self._size += len(line)
        if self._human or self._size > LOG_FLUSH_BYTES or (first and not self._flush_later()):
            self.flush()

    def _flush_later(self) -> bool:
        """Arrange a flush; without a running loop there is no later."""
        try:
            asyncio.get_running_loop().call_later(self._delay, self.flush)
        except RuntimeError:
            return False
        return True


class LibraryLog(logging.Handler):
    """What libraries say through `logging`, masked like everything else. The server's warnings are about clients: ours say more."""

    def __init__(self, logs: Logs, least: int = logging.ERROR) -> None:
        super().__init__(least)
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        fields = {} if error is None else {"errors": describe_error(error)}
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._logs.event("server", level=level, logger=record.name, text=record.getMessage(), **fields)


def describe_error(error: BaseException) -> list[dict[str, object]]:
    """An exception and what caused it, innermost frame last. Neither source lines nor local variables."""
    found: list[dict[str, object]] = []
    current: BaseException | None = error
    while current is not None and len(found) < 5:
        frames = traceback.extract_tb(current.__traceback__)[-LOGGED_FRAMES:]
        where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        found.append({"type": type(current).__name__, "text": error_text(current)[:500], "frames": where})
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return found


def error_text(error: BaseException) -> str:
    """What it says. Of an error of PostgreSQL not the details, which repeat values of the row."""
    sqlstate = getattr(error, "sqlstate", None)
    return str(error) if sqlstate is None else f"{str(error).partition(chr(10))[0]} ({sqlstate})"


def log_time(seconds: float) -> str:
    """RFC 3339 UTC with milliseconds."""
    whole, thousandths = divmod(int(seconds * 1000), 1000)
    return f"{log_second(whole)}.{thousandths:03d}Z"


@lru_cache(maxsize=8)
def log_second(whole: int) -> str:
    """Date and time to the second; many lines share it."""
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def json_fields(line: RequestLine) -> dict[str, object]:
    fields: dict[str, object] = {"time": "", "level": level_of_status(line.status), **line._asdict()}
    fields["time"] = log_time(line.time)
    if not line.client_request_id:
        del fields["client_request_id"]
    if not line.trace:
        del fields["trace"]
    return fields


def level_of_status(status: int) -> LogLevel:
    """A fault of ours is an error; an outside system or the database that is away, or a limit that is reached, is a warning."""
    return "info" if status < 500 else "warning" if status in (501, 502, 503, 504) else "error"


def terminal_line(line: RequestLine) -> bytes:
    what = line.operation or line.path
    tail = " ".join(part for part in (line.code, line.organisation, line.request_id) if part)
    return f"{log_time(line.time)[11:23]} {line.status} {line.method:<6} {what}  {line.ms:.1f} ms  {tail}".encode()


def log_process_output(logs: Logs) -> None:
    """From now on warnings and errors of any library, and exceptions that nobody catches, are lines of the log."""
    root = logging.getLogger()
    root.handlers[:] = [LibraryLog(logs, logging.WARNING)]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)

    def in_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
            name = "" if failed.thread is None else failed.thread.name
            logs.event("fault", level="error", thread=name, errors=describe_error(failed.exc_value))

    def unraisable(failed: "sys.UnraisableHookArgs") -> None:
        if failed.exc_value is not None:
            logs.event("fault", level="error", text=failed.err_msg or "", errors=describe_error(failed.exc_value))

    def at_the_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        logs.event("fault", level="error", errors=describe_error(error))

    threading.excepthook, sys.unraisablehook, sys.excepthook = in_thread, unraisable, at_the_end


class OpeningLog:
    """Takes notes from the first moment; they are written when the log opens."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._logs: Logs | None = None

    def note(self, text: str) -> None:
        """Something an operator should know, now or as soon as it can be said."""
        if self._logs is None:
            self._waiting.append(text)
        else:
            self._logs.note(text)

    def early(self, settings: Settings, write: LogWrite, to_person: Callable[[str], None]) -> Callable[[str], None]:
        """Says at once what cannot wait for the keyring: to a person at a terminal as it is, else as a line, like all others."""
        return to_person if sys.stderr.isatty() else Logs(write, SystemClock(), secrets=loaded_secrets(settings, "")).note

    def open(self, logs: Logs) -> None:
        """From here on notes are written at once."""
        self._logs = logs
        for text in self._waiting:
            logs.note(text)
        self._waiting.clear()


def loaded_secrets(settings: Settings, keyring_text: str) -> list[str]:
    """Every secret of this process, for masking by value: whole, and the keys of a keyring one by one."""
    whole = [value.get_secret_value() for _, value in settings if isinstance(value, SecretStr)]
    lists = (keyring_text, settings.mcp_state_keys.get_secret_value())
    # Without the padding: the decoder takes a key with and without it. The name before the colon is no secret.
    keys = [entry.rpartition(":")[2].strip().rstrip("=") for text in lists for entry in text.split(",")]
    return [secret for secret in (*whole, keyring_text, *keys) if secret]
