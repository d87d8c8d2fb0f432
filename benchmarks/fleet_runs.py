"""`python -m benchmarks.fleet_runs`: every composite over whole fleets, on a charging system in another process; prints a table.

Cold is the first call of a new process; warm is the same call a minute later, when the answer is not kept any more and the days it was
made of are. Meanwhile /health is asked again and again, since other callers must be answered.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from benchmarks.contestant import ROOT, START_SECONDS, Contestant, Seed, await_health, command, environment, free_port, sow
from benchmarks.names import OURS
from benchmarks.processes import cpu_seconds, machine, memory_mb, peak_mb, restart_peak

TOKEN = "sandbox-7001-token"
COMPOSITES = (
    "fleet_health",
    "marketing_intelligence",
    "churn_risk",
    "detect_usage_anomalies",
    "high_cost_subscribers",
    "audit_network_coverage",
    "optimize_package",
)
KEPT_SECONDS = 61.0
PATIENCE = 300.0
PROBE_PAUSE = 0.02


class Run(NamedTuple):
    """One call of a composite."""

    composite: str
    lines: int
    delay: float
    state: str
    seconds: float
    cpu: float
    calls: int
    before_mb: float
    peak_mb: float
    health_ms: float
    sampled: int
    of: int
    missing: int
    bytes: int


def main() -> None:
    """Measure and print."""
    asked = parse()
    found: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        seed = sow(Path(folder) / "seed", 1)
        for lines in asked.lines:
            with network(lines, asked.history_days) as port:
                for delay in asked.delay:
                    slow(port, delay)
                    found += runs(seed, port, lines, delay, composites(asked.only))
    print(page(found))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_runs", description="Fleet-wide composites on this machine.")
    parser.add_argument("--lines", type=numbers(int), default=[1000, 10_000], help="sizes of the simulated network (1000,10000)")
    parser.add_argument("--delay", type=numbers(float), default=[0.0], help="seconds that every answer of it takes longer (0)")
    parser.add_argument("--history-days", type=int, default=40, help="days of its life before the start (40)")
    parser.add_argument("--only", default=",".join(COMPOSITES), help="some of the composites")
    return parser.parse_args()


def numbers(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Numbers with commas between."""
    return lambda text: [kind(part) for part in text.split(",")]


def composites(only: str) -> list[str]:
    """Those that there are."""
    from operations.catalogue import CATALOGUE

    return [name for name in only.split(",") if name in CATALOGUE.operations]


