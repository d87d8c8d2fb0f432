"""Every command and snippet of the documents, run as a reader runs it: by a shell, against a server of this machine."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.ports import Site
from tests.databases import NO_POSTGRES, postgres_url
from tests.docs.blocks import ROOT, Block, blocks, every_block
from tests.running import Running, running
from transports.cli.banner import curl, mcp_block

ADDRESS = "http://127.0.0.1:8000"
HOOK = "127.0.0.1:8080"
POSTGRES = "postgresql://reseller@127.0.0.1/reseller"

NOT_RUN = {  # each with what must exist for it, and the reason
    "python3 ./run serve\npython3 ./run test\n": (["run"], "starts what this test is part of; tests/cli starts `serve`"),
    "python3 ./run test\npython3 ./run test tests/docs -k settings\n.ci/run\n": (["run", ".ci/run"], "starts what this test is part of"),
    "python3 ./run test --inline-snapshot=fix\n": (["run", "tests/contract/test_snapshots.py"], "rewrites tests"),
    "python3 ./run bench\npython3 ./run bench --render\n": (["run", "benchmarks/__main__.py"], "takes minutes"),
    "reseller serve\nreseller worker\n": (["transports/cli/worker.py"], "tests/cli runs both"),
    "uv pip compile": (["requirements.in", "requirements-dev.in", "requirements-bench.in", "requirements-boot.txt"], "needs the network"),
}
POSTGRES_BLOCK = f"export SERVICE_DATABASE_URL={POSTGRES}"
WEBHOOK_BLOCK = "secret=$(reseller call"
SHELL = blocks("sh")


def unrun(block: Block) -> list[str]:
    return [start for start in NOT_RUN if block.text.startswith(start)]


RUN = [block for block in SHELL if not unrun(block) and not block.text.startswith((POSTGRES_BLOCK, WEBHOOK_BLOCK))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout to play in: examples and tests are the real ones, what commands write stays here."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("examples", "registry", "operations", "storage", "clients", "transports"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Running]:
    with running(place / "data", {"SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8"}) as server:
        yield server


def shell(place: Path, text: str, **environment: str) -> subprocess.Popen[str]:
    """A shell of a reader who has followed the README so far, in a process group of its own."""
    path = f"{place / '.venv' / 'bin'}:{os.environ['PATH']}"
    given = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "SERVICE_PORT": "0", **environment}
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


def find(start: str) -> str:
    [block] = [block for block in SHELL if block.text.startswith(start)]
    return block.text


@pytest.mark.parametrize("block", RUN, ids=lambda block: f"{block.document}:{block.text.split(chr(10))[0][:50]}")
def test_a_shell_block_runs_as_it_is_written(block: Block, place: Path, server: Running) -> None:
    done(place, block.text.replace(ADDRESS, server.base_url), **as_reader(server))


def test_the_first_curl_issues_a_test_esim_and_is_the_one_that_serve_prints(place: Path, server: Running) -> None:
    text = find("curl")
    site = Site(base_url=ADDRESS, upgrade_url="", connect_url="", docs_url="", mcp_url=f"{ADDRESS}/mcp")
    assert shlex.split(text.replace("\\\n", "")) == shlex.split(curl(site, "$RESELLER_API_KEY"))
    intent = json.loads(done(place, text.replace(ADDRESS, server.base_url), **as_reader(server)))
    assert (intent["status"], intent["livemode"]) == ("succeeded", False)
    assert intent["esim"]["activation_code"].startswith("LPA:1$")


def test_the_command_line_repeats_the_curl_and_gets_the_same_esim(place: Path, server: Running) -> None:
    texts = (find("curl"), find("reseller call create_connectivity_intent"))
    first, second = (json.loads(done(place, text.replace(ADDRESS, server.base_url), **as_reader(server))) for text in texts)
    assert first == second


def test_the_python_mcp_client_issues_an_esim(place: Path, server: Running) -> None:
    text = find("python examples/mcp_client.py")
    printed = done(place, text.replace(ADDRESS, server.base_url), **as_reader(server)).splitlines()
    assert printed[0].endswith(" tools")
    assert printed[1].startswith("succeeded: LPA:1$")


def test_the_python_mcp_client_says_what_is_missing(place: Path) -> None:
    process = shell(place, "unset RESELLER_API_KEY; python examples/mcp_client.py")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err == "Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.\n"


def test_the_mcp_block_is_the_one_that_serve_prints() -> None:
    [block] = blocks("json", document="README.md")
    site = Site(base_url=ADDRESS, upgrade_url="", connect_url="", docs_url="", mcp_url=f"{ADDRESS}/mcp")
    assert block.text.strip() == mcp_block(site, "ak_...")


def test_three_lines_show_a_signed_webhook(place: Path, server: Running) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    text = find(WEBHOOK_BLOCK).replace(HOOK, f"127.0.0.1:{port}").replace(" 8080 &", f" {port} &")
    process = shell(place, text + "wait", **as_reader(server))
    assert process.stdout is not None
    try:
        seen = next(line for line in process.stdout if line.startswith("esim.issued evt_"))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=10)
    assert " cni_" in seen


@pytest.mark.postgres
def test_the_postgresql_block_makes_the_tables(place: Path) -> None:
    with postgres_url() as url:
        if url is None:
            pytest.skip(NO_POSTGRES)
        text = find(POSTGRES_BLOCK).replace(POSTGRES, f"'{url}'")
        assert done(place, text).startswith("upgraded to ")


def test_what_is_not_run_is_there_and_still_in_a_document() -> None:
    assert [start for start in NOT_RUN if not any(start in unrun(block) for block in SHELL)] == []
    files = [file for needed, _ in NOT_RUN.values() for file in needed]
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_every_block_is_in_a_language_that_a_test_knows() -> None:
    """sh, python and json are run or compared; text is for people."""
    assert {block.language for block in every_block()} <= {"sh", "python", "json", "text"}
    assert [(block.document, block.language) for block in blocks("python", "json")] == [
        ("README.md", "json"),
        ("CONTRIBUTING.md", "python"),
    ]
