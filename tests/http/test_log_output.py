"""Where the log's lines go: at once, in their order, and without holding up a call, whoever reads them or does not."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import orjson
import pytest

from tests.databases import migrated_sqlite
from tests.harness.cluster import free_port
from tests.harness.processes import ROOT, environment
from tests.world import SettableClock
from transports.log_output import LogOutput

CALLS = 600
"""Their lines are more than the 64 KiB that a pipe holds (man 7 pipe)."""


class SaidServer:
    """A server whose standard error is a pipe of the test's, or a file."""

    def __init__(self, process: "subprocess.Popen[bytes]", metrics: str) -> None:
        assert process.stdout is not None
        said = orjson.loads(process.stdout.readline())
        self.process, self.metrics = process, metrics
        self.http = httpx.Client(base_url=said["base_url"], headers={"Authorization": f"Bearer {said['api_key']}"}, timeout=60)

    def call(self) -> None:
        """One that asks nobody outside."""
        said = self.http.get("/v1/connectivity/intents")
        assert said.status_code == 200, said.text

    def await_lines(self, count: int) -> None:
        """Read the log until so many calls stand there; others speak, too."""
        assert self.process.stderr is not None
        while count:
            count -= orjson.loads(self.process.stderr.readline()).get("operation") == "list_connectivity_intents"

    def lost(self) -> float:
        text = httpx.get(self.metrics).text
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("reseller_log_lines_lost_total"))


@contextmanager
def said_server(folder: Path, stderr: "int | IO[bytes]") -> Generator[SaidServer]:
    """As Python starts it where nobody has set PYTHONUNBUFFERED."""
    port, data = free_port(), folder / "data"
    data.mkdir()
    migrated_sqlite(data)
    told = environment({"SERVICE_METRICS_PORT": str(port), "SERVICE_BURST_LIMIT": "false"})
    told.pop("PYTHONUNBUFFERED", None)
    words = [sys.executable, "-P", "-m", "transports.cli", "serve", "--port", "0", "--data", str(data), "--json"]
    process = subprocess.Popen(words, cwd=ROOT, env=told, stdout=subprocess.PIPE, stderr=stderr)
    try:
        server = SaidServer(process, f"http://127.0.0.1:{port}/metrics")
        with server.http:
            yield server
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_a_line_is_there_half_a_second_after_its_call_and_a_log_that_nobody_reads_holds_up_no_call(tmp_path: Path) -> None:
    with said_server(tmp_path, subprocess.PIPE) as server:
        server.call()
        server.await_lines(1)
        for _ in range(CALLS):
            server.call()
        server.await_lines(CALLS)
        assert server.lost() == 0


@pytest.mark.long
def test_a_server_whose_log_cannot_be_written_answers_and_counts_the_lines(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full, said_server(tmp_path, full) as server:
        for _ in range(3):
            server.call()
        ends = time.monotonic() + 60
        while server.lost() < 3 and time.monotonic() < ends:
            time.sleep(0.05)
        assert server.lost() >= 3


def lost_lines(found: bytes) -> int:
    """How many lines were lost by what the lines of `log_lost` say, of those that have come whole."""
    return sum(orjson.loads(line)["lines"] for line in found.rpartition(b"\n")[0].splitlines() if line.startswith(b"{"))


def test_lines_beyond_what_may_wait_are_lost_and_told_when_somebody_reads_again() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as reader, os.fdopen(writing, "wb", buffering=0) as stream:
        output, line = LogOutput(stream, SettableClock(), most_bytes=100_000), b"x" * 999 + b"\n"
        for _ in range(400):
            output.write(line)
        assert output.lost >= 400 - 100 - 66
        lost, found = output.lost, b""
        while not found.endswith(b"\n") or lost_lines(found) < lost or found.count(line) < 400 - lost:
            found += reader.read(65_536)
        told = [orjson.loads(each) for each in found.splitlines() if not each.startswith(b"x")]
        assert told == [
            {"time": "2027-01-15T12:00:00.000Z", "level": "warning", "kind": "log_lost", "lines": each["lines"]} for each in told
        ]
        assert (sum(each["lines"] for each in told), found.count(line)) == (lost, 400 - lost)
        output.write(b"the last one\n")
        output.close()
        assert reader.read(100) == b"the last one\n"
        output.write(b"too late\n")
        assert output.lost == lost + 1


def test_a_pipe_that_does_not_block_loses_no_line() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with os.fdopen(reading, "rb", buffering=0) as reader, os.fdopen(writing, "wb", buffering=0) as stream:
        output, found = LogOutput(stream, SettableClock()), b""
        for number in range(30):
            output.write(b"%d" % (number % 10) * 9_999 + b"\n")
        while found.count(b"\n") < 30:
            found += reader.read(65_536)
        output.close()
    assert [line[:1] for line in found.splitlines()] == [b"%d" % (number % 10) for number in range(30)] and output.lost == 0
