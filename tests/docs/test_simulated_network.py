"""Every command of the page on the simulated network: it is a server of its own, and a service is set up against it."""

import os
import re
import signal
import socket
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from simulators.network.control import NETWORK_CONTROL_PATHS
from simulators.network.faults import FAULT_KINDS
from tests.docs.blocks import blocks
from tests.docs.conftest import BRIDGE_SECRET
from tests.docs.reader import ADDRESS, as_reader, done, find, shell
from tests.harness.processes import ROOT, Running, running

pytestmark = pytest.mark.long

PAGE = "simulated-network.md"
NETWORK = "http://127.0.0.1:8090"
STARTS = ("reseller sandbox ocs", "export SERVICE_OCS_URL", "reseller org list", "line=", "curl -s $SANDBOX/control/faults")


class Pair(NamedTuple):
    service: Running
    network: str


@pytest.fixture(scope="module")
def pair(place: Path) -> Iterator[Pair]:
    """Started as the page says, on ports that are free."""
    network = f"http://127.0.0.1:{port_of_a_run()}"
    chosen = dict(re.findall(r"(SERVICE_\w+)=(\S+)", find(STARTS[1], PAGE).replace(NETWORK, network)))
    assert chosen == {"SERVICE_OCS_URL": f"{network}/v1", "SERVICE_OCS_TOKEN": "sandbox-7001-token"}
    secret = {"SERVICE_BRIDGE_WEBHOOK_SECRET": BRIDGE_SECRET}
    with running(place / "month", {**chosen, **secret}) as service, simulated(place, network, service, secret):
        done(place, find(STARTS[2], PAGE), organisation=service.organisation, SERVICE_DATA="month")
        yield Pair(service, network)


def port_of_a_run() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def simulated(place: Path, network: str, service: Running, secret: dict[str, str]) -> Generator[None]:
    """The command of the page; it listens once it has said where."""
    port = network.rpartition(":")[2]
    text = find(STARTS[0], PAGE).replace(ADDRESS, service.base_url).replace("sandbox ocs", f"sandbox ocs --port {port}")
    process = shell(place, text, **secret)
    assert process.stdout is not None
    try:
        assert next(process.stdout, "").startswith(f"simulated network at {network}/v1 ")
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


def test_the_network_began_a_month_ago_on_every_system(pair: Pair) -> None:
    assert "--start -31d" in find(STARTS[0], PAGE)  # `date` reckons differently from system to system
    now = datetime.fromisoformat(httpx.get(f"{pair.network}/control/state").json()["now"]).replace(tzinfo=UTC)
    assert timedelta(0) <= datetime.now(UTC) - now - timedelta(days=31) < timedelta(minutes=10)


def test_a_month_passes_in_eight_commands(place: Path, pair: Pair) -> None:
    *first, last = find(STARTS[3], PAGE).splitlines()
    assert len(first) == 7
    reader = {**as_reader(pair.service), "SANDBOX": pair.network}
    said = done(place, "\n".join([*first, "echo $line"]), **reader)
    line = said.split()[-1]
    location_is_taken(pair.service, line)
    said += done(place, last, line=line, **reader)
    paid = re.findall(r'"quantity":(\d+),"inPackage":(\d+)', said)
    assert paid == [("1073741824", "1073741824"), ("52428800", "0")]
    assert (said.count('"state": "expired"'), said.count('"state": "running"')) == (4, 1)
    assert re.findall('"country": "(..)"', said) == ["FR", "FR"]  # it came into France, and is there


def location_is_taken(service: Running, line: str) -> None:
    """The network tells the service where the line is in its own time: on a busy machine after the next command."""
    path, ends = f"{service.base_url}/v1/subscribers/{line}/country-history", time.monotonic() + 120
    while not httpx.get(path, headers={"Authorization": f"Bearer {service.api_key}"}).raise_for_status().json()["data"]:
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_faults_are_added_and_taken_away(place: Path, pair: Pair) -> None:
    added = done(place, find(STARTS[4], PAGE), SANDBOX=pair.network)
    assert added.count('"method"') == 4  # one, then three
    assert added.endswith('{"faults":[]}')


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)] == []


def test_the_page_names_every_path_of_the_control_api_and_every_fault() -> None:
    text = (ROOT / "docs" / PAGE).read_text()
    assert {path.split()[1] for path in NETWORK_CONTROL_PATHS} - set(re.findall(r"/control/[a-z-]+", text)) == {"/control"}
    assert [kind for kind in FAULT_KINDS if f"`{kind}`" not in text] == []
