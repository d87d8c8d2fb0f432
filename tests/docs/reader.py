"""Somebody who follows the documents in a shell."""

import os
import subprocess
from pathlib import Path

from tests.docs.blocks import Block, blocks
from tests.nursery import reseller
from tests.running import Running

ADDRESS = "http://127.0.0.1:8000"


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
    """Run to the end; what it printed."""
    process = shell(place, text, **environment)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, f"{text}\n{out}\n{err}"
    return out


def as_reader(server: Running) -> dict[str, str]:
    return {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}


def find(start: str, document: str = "README.md") -> str:
    """The one block of a document that begins so."""
    [block] = [block for block in blocks("sh", document=document) if block.text.startswith(start)]
    return block.text


def others(document: str, *starts: str) -> list[Block]:
    """The shell blocks of a document that begin otherwise; each start is there."""
    found = blocks("sh", document=document)
    assert [start for start in starts if not any(block.text.startswith(start) for block in found)] == []
    return [block for block in found if not block.text.startswith(starts)]
