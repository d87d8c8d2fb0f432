"""Running the server: a socket of ours, uvicorn with uvloop and httptools, nothing of its access log."""

import asyncio
import ctypes
import gc
import importlib.util
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from registry.errors import Refusal
from registry.ids import Ids
from transports.http.asgi import App
from transports.http.connections import Connections, Deadlines
from transports.logs import LibraryLog, Logs

if TYPE_CHECKING:
    import uvicorn

T = TypeVar("T")
# Plain asyncio with h11 serves a third of the requests: an installation without these is broken, not slow.
SERVER_PACKAGES = ("uvicorn", "uvloop", "httptools")
# Whose errors would otherwise go to stderr as they are: with addresses, and with the values of tasks that failed unseen.
LOGGED_LIBRARIES = ("uvicorn.error", "mcp", "asyncio", "aiohttp", "httpx", "httpcore")
GC_THRESHOLDS = (20_000, 10, 50)
"""How many allocations come before a look at what is new, how many of these looks before one at what outlived one as well, and how many of
those before one at all but what start-up left, which is frozen. Calls that wait for seconds outlive a look, and what they leave waits for
one of the second kind: at one in fifty, some minutes of overload left a hundred thousand objects."""
SWITCH_SECONDS = 0.0005
"""After which a thread that computes gives the interpreter to whoever waits, such as the loop. Python's 5 ms are a call's whole time."""
LARGE_BLOCK_BYTES = 128 * 1024
MMAP_THRESHOLD_OPTION = -3
"""glibc's M_MMAP_THRESHOLD (man 3 mallopt)."""
SEND_BUFFER_BYTES = 256 * 1024
"""Bytes that the system holds of what a client has not read: where it holds megabytes, a slow one's progress is not seen for minutes."""


class MissingPackage(Exception):
    """The server cannot run without a package."""


def require_packages(names: tuple[str, ...] = SERVER_PACKAGES) -> None:
    """Refuse to start without what the server is built on."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPackage(f"the server needs {', '.join(missing)}, which is not installed: run `pip install {' '.join(missing)}`")


def bind_socket(host: str, port: int, *, send_buffer: int = SEND_BUFFER_BYTES) -> socket.socket:
    """A bound socket, whose connections hold `send_buffer` bytes each. Port 0 takes a free one, which `socket_port` tells."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def socket_port(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


def run_on_uvloop(main: Coroutine[object, object, T]) -> T:
    """Runs `main` to its end on a loop that gets the interpreter back soon from threads that compute, and gives large blocks back."""
    require_packages()
    import uvloop  # after the check, which names it when it is missing

    sys.setswitchinterval(SWITCH_SECONDS)
    give_large_blocks_back()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def make_http_server(
    app: App,
    *,
    deadlines: Deadlines,
    ids: Ids,
    logs: Logs,
    ready: Callable[[], None],
    connections: Connections | None = None,
    always: Sequence[tuple[str, str]] = (),
    drain: Callable[[], None] = lambda: None,
    drain_seconds: float = 0.0,
) -> "uvicorn.Server":
    """A server that is not yet running: `await server.serve(sockets=[bind(...)])`; `server.should_exit = True` ends it.

    `ready` is called when it listens; `socket_port` knows the port before. `drain` is called when it is told to end, `drain_seconds` before
    it takes no more connections. `always` are headers of every answer, the server's own refusals included.
    """
    require_packages()
    if connections is None:
        connections = Connections(deadlines.concurrency, deadlines.of_network)
    import uvicorn  # after the check, which names what is missing

    from transports.http.protocol import DeadlineProtocol  # brings httptools

    def refused(request_id: str, refusal: Refusal) -> None:
        connections.rejected.add((refusal.error_code,))
        logs.event("refused", request_id=request_id, status=refusal.status, code=refusal.error_code)

    config = uvicorn.Config(
        app,
        http=partial(DeadlineProtocol, deadlines=deadlines, ids=ids, refused=refused, connections=connections),  # pyright: ignore[reportArgumentType]  # uvicorn only calls it
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        headers=list(always),
        proxy_headers=False,  # transports/http/forwarded.py reads them
        backlog=deadlines.backlog,
        timeout_keep_alive=deadlines.keep_alive,
        timeout_graceful_shutdown=deadlines.shutdown,
    )
    listen_to_libraries(logs)

    def begin_drain() -> None:
        connections.draining = True
        drain()

    return uvicorn_server_type(ready, begin_drain, drain_seconds)(config)


def uvicorn_server_type(
    ready: Callable[[], None], drain: Callable[[], None] = lambda: None, drain_seconds: float = 0.0
) -> type["uvicorn.Server"]:
    """uvicorn's server, which tells when it listens and leaves the end of the process to us; made here, since uvicorn is imported late.

    SIGTERM is told first, so that whoever sends requests sends them elsewhere; those that come all the same are answered, and end their
    connections. SIGINT, or a second signal, ends at once: a person waits.
    """
    import uvicorn

    class Server(uvicorn.Server):
        draining, drained_at = False, 0.0

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            drain()
            if sig == signal.SIGTERM and drain_seconds > 0 and not self.draining:
                self.draining = True
            else:
                super().handle_exit(sig, frame)

        async def on_tick(self, counter: int) -> bool:
            if self.draining:
                now = asyncio.get_running_loop().time()
                self.drained_at = self.drained_at or now + drain_seconds
                late = now - self.drained_at
                self.should_exit = self.should_exit or late >= drain_seconds or (late >= 0 and not self.server_state.tasks)
            return await super().on_tick(counter)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                freeze_memory()
                ready()

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            # uvicorn would raise the signal again after its shutdown, and a SIGTERM would end the process before ours.
            with super().capture_signals():
                yield
                self._captured_signals.clear()

    return Server


def listen_to_libraries(logs: Logs) -> None:
    """What the libraries say of errors becomes lines of ours, masked."""
    for name in LOGGED_LIBRARIES:
        logger = logging.getLogger(name)
        logger.handlers[:] = [LibraryLog(logs)]
        logger.setLevel(logging.ERROR)
        logger.propagate = False


def give_large_blocks_back() -> None:
    """From now on memory of 128 kB and more, such as a list of an account's lines, goes back to the system as soon as it is freed.

    glibc begins so too. The first block of some megabytes that is freed has it take those of that size from its heap, where they leave
    holes between what stays. Other C libraries have no such setting.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD_OPTION, LARGE_BLOCK_BYTES)


def freeze_memory() -> None:
    """What exists after start-up lives for ever: keep the collector away from it, and start it for what comes.

    No call leaves garbage that needs it (tests/http/test_garbage.py); a connection that ends does, and what libraries do now and then.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
