"""GET /metrics beside a server or a worker, where it is switched on."""

import errno
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from transports.cli.failure import Failure
from transports.settings import Settings

if TYPE_CHECKING:
    from transports.metrics import Served
    from transports.service import Service


@contextmanager
def metrics_socket(settings: Settings) -> Generator[socket.socket | None]:
    """The bound address of the metrics, before anything else is begun; nothing when they are off."""
    from transports.http.serve import bind

    host, port = settings.metrics_host, settings.metrics_port
    if port == 0:
        yield None
        return
    try:
        bound = bind(host, port)
    except OSError as error:
        way = "give each process of a machine its own port" if error.errno == errno.EADDRINUSE else "choose another SERVICE_METRICS_HOST"
        raise Failure(f"SERVICE_METRICS_PORT: port {port} on {host}: {error.strerror}; {way}, or 0 for none") from None
    with bound:
        yield bound


@asynccontextmanager
async def metrics_of(service: "Service", bound: socket.socket | None, served: "Served | None" = None) -> AsyncGenerator[None]:
    """Answer there for the length of a block; `served` where the process serves HTTP."""
    if bound is None:
        yield
        return
    from transports.metrics import Metrics  # only where they are on: start-up time
    from transports.metrics_door import metrics_door
    from transports.signals import LoopDelay, ProcessSignals

    deps = service.pipeline.deps
    process = ProcessSignals(service.pipeline.signals, deps.stock, LoopDelay(service.clock), deps.build)
    metrics = Metrics(service.store, service.clock, service.worker.tally, served, service.systems, process)
    async with process.delay.watched(), metrics_door(metrics, service.readiness, bound):
        yield