@contextmanager
def network(lines: int, history_days: int) -> Generator[int]:
    """A simulated charging system of so many lines, and its port."""
    port = free_port()
    words = ["--port", str(port), "--lines", str(lines), "--history-days", str(history_days), "--clock", "frozen"]
    process = subprocess.Popen(
        [sys.executable, "-m", "transports.cli", "sandbox", "ocs", *words], cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL
    )
    try:
        await_network(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def await_network(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Until its history is made."""
    deadline = time.perf_counter() + START_SECONDS * 5
    while time.perf_counter() < deadline and process.poll() is None:
        try:
            ask(f"http://127.0.0.1:{port}/control/state")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"the simulated network did not start: {process.poll()}")


def slow(port: int, delay: float) -> None:
    """Every answer of the network takes so much longer from now on."""
    ask(f"http://127.0.0.1:{port}/control/faults", method="DELETE")
    if delay:
        ask(f"http://127.0.0.1:{port}/control/faults", {"method": "*", "delay": delay, "times": None})


def runs(seed: Seed, port: int, lines: int, delay: float, names: Sequence[str]) -> list[Run]:
    """Each composite in a process of its own, cold one after the other; then, a minute after the last, all of them warm."""
    found: list[Run] = []
    with ExitStack() as stack:
        services = {name: stack.enter_context(service(seed, port, name)) for name in names}
        for state in ("cold", "warm"):
            for name, one in services.items():
                found.append(measured(name, one, seed.key, port, Setting(lines, delay, state)))
                print(found[-1], file=sys.stderr, flush=True)
            if state == "cold":
                time.sleep(KEPT_SECONDS)
    return found


@contextmanager
def service(seed: Seed, upstream: int, name: str) -> Generator[Contestant]:
    """The service on this network; its account is the large one."""
    port, data = free_port(), seed.copy(name)
    with closing(sqlite3.connect(data / "service.db")) as database:
        database.execute("update organisation set simulated = 0")
        database.commit()
    told = {"SERVICE_OCS_URL": f"http://127.0.0.1:{upstream}/v1", "SERVICE_OCS_TOKEN": TOKEN}
    with (data / "log").open("ab") as log, (data / "out").open("wb") as out:
        process = subprocess.Popen(command(OURS, port, data), cwd=data, env={**environment(), **told}, stdout=out, stderr=log)
        try:
            await_health(port, process, data)
            yield Contestant(name, port, process.pid, data)
        finally:
            process.terminate()
            process.wait(20)


class Setting(NamedTuple):
    """Under which circumstances a call is made."""

    lines: int
    delay: float
    state: str


def measured(name: str, one: Contestant, key: str, port: int, setting: Setting) -> Run:
    """One call of a composite."""
    state = f"http://127.0.0.1:{port}/control/state"
    restart_peak(one.pid)
    before, calls, cpu = memory_mb(one.pid, "VmRSS:"), json.loads(ask(state))["calls"], cpu_seconds(one.pid)
    with probing(one.port) as worst:
        begun = time.perf_counter()
        body = ask(f"http://127.0.0.1:{one.port}{path_of(name)}", input_of(name), key=key)
        seconds = time.perf_counter() - begun
    said = json.loads(body)
    return Run(
        name,
        setting.lines,
        setting.delay,
        setting.state,
        round(seconds, 2),
        round(cpu_seconds(one.pid) - cpu, 2),
        json.loads(ask(state))["calls"] - calls,
        round(before, 1),
        round(peak_mb(one.pid), 1),
        round(max(worst, default=0.0) * 1000, 1),
        said["sampled"],
        said["of"],
        (said["incomplete"] or {"lines": 0})["lines"],
        len(body),
    )


def path_of(name: str) -> str:
    """Where a composite is asked."""
    return f"/v1/intelligence/{name.replace('_', '-')}"


def input_of(name: str) -> Mapping[str, object]:
    """The whole fleet; days where they have to be given."""
    if name != "high_cost_subscribers":
        return {}
    last = datetime.now(UTC).date() - timedelta(days=1)
    return {"start": (last - timedelta(days=27)).isoformat(), "end": last.isoformat()}


@contextmanager
def probing(port: int) -> Generator[list[float]]:
    """What /health takes, asked until the other call has its answer."""
    found: list[float] = []
    over = Event()

    def probe() -> None:
        while not over.wait(PROBE_PAUSE):
            begun = time.perf_counter()
            ask(f"http://127.0.0.1:{port}/health")
            found.append(time.perf_counter() - begun)

    thread = Thread(target=probe)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def ask(url: str, body: Mapping[str, object] | None = None, *, key: str = "", method: str | None = None) -> bytes:
    """One request."""
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    content = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, content, headers, method=method), timeout=PATIENCE) as answer:
        return answer.read()


def page(found: Sequence[Run]) -> str:
    """The runs as a table, and how they grow."""
    rows = [
        machine(),
        "",
        "| Composite | Lines | Delay | State | s | CPU s | Calls | Peak MB | Added MB | /health ms | Read | Missing | Bytes |",
    ]
    rows.append("|---" * 13 + "|")
    for run in found:
        cells = (
            run.composite,
            f"{run.of:,}",
            f"{run.delay * 1000:g} ms",
            run.state,
            f"{run.seconds:.2f}",
            f"{run.cpu:.2f}",
            f"{run.calls:,}",
            f"{run.peak_mb:.0f}",
            f"{run.peak_mb - run.before_mb:.0f}",
            f"{run.health_ms:.0f}",
            f"{run.sampled:,}",
            f"{run.missing:,}",
            f"{run.bytes:,}",
        )
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join([*rows, "", *grown(found)])


def grown(found: Sequence[Run]) -> list[str]:
    """By how much more time, calls and memory the largest fleet takes than the smallest."""
    rows: list[str] = []
    for key in dict.fromkeys((run.composite, run.delay, run.state) for run in found):
        same = sorted((run for run in found if (run.composite, run.delay, run.state) == key), key=lambda run: run.lines)
        if len(same) > 1:
            small, large = same[0], same[-1]
            figures = (
                ("lines", ratio(large.of, small.of)),
                ("time", ratio(large.seconds, small.seconds)),
                ("calls", ratio(large.calls, small.calls)),
                ("added memory", ratio(large.peak_mb - large.before_mb, small.peak_mb - small.before_mb)),
            )
            rows.append(f"{key[0]} {key[2]}: " + ", ".join(f"{name} x{value:.1f}" for name, value in figures))
    return rows


def ratio(large: float, small: float) -> float:
    """How many times as much."""
    return large / small if small else 0.0


if __name__ == "__main__":
    main()
