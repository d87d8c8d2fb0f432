"""Server processes, one after the other on one port: each is killed, and the next one is forked with its imports done."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path

import orjson

from tests.cli.reseller import environment
from tests.kill.trap import Point

LONGEST = 30.0


def free_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Servers:
    """The one that runs, and the nursery that bears it."""

    def __init__(self, place: Path, clock: Path, settings: Mapping[str, str]) -> None:
        self._place, self._clock, self._settings = place, clock, settings
        self.port = free_port()
        self._nursery: Process | None = None
        self._pid: int | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self, point: Point | None = None, *, settles: bool = True) -> None:
        """The next one, which dies at a point where one is given; returns when it listens. `settles`: it does the chores of the ledger."""
        nursery = self._nursery = self._nursery or await self._spawn()
        assert nursery.stdin is not None and self._pid is None
        nursery.stdin.write(orjson.dumps({"port": self.port, "point": point and list(point), "settles": settles}) + b"\n")
        self._pid = int((await self._hear("pid ")).split()[1])
        await self._hear("ready")

    async def settled(self, ahead: float) -> None:
        """Until it has done what was due when the clock was moved so far."""
        await self._hear(f"settled {ahead}")

    async def kill(self) -> None:
        """End it as the kernel does, unless it has ended itself; it is gone when this returns."""
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)  # harmless where it has just ended: nobody else has its number before the next one starts
            await self.died()

    async def died(self) -> None:
        """Until it has ended."""
        said = await self._hear("ended ")
        self._pid = None
        assert said == f"ended {signal.SIGKILL.value}", f"{said}: {self.log[-2000:]}"

    @property
    def log(self) -> str:
        """What they said."""
        return (self._place / "servers.log").read_text()

    async def aclose(self) -> None:
        """Leave no process behind: the nursery ends with its input, and a server with it."""
        nursery, self._nursery = self._nursery, None
        if nursery is not None:
            assert nursery.stdin is not None and nursery.stdout is not None
            nursery.stdin.close()
            await nursery.stdout.read()
            await nursery.wait()

    async def _spawn(self) -> Process:
        with (self._place / "servers.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", "-m", "tests.kill.server", str(self._clock)),
                cwd=self._place,
                env=environment(self._settings),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )

    async def _hear(self, wanted: str) -> str:
        nursery = self._nursery
        assert nursery is not None and nursery.stdout is not None
        async with asyncio.timeout(LONGEST):
            while not (line := (await nursery.stdout.readline()).decode().strip()).startswith(wanted):
                assert line and not line.startswith("ended"), f"{line} instead of {wanted}: {self.log[-2000:]}"
        return line
