"""A service as its first start makes it, for all examples that need no other."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.docs.blocks import blocks
from tests.harness.processes import ROOT, Running, running


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("examples") / "data", {"SERVICE_BURST_LIMIT": "false"}) as server:
        yield server


def program(name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def command(name: str, server: Running) -> list[str]:
    """The words that a document gives an example, at this server's address."""
    lines = {line for block in blocks("sh") for line in block.text.splitlines() if line.startswith(f"python examples/{name}.py ")}
    [line] = {line for line in lines if "shop/fjord" not in line}
    address = re.sub(r"\$RESELLER_URL|http://127\.0\.0\.1:8000", server.base_url, line)
    return shlex.split(address)[2:]
