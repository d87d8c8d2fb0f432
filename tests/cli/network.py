"""`reseller sandbox ocs` as a process, for as long as a test needs it."""

import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.harness.fork_server import reseller
from tests.harness.processes import Child, environment


@contextmanager
def network(place: Path, *words: str) -> Generator[tuple[httpx.Client, str]]:
    command = [reseller(), "sandbox", "ocs", "--port", "0", "--lines", "40", "--history-days", "0", *words]
    with Child(command, cwd=place, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "GET /control/networks" not in said:
                line = process.stdout.readline()
                assert line, process.stderr.read() if process.stderr else ""
                said += line
            address = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert address
            with httpx.Client(base_url=address[0]) as http:
                yield http, said
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
