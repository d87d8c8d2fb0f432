"""`reseller serve` and `reseller worker`: the processes of the service, the metrics beside them, and what `serve` prints."""

import errno
import os
import shlex
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import anyio
import orjson
import typer
from anyio.abc import TaskStatus

from operations.demo import DEMO_EMAIL, Demo
from registry.clock import SystemClock
from registry.ports import Site
from storage.engine.postgres_server import wait_for_start
from transports.app import Application
from transports.cli.terminal import Failure, command_settings, to_stderr
from transports.http.connections import Connections, Deadlines
from transports.http.server import (
    MissingPackage,
    bind_socket,
    freeze_memory,
    listen_to_libraries,
    make_http_server,
    run_on_uvloop,
    socket_port,
)
from transports.log_output import LogOutput, unbuffered_stderr
from transports.logs import Logs, LogWrite, OpeningLog, loaded_secrets, log_process_output
from transports.metrics import HttpServerState, Metrics, listen_for_scrapes
from transports.service import Service, build_service
from transports.settings import Settings
from transports.signals import LoopDelay, ProcessSignals
from transports.worker.chores import keep_running

ALL_ADDRESSES = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class StartBanner:
    """What `serve` prints once it listens: a tree for people, or one line of JSON for programs."""

    site: Site
    database: str
    mode: Literal["demo", "production", "development"]
    organisation: str | None
    api_key: str | None
    pid: int
    tools: int
    upstream: str
    new_key: str
    """The command that makes another key, as it can be pasted."""
    payments: str = ""
    shop: str | None = None
    """Address of the demo's shop, where it has one."""
    opened: str = ""
    """What a demo opens to other machines, where it listens for them."""
    sign_in_as: str = ""
    """Who signs in on a demo, and where the code is read."""

    def as_json(self) -> str:
        """One line; `api_key` is null when the key was made by an earlier start, since only its digest is kept."""
        return orjson.dumps(
            {
                "base_url": self.site.base_url,
                "mcp_url": self.site.mcp_url,
                "api_key": self.api_key,
                "org_id": self.organisation,
                "database": self.database,
                "upstream": self.upstream,
                "shop_url": self.shop,
                "mode": self.mode,
                "pid": self.pid,
            }
        ).decode()

    @property
    def way_to_a_key(self) -> str:
        """How to get a key when none is shown: only the start that made the demo's organisation shows one."""
        if self.organisation is not None:
            return f"made by an earlier start; a new one: {self.new_key}"
        return f"none is made without demo data; for an organisation (`reseller org create`): {self.new_key} --org ID"

    def _way_in(self) -> tuple[str, str]:
        """Where people begin: the console, or another identity provider's page, since the console is there only without one."""
        base, whom = self.site.base_url, f"  (sign in {self.sign_in_as})" if self.sign_in_as else ""
        own = self.site.sign_in_url.startswith(f"{base}/")
        return ("Console", f"{base}/console{whom}") if own else ("Sign in", self.site.sign_in_url)

    def as_tree(self) -> str:
        """Addresses, database, mode, key, and the two things to do first. People sign in with a browser, so only they are told where."""
        shown = f"{self.api_key}  (shown this once)" if self.api_key else self.way_to_a_key
        mode = {
            "demo": "demo: an organisation to try things with, and no money moves",
            "development": "development",
            "production": "production",
        }[self.mode]
        branches = [
            ("API", self.site.base_url),
            ("MCP", f"{self.site.mcp_url}  ({self.tools} tools)"),
            self._way_in(),
            *([("Shop", self.shop)] if self.shop else []),
            ("Docs", self.site.docs_url),
            ("OpenAPI", f"{self.site.base_url}/openapi.json"),
            ("Database", self.database),
            ("Upstream", self.upstream),
            *([("Payments", self.payments)] if self.payments else []),
            ("Mode", mode),
            ("Key", shown),
            *([("Open", self.opened)] if self.opened else []),
        ]
        lines = ["Connectivity reseller"]
        lines += [f"├─ {name:<9} {value}" for name, value in branches[:-1]]
        lines += [f"└─ {name:<9} {value}" for name, value in branches[-1:]]
        return "\n".join(
            [
                *lines,
                "",
                "Issue a first test eSIM:",
                "",
                first_esim_curl(self.site, self.api_key),
                "",
                "Or let an agent do it, over MCP:",
                "",
                mcp_client_block(self.site, self.api_key or "<API_KEY>"),
            ]
        )


