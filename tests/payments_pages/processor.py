"""`reseller sandbox payments` as a process, for as long as a test needs it."""

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
def processor(place: Path, *words: str) -> Generator[tuple[httpx.Client, str]]:
    """The server under way, and all that it printed before its first request."""
    command = [reseller(), "sandbox", "payments", "--port", "0", *words]
    with Child(command, cwd=place, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "GET /control/calls" not in said:
                line = process.stdout.readline()
                assert line, process.stderr.read() if process.stderr else ""
                said += line
            address = re.search(r"http://127\.0\.0\.1:\d+", said)
            key = re.search(r"SERVICE_PAYMENTS_KEY=(\S+)", said)
            assert address and key
            with httpx.Client(base_url=address[0], headers={"Authorization": f"Bearer {key[1]}"}, timeout=60) as http:
                yield http, said
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
