"""A command that follows until it is told to end, as a process, with its output read line by line."""

import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import IO

from tests.harness.fork_server import reseller
from tests.harness.processes import Child, environment

FOLLOWER_SECONDS = 60


class Follower:
    """What it printed so far; a line that does not come within the time fails the test."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None and process.stderr is not None
        self._out, self._err = gathering(process.stdout), gathering(process.stderr)

    def line(self) -> str:
        return self._out.get(timeout=FOLLOWER_SECONDS)

    def told(self, part: str) -> str:
        """The next thing that it says beside, which has `part` in it."""
        said = self._err.get(timeout=FOLLOWER_SECONDS)
        assert part in said, said
        return said

    def ended(self) -> tuple[int, list[str]]:
        code = self.process.wait(FOLLOWER_SECONDS)
        return code, rest(self._out)

    def interrupted(self) -> tuple[int, list[str]]:
        self.process.send_signal(signal.SIGINT)
        return self.ended()


def gathering(stream: IO[str]) -> "Queue[str]":
    """The lines of a stream as they come, and an empty one at its end."""
    lines: Queue[str] = Queue()

    def gather() -> None:
        for line in stream:
            lines.put(line.rstrip("\n"))
        lines.put("")

    Thread(target=gather, daemon=True).start()
    return lines


def rest(lines: "Queue[str]") -> list[str]:
    return list(iter(lambda: lines.get(timeout=FOLLOWER_SECONDS), ""))


def hear_interrupts() -> None:
    """Tests that run in the background of a shell inherit that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def following(*words: str, cwd: Path, **settings: str) -> Generator[Follower]:
    """The command under way; killed when the block ends before it."""
    with Child(
        [reseller(), *words],
        cwd=cwd,
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    ) as process:
        try:
            yield Follower(process)
        finally:
            if process.poll() is None:
                process.kill()
