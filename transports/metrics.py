"""What Prometheus reads: depth and lag from the database, and what this process has counted: traffic, errors, latency, saturation."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, TypeAlias

import anyio
import anyio.to_thread

from clients.outside_system import OutsideSystem
from registry.clock import Clock
from registry.errors import StoreUnavailable
from storage.backlog import Backlog, measure_backlog
from storage.engine.store import Store
from transports.http.concurrency import LargeAnswers, RequestTurns
from transports.http.connections import Connections
from transports.readiness import HEALTH_PATH, READY_PATH, Readiness
from transports.signals import HttpSignals, ProcessSignals, WorkerTally

METRICS_STORE_SECONDS = 2.0
"""For the database to say what waits; what is left of a scrape's own time limit is for the answer."""
METRICS_MEDIA_TYPE = "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"


class HttpServerState(NamedTuple):
    """What a process that serves HTTP counts beside its tally."""

    large: LargeAnswers
    connections: Connections
    requests: HttpSignals
    turns: RequestTurns


def load_metric_families():  # noqa: ANN201  # the type checker infers the module
    """Imports the library, which is slow, so it is done in a thread."""
    from transports import metric_families

    return metric_families


class Metrics:
    """The metrics of a process; `served` only where it serves HTTP."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        tally: WorkerTally,
        served: HttpServerState | None = None,
        systems: Sequence[OutsideSystem] = (),
        process: ProcessSignals | None = None,
    ) -> None:
        self._store, self._clock, self._tally, self._served, self._systems = store, clock, tally, served, systems
        self._process = process

    async def text(self) -> bytes:
        """All metrics in Prometheus' text format; those of this process alone where the database does not answer in 2 seconds."""
        families = await anyio.to_thread.run_sync(load_metric_families)

        now = self._clock.now()
        found: Backlog | None = None
        with suppress(StoreUnavailable), anyio.move_on_after(METRICS_STORE_SECONDS):
            found = await self._store.read(measure_backlog, now_ms=int(now * 1000))
        known = [
            *families.database_metrics(found, now),
            *families.worker_metrics(self._tally),
            *families.outside_system_metrics(self._systems),
            *families.upstream_call_metrics(self._systems),
        ]
        known += families.store_metrics(self._store.signals, self._store.pool_load)
        if self._process is not None:
            calls, deps, delay, log = self._process
            known += [*families.call_metrics(calls), *families.stock_metrics(deps.stock.free_counts())]
            known += families.process_metrics(delay.seconds, deps.build, log.lost)
        if self._served is not None:
            known += families.http_server_metrics(*self._served)
        return families.prometheus_text(known)


METRICS_REQUEST_SECONDS = 5.0
METRICS_ANSWER_SECONDS = 10.0
METRICS_HEAD_BYTES = 8192
STATUS_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
PROBE_MEDIA_TYPE, REFUSAL_MEDIA_TYPE = "application/json", "text/plain; charset=utf-8"


class MetricsAnswer(NamedTuple):
    status: int
    media_type: str
    body: bytes


MetricsPaths: TypeAlias = Mapping[bytes, Callable[[], Awaitable[MetricsAnswer]]]


@asynccontextmanager
async def listen_for_scrapes(metrics: Metrics, readiness: Readiness, bound: socket.socket) -> AsyncGenerator[None]:
    """Open on a bound socket for the length of a block; who is still asking at its end gets no answer."""
    answer, asking = connection_handler(metrics_paths(metrics, readiness)), set[asyncio.Task[None]]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asking.add(task := asyncio.create_task(answer(reader, writer)))
        task.add_done_callback(asking.discard)

    # A plain function: the task that asyncio would make for a coroutine reports its cancellation as an error.
    server = await asyncio.start_server(connected, sock=bound, limit=METRICS_HEAD_BYTES)
    try:
        yield
    finally:
        server.close()
        with anyio.CancelScope(shield=True):
            await cancel_requests(asking)


async def cancel_requests(asking: Collection[asyncio.Task[None]]) -> None:
    tasks = list(asking)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def metrics_paths(metrics: Metrics, readiness: Readiness) -> MetricsPaths:
    async def metrics_text() -> MetricsAnswer:
        return MetricsAnswer(200, METRICS_MEDIA_TYPE, await metrics.text())

    async def health() -> MetricsAnswer:
        status, body = readiness.health()
        return MetricsAnswer(status, PROBE_MEDIA_TYPE, body)

    async def ready() -> MetricsAnswer:
        status, body = readiness.answer()
        return MetricsAnswer(status, PROBE_MEDIA_TYPE, body)

    return {b"/metrics": metrics_text, HEALTH_PATH.encode(): health, READY_PATH.encode(): ready}


def connection_handler(paths: MetricsPaths) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]:
    """One request per connection, as scrapers make it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(METRICS_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(METRICS_ANSWER_SECONDS):
                path, status = path_and_status(head, paths)
                found = await paths[path]() if status == 200 else metrics_refusal(status, paths)
                writer.write(metrics_response(found, without_body=head.startswith(b"HEAD ")))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # whoever asks so slowly, so much, or goes away gets no answer; the next scrape comes by itself
        finally:
            writer.close()

    return answer


def path_and_status(head: bytes, paths: MetricsPaths) -> tuple[bytes, int]:
    """The path of a request, and the status that it gets at once; 200: what is there decides."""
    method, _, rest = head.partition(b" ")
    target, _, protocol = rest.partition(b"\r\n")[0].partition(b" ")
    path = target.partition(b"?")[0]
    if not protocol.startswith(b"HTTP/1."):
        return path, 400
    if path not in paths:
        return path, 404
    return path, 200 if method in (b"GET", b"HEAD") else 405


def metrics_refusal(status: int, paths: MetricsPaths) -> MetricsAnswer:
    """The refusal of another path: it lists the paths that there are."""
    known = b", ".join(paths).decode()
    return MetricsAnswer(status, REFUSAL_MEDIA_TYPE, f"{STATUS_REASONS[status]}: this address has GET {known}\n".encode())


def metrics_response(answer: MetricsAnswer, *, without_body: bool) -> bytes:
    status, media_type, body = answer
    lines = [f"HTTP/1.1 {status} {STATUS_REASONS[status]}", f"content-type: {media_type}"]
    lines += [f"content-length: {len(body)}", "cache-control: no-store", "connection: close"]
    if status == 405:
        lines.append("allow: GET, HEAD")
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if without_body else body)
