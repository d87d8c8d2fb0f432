"""`reseller worker`: deliveries and chores as a process of their own, for PostgreSQL with many servers."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import anyio
import typer
from anyio.abc import TaskStatus

from storage.migrate import SchemaMismatch
from storage.starting import wait_for_start
from transports.cli.failure import Failure
from transports.cli.metrics import metrics_of, metrics_socket
from transports.settings import Settings, load_settings


def worker(data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None) -> None:
    """Deliver webhooks and do the chores beside it, until stopped."""
    from transports.http.serve import run

    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    try:
        with metrics_socket(settings) as scraped:
            run(work(settings, scraped))
    except SchemaMismatch as wrong:
        raise Failure(str(wrong), exit_code=3) from None


async def work(settings: Settings, scraped: socket.socket | None) -> None:
    """One worker; SIGTERM and SIGINT let it finish the deliveries under way."""
    from transports.chores import keep_running
    from transports.cli.local import to_stderr
    from transports.cli.opening_log import OpeningLog, loaded_secrets
    from transports.http.serve import listen_to_libraries, settle_memory
    from transports.logs import Logs
    from transports.process_log import log_process_output
    from transports.service import build_service

    opening = OpeningLog()
    await wait_for_start(settings.store_url, opening.early(settings, sys.stderr, to_stderr))
    service = build_service(settings, "http://127.0.0.1:8000", report=opening.note, apart=True)
    secrets = loaded_secrets(settings, service.keyring_text)
    logs = Logs(sys.stderr.buffer.write, service.clock, secrets=secrets, human=sys.stderr.isatty())
    opening.open(logs)
    log_process_output(logs)
    listen_to_libraries(logs)
    await service.start(seed=False)
    await service.readiness.look()
    settle_memory()

    def stop() -> None:
        service.readiness.drain()
        service.worker.stop()

    try:
        async with metrics_of(service, scraped), anyio.create_task_group() as tasks:
            tasks.start_soon(keep_running, "the writing of buffered rows", service.keep_books, service.report)
            tasks.start_soon(keep_running, "the look at the database", service.readiness.watch, service.report)
            await tasks.start(stop_on_signal, stop)
            logs.note("worker runs")
            await service.worker.run()
            tasks.cancel_scope.cancel()
    finally:
        await service.stop()
        logs.flush()
    logs.event("stopped")  # at a clean end alone


async def stop_on_signal(stop: Callable[[], None], *, task_status: TaskStatus[None]) -> None:
    """Wait for a signal, then ask the worker to end. Begun when signals are heard: one that comes right after is no sudden death."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            stop()
            return
