"""`reseller serve`: one process with every door open."""

import errno
import os
import shlex
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operations.catalogue import CATALOGUE
from operations.services.demo.organisation import Demo
from registry.catalogue import Selection
from storage.migrate import SchemaMismatch
from storage.starting import wait_for_start
from transports.cli.banner import Started, opened_by
from transports.cli.failure import Failure
from transports.cli.metrics import metrics_of, metrics_socket
from transports.settings import Settings, load_settings

if TYPE_CHECKING:
    from transports.app import Application
    from transports.http.connections import Connections
    from transports.metrics import Served


def serve(
    port: Annotated[int | None, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one. Default 8000.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on. Default 127.0.0.1.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Directory that keeps all state. Default ./data.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the tree, then serve.")] = False,
) -> None:
    """Run the service: API, MCP, docs and, on SQLite, the worker. An empty database gets demo data."""
    from transports.http.serve import MissingPackage, run  # checks for the server's packages before anything needs them

    settings = load_settings(os.environ, env_file=Path(".env"), port=port, host=host, data=data)
    try:
        run(listen(settings, as_json=as_json))
    except (MissingPackage, SchemaMismatch) as wrong:
        raise Failure(str(wrong), exit_code=3) from None


async def listen(settings: Settings, *, as_json: bool) -> None:
    """Bind first, so that the printed address is the real one; then build, then serve until told to stop."""
    from transports.http.serve import bind

    try:
        bound = bind(settings.host, settings.port)
    except OSError as error:
        way = "stop what holds it, or use --port 0" if error.errno == errno.EADDRINUSE else "choose another with --host and --port"
        raise Failure(f"port {settings.port} on {settings.host}: {error.strerror}; {way}") from None
    with bound, metrics_socket(settings) as scraped:
        await serve_on(bound, scraped, settings, as_json=as_json)


async def serve_on(bound: socket.socket, scraped: socket.socket | None, settings: Settings, *, as_json: bool) -> None:
    """The service behind a bound socket, and its metrics behind another."""
    from transports.app import Application
    from transports.cli.local import to_stderr
    from transports.cli.opening_log import OpeningLog, loaded_secrets
    from transports.http.connections import Connections
    from transports.http.deadlines import Deadlines
    from transports.http.serve import make_server, port_of
    from transports.logs import Logs
    from transports.process_log import log_process_output
    from transports.service import build_service

    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    shown = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else host
    opening = OpeningLog()
    await wait_for_start(settings.store_url, opening.early(settings, sys.stderr, to_stderr))
    service = build_service(settings, f"http://{shown}:{port_of(bound)}", report=opening.note)
    secrets = loaded_secrets(settings, service.keyring_text)
    human = settings.log == "auto" and sys.stderr.isatty()
    logs = Logs((lambda lines: None) if settings.log == "off" else sys.stderr.buffer.write, service.clock, secrets=secrets, human=human)
    opening.open(logs)
    log_process_output(logs)
    demos: list[Demo | None] = []
    app = Application(service, logs, started=demos.append)
    deadlines = Deadlines(concurrency=settings.limit_concurrency)

    def ready() -> None:
        print_start(app, demos[0], as_json=as_json)

    connections = Connections(settings.limit_concurrency, settings.connections_per_network, trusted=settings.trusted_proxies)
    served = None if scraped is None else served_by(app, connections)
    async with metrics_of(service, scraped, served):
        always = strict_transport(settings, service.site.base_url)
        server = make_server(
            app,
            deadlines=deadlines,
            ids=service.ids,
            logs=logs,
            ready=ready,
            connections=connections,
            always=always,
            drain=service.readiness.drain,
            drain_seconds=settings.drain,
        )
        await server.serve(sockets=[bound])
        if server.started:  # a start that failed has said so itself
            logs.event("stopped")


def served_by(app: "Application", connections: "Connections") -> "Served":
    """What the metrics read of the server."""
    from transports.metrics import Served  # only where metrics are on: start-up time

    return Served(app.http.large, connections, app.requests, app.http.turns)


def strict_transport(settings: Settings, base_url: str) -> tuple[tuple[str, str], ...]:
    """The header by which browsers never ask over plain HTTP again (RFC 6797), for a year.

    Choice: without includeSubDomains, since the names below ours belong to the operator's other services.
    """
    if settings.env != "production" or not base_url.startswith("https://"):
        return ()
    return (("strict-transport-security", "max-age=31536000"),)


def payments_of(settings: Settings) -> str:
    """Which payment processor it is."""
    if settings.simulates_payments:
        return "simulated in this process, no real money; a real one by SERVICE_PAYMENTS_KEY (`reseller doctor` shows the settings)"
    return settings.payments_url or f"real, {'live' if '_live_' in settings.payments_key.get_secret_value()[:8] else 'test'} mode"


def way_to_new_key(settings: Settings) -> str:
    """The command that makes a key; it needs the directory of a SQLite file alone."""
    where = f" --data {shlex.quote(str(settings.data))}" if settings.embedded else ""
    return f"{shlex.quote(str(Path(sys.executable).with_name('reseller')))} keys create NAME{where}"


def print_start(app: "Application", demo: Demo | None, *, as_json: bool) -> None:
    """Where everything is, for people or for programs."""
    settings, site = app.service.settings, app.service.site
    started = Started(
        site=site,
        database=str(settings.data / "service.db") if settings.embedded else "PostgreSQL",
        mode="production" if settings.env == "production" else "demo" if demo else "development",
        organisation=demo.organisation if demo else None,
        api_key=demo.api_key if demo else None,
        pid=os.getpid(),
        tools=len(CATALOGUE.chosen(Selection())),
        upstream=settings.ocs_url or "simulated in this process; it keeps only what was issued",
        payments=payments_of(settings),
        shop=f"{site.base_url}/shop/{demo.shop}" if demo and demo.shop else None,
        opened=opened_by(settings.host, demo is not None, site.base_url),
        new_key=way_to_new_key(settings),
    )
    sys.stdout.write((started.as_json() if as_json else started.as_tree()) + "\n")
    sys.stdout.flush()
