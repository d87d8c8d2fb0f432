"""The processes of one engine: the database, a network, a payment processor, the servers, and on PostgreSQL a worker."""

import signal
import subprocess
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from benchmarks.contestant import await_health, free_port
from benchmarks.postgres import database as postgres_database
from storage.engine.migrate import upgrade_database
from tests.databases import migrated_sqlite
from tests.harness.killable_servers import server_forks
from tests.harness.network_process import FRESH, NetworkProcess, network_process
from tests.harness.processes import COMMAND, environment
from tests.harness.tenant_stage import TenantStage, server_settings, tenant_stage_on
from transports.payments import PAYMENTS_WEBHOOK_PATH, SIMULATED_PROCESSOR_CLIENT, SIMULATED_PROCESSOR_KEY

Engine = Literal["sqlite", "postgres"]
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
SERVERS = {"sqlite": 1, "postgres": 2}
HOOKS_SECRET = "whsec_c2ltdWxhdGVkIHBheW1lbnQgcHJvY2Vzc29y"
LONGEST_STOP = 30.0


@dataclass(slots=True)
class ServiceProcesses:
    engine: Engine
    place: Path
    stage: TenantStage
    processor: httpx.AsyncClient
    processor_pid: int
    ports: list[int]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict[str, "subprocess.Popen[bytes]"])

    @property
    def network(self) -> NetworkProcess:
        return self.stage.network

    def pids(self) -> dict[str, int]:
        """Of the service's own processes, by name."""
        return {name: process.pid for name, process in self.processes.items()}

    def stop(self) -> list[str]:
        """End the service as a supervisor does; what did not end as it should."""
        broken: list[str] = []
        for name, process in self.processes.items():
            process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(LONGEST_STOP)
            except subprocess.TimeoutExpired:
                broken.append(f"{name} did not end within {LONGEST_STOP:.0f} s of SIGTERM")
                process.kill()
                process.wait()
                continue
            broken += [f"{name} ended with {code}"] if code else []
        self.processes.clear()
        return broken

    def complaints(self) -> list[str]:
        """What the service said of faults of its own."""
        found: list[str] = []
        for log in sorted(self.place.glob("*/log")):
            lines = log.read_text(errors="replace").splitlines()
            found += [f"{log.parent.name}: {line[:300]}" for line in lines if "Traceback" in line or '"level":"error"' in line]
        return found


@contextmanager
def reseller_process(
    words: Sequence[str], folder: Path, settings: Mapping[str, str], program: Sequence[str] = COMMAND
) -> "Generator[subprocess.Popen[bytes]]":
    """`reseller` with these words, and its log in a folder of its own; it is gone when the block ends. `program`: another `reseller`."""
    folder.mkdir()
    with (folder / "log").open("ab") as complaints, (folder / "out").open("wb") as told:
        running = subprocess.Popen(
            [*program, *words], cwd=folder, env=environment(settings), stdin=subprocess.DEVNULL, stdout=told, stderr=complaints
        )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
            running.wait()


def payment_settings(port: int) -> Mapping[str, str]:
    """The settings of a service whose processor is simulated in a process of its own."""
    address = f"http://127.0.0.1:{port}"
    return {
        "SERVICE_PAYMENTS_KEY": SIMULATED_PROCESSOR_KEY,
        "SERVICE_PAYMENTS_WEBHOOK_SECRET": HOOKS_SECRET,
        "SERVICE_PAYMENTS_URL": address,
        "SERVICE_PAYMENTS_CONNECT_URL": address,
        "SERVICE_PAYMENTS_CLIENT_ID": SIMULATED_PROCESSOR_CLIENT,
    }


@contextmanager
def database(engine: Engine, place: Path) -> Generator[str | None]:
    """The address of a database at HEAD that keeps its commits; nothing where there is no PostgreSQL."""
    if engine == "sqlite":
        yield migrated_sqlite(place)
        return
    with postgres_database() as url:
        if url is not None:
            upgrade_database(url)
        yield url


@asynccontextmanager
async def open_processes(engine: Engine, place: Path, lines: int) -> AsyncGenerator[ServiceProcesses | None]:
    """All but the service, which `serve` starts; nothing without a database."""
    with database(engine, place) as url:
        if url is None:
            yield None
            return
        async with open_processes_on(engine, url, place, lines, [free_port() for _ in range(SERVERS[engine])]) as house:
            yield house


@asynccontextmanager
async def open_processes_on(
    engine: Engine,
    url: str,
    place: Path,
    lines: int,
    ports: list[int],
    *,
    events_to: str | None = None,
    trusting: Mapping[str, str] | None = None,
) -> AsyncGenerator[ServiceProcesses]:
    """The same on a database at HEAD that somebody else made, with `ports` for the servers.

    `events_to`: where the processor sends its events, else to the first server; `trusting`: its settings, where that is https.
    """
    async with AsyncExitStack() as stack:
        paid = free_port()
        upstream = await stack.enter_async_context(network_process(place, lines=lines))
        born_by = await stack.enter_async_context(server_forks(place))
        stage = await stack.enter_async_context(tenant_stage_on(url, place, upstream, born_by, settings=payment_settings(paid)))
        stage.servers.port = ports[0]  # those that come when all is over, for the processor's events
        events = (events_to or f"http://127.0.0.1:{ports[0]}") + PAYMENTS_WEBHOOK_PATH
        words = ("sandbox", "payments", "--port", str(paid), "--webhook-url", events)
        running = stack.enter_context(reseller_process(words, place / "processor", trusting or {}))
        processor = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{paid}", timeout=60, verify=False, limits=FRESH)
        )
        await answering(processor, running)
        yield ServiceProcesses(engine, place, stage, processor, running.pid, ports)


async def answering(processor: httpx.AsyncClient, running: "subprocess.Popen[bytes]") -> None:
    while running.poll() is None:
        with suppress(httpx.TransportError):
            await processor.get("/control")
            return
    raise SystemExit("the simulated payment processor did not start")


@contextmanager
def serving_processes(house: ServiceProcesses, paid: int) -> Generator[None]:
    """The service itself, as whoever runs it starts it."""
    settings = {**server_settings(house.place, house.network, house.stage.url), **payment_settings(paid), "SERVICE_OCS_CONCURRENCY": "16"}
    with ExitStack() as stack:
        for number, port in enumerate(house.ports):
            name = f"server {number + 1}" if len(house.ports) > 1 else "server"
            folder = house.place / name
            running = stack.enter_context(reseller_process(("serve", "--port", str(port)), folder, settings))
            await_health(port, running, folder)
            house.processes[name] = running
        if house.engine == "postgres":
            house.processes["worker"] = stack.enter_context(reseller_process(("worker",), house.place / "worker", settings))
        yield
