"""The wheel, built without the network, has all that the service reads, and serves from it alone."""

import email
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import httpx
import pytest

from tests.harness.processes import ROOT, Child
from tests.replicas.next_release import take_compiled
from transports.version import VERSION

pytestmark = pytest.mark.long

ROOMS = ("registry", "operations", "transports", "storage", "clients", "simulators")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=60)
    [file] = folder.glob("*.whl")
    with zipfile.ZipFile(file) as found:
        yield found


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return email.message_from_bytes(wheel.read(f"connectivity_reseller-{VERSION}.dist-info/METADATA"))


def test_every_file_of_the_rooms_is_inside_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    """Templates, languages, migrations and styles as well as modules; no test, no database, no bytecode."""
    kept = {path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()}
    kept = {name for name in kept if "__pycache__" not in name}
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert inside == kept
    assert len([name for name in inside if not name.endswith(".py")]) > 40


def test_it_says_what_it_is(wheel: zipfile.ZipFile, metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("connectivity-reseller", VERSION)
    assert PROJECT["version"] == VERSION
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT" and metadata.get_all("License-File") == ["LICENSE"]
    assert set(metadata.get_all("Classifier") or []) == set(PROJECT["classifiers"])
    assert not [line for line in PROJECT["classifiers"] if line.startswith("License")]  # the expression says it
    assert metadata["Description-Content-Type"] == "text/markdown"
    scripts = wheel.read(f"connectivity_reseller-{VERSION}.dist-info/entry_points.txt").decode()
    assert "reseller = transports.cli.main:main" in scripts


def test_it_needs_what_the_service_needs(metadata: Message) -> None:
    needed = [line.partition(" ;")[0].partition(";")[0].replace(" ", "") for line in metadata.get_all("Requires-Dist") or []]
    declared = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["postgres"]]
    assert {name.lower() for name in needed} == {name.lower() for name in declared}
    assert metadata.get_all("Provides-Extra") == ["postgres"]


def test_it_serves_from_its_own_files(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """Unpacked beside the packages that it needs: an eSIM, a shop and the documents."""
    unpacked = tmp_path / "unpacked"
    wheel.extractall(unpacked)
    for file in (path for room in ROOMS for path in (unpacked / room).rglob("*.py")):
        own = ROOT / file.relative_to(unpacked)
        assert file.read_bytes() == own.read_bytes()
        shutil.copystat(own, file)
    take_compiled(unpacked)  # which is as good, since the files are the same
    given = {**os.environ, "PYTHONPATH": str(unpacked), "SERVICE_DATA": str(tmp_path / "data"), "SERVICE_PORT": "0"}
    start = "import transports.cli.main as program; print(program.__file__, flush=True); program.main()"

    words = [sys.executable, "-P", "-c", start, "serve", "--json"]
    with Child(words, cwd=tmp_path, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline().strip() == str(unpacked / "transports" / "cli" / "main.py")
            said = json.loads(server.stdout.readline())
            with httpx.Client(base_url=said["base_url"], headers={"Authorization": f"Bearer {said['api_key']}"}, timeout=60) as http:
                made = http.post("/v1/connectivity/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": "first"})
                assert made.json()["status"] == "succeeded"
                paths = ("/shop/demo", "/docs", "/docs/event-types", "/auth/sign-in", "/llms.txt", "/openapi.json", "/asyncapi.json")
                assert [http.get(path).status_code for path in paths] == [200] * 7
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
    assert server.returncode == 0
