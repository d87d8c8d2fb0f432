"""Somebody who follows the documents in a shell."""

import os
import subprocess
from pathlib import Path

from tests.docs.blocks import Block, blocks
from tests.harness.fork_server import reseller
from tests.harness.processes import Running

ADDRESS = "http://127.0.0.1:8000"
NOT_RUN = {  # the blocks of README and CONTRIBUTING that no test runs, each with what must exist for it, and the reason
    "python3 ./run serve\npython3 ./run test\n": (["run"], "starts what this test is part of; tests/cli starts `serve`"),
    "python3 ./run test\npython3 ./run test --whole\npython3 ./run test tests/docs -k settings\n.ci/run\n": (
        ["run", ".ci/run"],
        "starts what this test is part of",
    ),
    "python3 ./run test --inline-snapshot=fix\n": (
        ["run", "tests/contract/test_declarations.py", "tests/contract/test_outcomes.py", "tests/contract/test_identities.py"],
        "rewrites tests",
    ),
    "python3 ./run bench\npython3 ./run bench --render\n": (["run", "benchmarks/__main__.py"], "takes minutes"),
    "python3 ./run simulate": (["run", "tests/simulation/main.py"], "takes minutes; tests/simulation runs some"),
    "python3 ./run kill": (["run", "tests/kill/main.py"], "takes many minutes; tests/kill runs some"),
    "python3 ./run trial --write": (["run", "tests/trial/main.py"], "takes a quarter of an hour, and needs nginx"),
    "python3 ./run prove --part simulation": (["run", "tests/trial/prove.py"], "takes hours"),
    "python3 ./run fuzz loop": (["run", "tests/fuzz/loop.py"], "takes minutes, and says something on a quiet machine alone"),
    "python -m tests.docs.pictures\n": (["tests/docs/pictures.py"], "needs a browser, and what it makes differs with the day"),
    "uv pip compile": (["requirements.in", "requirements-dev.in", "requirements-bench.in", "requirements-boot.txt"], "needs the network"),
}


def shell(place: Path, text: str, **environment: str) -> subprocess.Popen[str]:
    """A shell of a reader who has followed the README so far, in a process group of its own."""
    path = f"{reseller().parent}:{place / '.venv' / 'bin'}:{os.environ['PATH']}"
    given = {**os.environ, "PATH": path, "SERVICE_PORT": "0", **environment}
    return subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=place,
        env=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def done(place: Path, text: str, **environment: str) -> str:
    process = shell(place, text, **environment)
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, f"{text}\n{out}\n{err}"
    return out


def as_reader(server: Running) -> dict[str, str]:
    return {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}


def unrun(block: Block) -> list[str]:
    """Why a block is not run, if it is not: how it begins in that list."""
    return [start for start in NOT_RUN if block.text.startswith(start)]


def find(start: str, document: str = "README.md") -> str:
    """The one block of a document that begins so."""
    [block] = [block for block in blocks("sh", document=document) if block.text.startswith(start)]
    return block.text


def other_blocks(document: str, *starts: str) -> list[Block]:
    """The shell blocks of a document that begin otherwise; each start is there."""
    found = blocks("sh", document=document)
    assert [start for start in starts if not any(block.text.startswith(start) for block in found)] == []
    return [block for block in found if not block.text.startswith(starts)]