def opened_text(host: str, demo: bool, base_url: str) -> str:
    """What a demo opens, and to whom, if it listens for other machines; else empty."""
    if not demo or is_loopback_host(host):
        return ""
    whom = "every machine that reaches this one" if host in ALL_ADDRESSES else f"every machine that reaches {host}"
    plain = "" if base_url.startswith("https://") else ", unencrypted"
    return (
        f"to {whom}{plain}: the API and MCP to whoever has the key above, sign-up and sign-in to whoever reads the codes in this "
        "terminal, the demo shop and the simulated payment pages, which take any test card, to everybody. For this machine alone: "
        "--host 127.0.0.1"
    )


def sign_in_text(settings: Settings, demo: bool) -> str:
    """Who signs in on a demo, and where the mail with the code goes; empty where the pages are not a demo's."""
    if not demo or not settings.own_identity:
        return ""
    terminal = not settings.smtp_url.get_secret_value()
    return f"as {DEMO_EMAIL}; the code " + ("comes in this terminal, as every mail does" if terminal else "goes to that address by mail")


def is_loopback_host(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    return host in ("localhost", "::1") or (host.startswith("127.") and host.count(".") == 3)


def first_esim_curl(site: Site, key: str | None) -> str:
    """A curl command for a first eSIM; an unknown key is taken from the shell's environment."""
    header = f"'Authorization: Bearer {key}'" if key else '"Authorization: Bearer $RESELLER_API_KEY"'
    return (
        f"curl -s {site.base_url}/v1/connectivity/intents -H {header} "
        "-H 'Idempotency-Key: my-first-esim' -H 'Content-Type: application/json' -d '{\"plan\": \"test_global_1gb\"}'"
    )


def mcp_client_block(site: Site, key: str) -> str:
    server = {"type": "http", "url": site.mcp_url, "headers": {"Authorization": f"Bearer {key}"}}
    return orjson.dumps({"mcpServers": {"connectivity": server}}, option=orjson.OPT_INDENT_2).decode()


@contextmanager
def metrics_socket(settings: Settings) -> Generator[socket.socket | None]:
    """The bound address of the metrics; None when they are off. Raises Failure before anything else starts."""
    host, port = settings.metrics_host, settings.metrics_port
    if port == 0:
        yield None
        return
    try:
        bound = bind_socket(host, port)
    except OSError as error:
        way = "give each process of a machine its own port" if error.errno == errno.EADDRINUSE else "choose another SERVICE_METRICS_HOST"
        raise Failure(f"SERVICE_METRICS_PORT: port {port} on {host}: {error.strerror}; {way}, or 0 for none") from None
    with bound:
        yield bound


@asynccontextmanager
async def metrics_beside(
    service: Service, output: LogOutput, bound: socket.socket | None, served: HttpServerState | None = None
) -> AsyncGenerator[None]:
    """Serves metrics until the block ends. `served`: the HTTP server's state, where the process has one."""
    if bound is None:
        yield
        return
    process = ProcessSignals(service.pipeline.signals, service.pipeline.deps, LoopDelay(service.clock), output)
    metrics = Metrics(service.store, service.clock, service.worker.tally, served, service.systems, process)
    async with process.delay.watched(), listen_for_scrapes(metrics, service.readiness, bound):
        yield


def serve(
    port: Annotated[int | None, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one. Default 8000.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on. Default 127.0.0.1.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Directory that keeps all state. Default ./data.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the tree, then serve.")] = False,
) -> None:
    """Run the service: API, MCP, docs and, on SQLite, the worker. An empty database gets demo data."""
    settings = command_settings(port=port, host=host, data=data)
    try:
        run_on_uvloop(bind_and_serve(settings, as_json=as_json))
    except MissingPackage as wrong:
        raise Failure(str(wrong), exit_code=3) from None


async def bind_and_serve(settings: Settings, *, as_json: bool) -> None:
    """Binds first, so that the printed address is real; then builds the service and serves until told to stop."""
    try:
        bound = bind_socket(settings.host, settings.port)
    except OSError as error:
        way = "stop what holds it, or use --port 0" if error.errno == errno.EADDRINUSE else "choose another with --host and --port"
        raise Failure(f"port {settings.port} on {settings.host}: {error.strerror}; {way}") from None
    with bound, metrics_socket(settings) as scraped:
        await serve_on(bound, scraped, settings, as_json=as_json)


async def open_service(
    settings: Settings, base_url: str, output: LogOutput, *, write: LogWrite, human: bool, apart: bool
) -> tuple[Service, Logs]:
    """The service of this process once its database answers, not started yet, and its log, which has all that was noted meanwhile."""
    opening = OpeningLog()
    await wait_for_start(settings.store_url, opening.early(settings, output.write, to_stderr))
    service = build_service(settings, base_url, report=opening.note, apart=apart)
    logs = Logs(write, service.clock, secrets=loaded_secrets(settings, service.keyring_text), human=human)
    opening.open(logs)
    log_process_output(logs)
    return service, logs


async def serve_on(bound: socket.socket, scraped: socket.socket | None, settings: Settings, *, as_json: bool) -> None:
    """The service behind a bound socket, and its metrics behind another."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    shown = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else host
    output = LogOutput(unbuffered_stderr(), SystemClock())
    write: LogWrite = (lambda lines: None) if settings.log == "off" else output.write
    human = settings.log == "auto" and sys.stderr.isatty()
    service, logs = await open_service(settings, f"http://{shown}:{socket_port(bound)}", output, write=write, human=human, apart=False)
    demos: list[Demo | None] = []
    app = Application(service, logs, started=demos.append)
    deadlines = Deadlines(concurrency=settings.limit_concurrency)

    def ready() -> None:
        print_start(app, demos[0], as_json=as_json)

    connections = Connections(settings.limit_concurrency, settings.connections_per_network, trusted=settings.trusted_proxies)
    served = None if scraped is None else HttpServerState(app.http.large, connections, app.requests, app.http.turns)
    async with metrics_beside(service, output, scraped, served):
        always = strict_transport(settings, service.site.base_url)
        server = make_http_server(
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


def strict_transport(settings: Settings, base_url: str) -> tuple[tuple[str, str], ...]:
    """The header by which browsers never ask over plain HTTP again (RFC 6797), for a year.

    Choice: without includeSubDomains, since the names below ours belong to the operator's other services.
    """
    if settings.env != "production" or not base_url.startswith("https://"):
        return ()
    return (("strict-transport-security", "max-age=31536000"),)


def payments_text(settings: Settings) -> str:
    if settings.simulates_payments:
        return "simulated in this process, no real money; a real one by SERVICE_PAYMENTS_KEY (`reseller doctor` shows the settings)"
    return settings.payments_url or f"real, {'live' if '_live_' in settings.payments_key.get_secret_value()[:8] else 'test'} mode"


def new_key_command(settings: Settings) -> str:
    """The command that makes a key; it needs the directory of a SQLite file alone."""
    where = f" --data {shlex.quote(str(settings.data))}" if settings.embedded else ""
    return f"{shlex.quote(str(Path(sys.executable).with_name('reseller')))} keys create NAME{where}"


def print_start(app: Application, demo: Demo | None, *, as_json: bool) -> None:
    settings, site = app.service.settings, app.service.site
    started = StartBanner(
        site=site,
        database=str(settings.data / "service.db") if settings.embedded else "PostgreSQL",
        mode="production" if settings.env == "production" else "demo" if demo else "development",
        organisation=demo.organisation if demo else None,
        api_key=demo.api_key if demo else None,
        pid=os.getpid(),
        tools=len(app.service.pipeline.catalogue.chosen()),
        upstream=settings.ocs_url or "simulated in this process; it keeps only what was issued",
        payments=payments_text(settings),
        shop=f"{site.base_url}/shop/{demo.shop}" if demo and demo.shop else None,
        sign_in_as=sign_in_text(settings, demo is not None),
        opened=opened_text(settings.host, demo is not None, site.base_url),
        new_key=new_key_command(settings),
    )
    sys.stdout.write((started.as_json() if as_json else started.as_tree()) + "\n")
    sys.stdout.flush()


def worker(data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None) -> None:
    """Deliver webhooks and do the chores beside it, until stopped."""
    settings = command_settings(data=data)
    with metrics_socket(settings) as scraped:
        run_on_uvloop(run_worker(settings, scraped))


async def run_worker(settings: Settings, scraped: socket.socket | None) -> None:
    """Runs one worker; on SIGTERM and SIGINT it finishes the deliveries under way."""
    output = LogOutput(unbuffered_stderr(), SystemClock())
    human = sys.stderr.isatty()
    service, logs = await open_service(settings, "http://127.0.0.1:8000", output, write=output.write, human=human, apart=True)
    listen_to_libraries(logs)
    await service.start(seed=False)
    await service.readiness.look()
    freeze_memory()

    def stop() -> None:
        service.readiness.drain()
        service.worker.stop()

    try:
        async with metrics_beside(service, output, scraped), anyio.create_task_group() as tasks:
            tasks.start_soon(keep_running, "the writing of buffered rows", service.write_buffers, service.report)
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
    """Waits for a signal, then calls `stop`. Started only when signals are handled, so that an early one does not kill the process."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            stop()
            return
