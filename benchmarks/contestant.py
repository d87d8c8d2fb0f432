"""The contestants, and how one of them is started and stopped."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import run_ask
from benchmarks.names import FASTMCP, HANDWRITTEN, HTTPX, HTTPX_TUNED, LOWLEVEL, OURS, PROXY, TUNED, TUTORIAL, UPSTREAM
from benchmarks.requests import MODERN, create, tools_list

ROOT = Path(__file__).resolve().parent.parent
RIVALS = {
    HANDWRITTEN: "handwritten",
    TUNED: "fastapi_tuned",
    TUTORIAL: "fastapi_tutorial",
    LOWLEVEL: "mcp_lowlevel",
    FASTMCP: "fastmcp_native",
    UPSTREAM: "upstream",
    PROXY: "bare_proxy",
    HTTPX: "fastapi_httpx",
    HTTPX_TUNED: "fastapi_httpx_tuned",
}
HTTP = (OURS, HANDWRITTEN, TUNED, TUTORIAL)
MCP = (OURS, LOWLEVEL, FASTMCP)
GATEWAYS = (OURS, PROXY, HTTPX_TUNED, HTTPX)
START_SECONDS = 60.0
OCS_TOKEN = "measured"


@dataclass(frozen=True)
class Contestant:
    """A running server."""

    name: str
    port: int
    pid: int
    data: Path


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(name: str, port: int, data: Path) -> list[str]:
    """How a contestant is started."""
    if name == OURS:
        return [sys.executable, "-m", "transports.cli", "serve", "--port", str(port), "--data", str(data), "--json"]
    return [sys.executable, "-m", "benchmarks.rivals", RIVALS[name], "--port", str(port), "--data", str(data)]


def environment(upstream: int | None = None) -> dict[str, str]:
    """The settings of a measurement: no burst limit, log lines as JSON, a demo that does nothing by itself. The quota stays.

    Bytecode is kept, as an installation has it.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_") and name != "PYTHONDONTWRITEBYTECODE"}
    kept |= {"PYTHONPATH": str(ROOT), "SERVICE_BURST_LIMIT": "false", "SERVICE_DEMO_LIFE": "false", "SERVICE_LOG": "json"}
    return kept if upstream is None else kept | wired(upstream)


def wired(port: int) -> dict[str, str]:
    """Where the charging system is, and how many calls it takes at once; the rivals read the same settings."""
    return {"SERVICE_OCS_URL": f"http://127.0.0.1:{port}/v1", "SERVICE_OCS_TOKEN": OCS_TOKEN, "SERVICE_OCS_CONCURRENCY": "64"}


@contextmanager
def started(name: str, data: Path, upstream: int | None = None) -> Generator[Contestant]:
    """A contestant that answers; its log goes to a file beside its database, as the rivals' do. `upstream`: a charging system's port."""
    port = free_port()
    with (data / "log").open("ab") as log, (data / "out").open("wb") as out:
        process = subprocess.Popen(command(name, port, data), cwd=data, env=environment(upstream), stdout=out, stderr=log)
        try:
            await_health(port, process, data)
            yield Contestant(name, port, process.pid, data)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_health(port: int, process: "subprocess.Popen[bytes]", data: Path, *, pause: float = 0.003) -> float:
    """Wait for the first 200 of /health; when it came."""
    deadline = time.perf_counter() + START_SECONDS
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"{process.args} ended with {process.returncode}:\n{(data / 'log').read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                if answer.status == 200:
                    return time.perf_counter()
        except OSError:
            time.sleep(pause)
    raise SystemExit(f"{process.args} did not answer within {START_SECONDS:.0f} s")


@dataclass(frozen=True)
class Seed:
    """A database with one organisation, one key and some intents, made by the service itself and copied for everybody."""

    folder: Path
    key: str
    intents: tuple[str, ...]

    def copy(self, name: str) -> Path:
        """A copy for one contestant."""
        target = self.folder.parent / "".join(letter if letter.isalnum() else "-" for letter in name)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)
        return target


def printed_key(out: Path) -> str:
    """The key in the line that the service prints; it may come a moment after the first answer."""
    deadline = time.perf_counter() + START_SECONDS
    while not out.read_text().endswith("\n"):
        if time.perf_counter() > deadline:
            raise SystemExit(f"the service printed no line of JSON; its log ends with\n{(out.parent / 'log').read_text()[-2000:]}")
        time.sleep(0.01)
    return str(json.loads(out.read_text())["api_key"])


def sow(folder: Path, intents: int) -> Seed:
    """Start the service on an empty folder, issue some eSIMs, write down its tools, stop it."""
    folder.mkdir()
    with started(OURS, folder) as ours:
        key = printed_key(folder / "out")
        post = create(key)
        ids = tuple(json.loads(run_ask(ours.port, post()).body)["id"] for _ in range(intents))
        listed = json.loads(run_ask(ours.port, tools_list(key, MODERN)).body)
        (folder / "tools.json").write_text(json.dumps(listed["result"]["tools"]))
    with closing(sqlite3.connect(folder / "service.db")) as database:  # else the account would end where a real upstream begins
        database.execute("update organisation set simulated = 0")
        database.commit()
    return Seed(folder, key, ids)
