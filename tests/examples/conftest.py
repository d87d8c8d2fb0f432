"""A service as its first start makes it, for all examples that need no other."""

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

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


def ended(name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What an example says that ends early. It runs in this process, which saves its imports; what starts others is a `program`."""
    out, err, code = io.StringIO(), io.StringIO(), None
    argv, settings = patch.object(sys, "argv", [name, *words]), patch.dict(os.environ, environment)
    with settings, argv, redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        except SystemExit as exit:
            code = exit.code
    if isinstance(code, str):  # as the interpreter ends
        return subprocess.CompletedProcess(name, 1, out.getvalue(), f"{err.getvalue()}{code}\n")
    return subprocess.CompletedProcess(name, code or 0, out.getvalue(), err.getvalue())


def command(name: str, server: Running) -> list[str]:
    """The words that a document gives an example, at this server's address."""
    lines = {line for block in blocks("sh") for line in block.text.splitlines() if line.startswith(f"python examples/{name}.py ")}
    [line] = {line for line in lines if "shop/fjord" not in line}
    address = re.sub(r"\$RESELLER_URL|http://127\.0\.0\.1:8000", server.base_url, line)
    return shlex.split(address)[2:]
