"""Server processes, one after the other on one port: each is killed, and the next one is forked with its imports done."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from tests.harness.kill_points import Point
from tests.harness.processes import environment, free_port

SERVER_ANSWER_SECONDS = 90.0


class ServerForks:
    """A process with all imports done, which is forked for every server: it serves any number of stages, one at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def order(self, **order: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(order) + b"\n")

    async def line(self) -> str:
        """What it or its server says next."""
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def server_forks(place: Path) -> AsyncGenerator[ServerForks]:
    """It ends with its input, and a server with it: no process is left behind."""
    with (place / "forks.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tests.harness.forked_server"),
            cwd=place,
            env=environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield ServerForks(process)
    finally:
        process.stdin.close()
        await process.stdout.read()
        await process.wait()


class Servers:
    def __init__(self, forks: ServerForks, place: Path, clock: Path, settings: Mapping[str, str]) -> None:
        self._forks, self._place, self._clock, self._settings = forks, place, clock, settings
        self._log = place / "servers.log"
        self.port = free_port()
        self._pid: int | None = None
        self._started = 0
        self._settled = ""
        """What it said last of its chores: it may have done them before it listened."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def number(self) -> int:
        """Which one runs, or ran last; the first is 1."""
        return self._started

    async def start(self, point: Point | None = None, *, settles: bool = True) -> None:
        """The next one, which dies at a point where one is given; returns when it listens. `settles`: it does the chores of the ledger."""
        assert self._pid is None
        self._settled = ""
        self._started += 1
        self._forks.order(
            place=str(self._place),
            log=str(self._log),
            clock=str(self._clock),
            settings=self._settings,
            port=self.port,
            point=point and list(point),
            settles=settles,
        )
        self._pid = int((await self._hear("pid ")).split()[1])
        await self._hear("ready")

    async def settled(self, ahead: float) -> None:
        """Until it has done what was due when the clock was moved so far."""
        if self._settled != f"settled {ahead}":
            await self._hear(f"settled {ahead}")

    async def kill(self) -> None:
        """End it as the kernel does, unless it has ended itself; it is gone when this returns."""
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)  # harmless where it has just ended: nobody else has its number before the next one starts
            await self.died()

    async def died(self) -> None:
        said = await self._hear("ended ")
        assert said == f"ended {signal.SIGKILL.value}", f"{said}: {self.log[-2000:]}"

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    async def _hear(self, wanted: str) -> str:
        async with asyncio.timeout(SERVER_ANSWER_SECONDS):
            while True:
                line = await self._forks.line()
                ended = line.startswith("ended ")
                if ended:
                    self._pid = None
                if line.startswith("settled "):
                    self._settled = line
                if line.startswith(wanted):
                    return line
                assert line and not ended, f"{line} instead of {wanted}: {self.log[-2000:]}"
