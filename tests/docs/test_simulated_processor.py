"""Every command of the page on the simulated processor: it is a server of its own, and a service is set up against it."""

import os
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, get_args

import httpx
import pytest

from simulators.processor.cards import NAMED_CARDS
from simulators.processor.control import OUTCOME_CARDS, PROCESSOR_CONTROL_PATHS
from simulators.processor.faults import FaultTrouble
from simulators.processor.pages import PROCESSOR_PAGES
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find, shell
from tests.docs.test_simulated_network import port_of_a_run
from tests.harness.processes import ROOT, Running, running

PAGE = "simulated-processor.md"
PROCESSOR = "http://127.0.0.1:8091"
STARTS = ("reseller sandbox payments", "export SERVICE_PAYMENTS_URL", "account=", "curl -s $PROCESSOR/control/faults")


class Pair(NamedTuple):
    service: Running
    processor: str


@pytest.fixture(scope="module")
def pair(place: Path) -> Iterator[Pair]:
    """Started as the page says, on ports that are free."""
    processor = f"http://127.0.0.1:{port_of_a_run()}"
    chosen = dict(re.findall(r"(SERVICE_\w+)=(\S+)", find(STARTS[1], PAGE).replace(PROCESSOR, processor)))
    with running(place / "processed", chosen) as service, simulated(place, processor, service) as said:
        assert [f"{name}={value}" for name, value in chosen.items() if f"  {name}={value}\n" not in said] == []
        assert sum("SERVICE_" in line for line in said) == len(chosen)
        yield Pair(service, processor)


@contextmanager
def simulated(place: Path, processor: str, service: Running) -> Generator[list[str]]:
    """The command of the page, with ports that are free; it listens once it has said where. What it says up to its control API."""
    more = f"sandbox payments --port {processor.rpartition(':')[2]} --webhook-url {service.base_url}/v1/operator-billing/payments-webhook"
    process = shell(place, find(STARTS[0], PAGE).replace("sandbox payments", more))
    assert process.stdout is not None
    try:
        yield list(iter(process.stdout.readline, "control\n"))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


@pytest.mark.long
def test_a_dispute_is_answered_and_won(place: Path, pair: Pair) -> None:
    said = done(place, find(STARTS[2], PAGE), **as_reader(pair.service), PROCESSOR=pair.processor)
    assert '"disputed": true' in said
    assert '"status": "under_review"' in said
    assert re.findall('"status": "([^"]*)"', said)[-1] == "won"
    assert (place / "processor.json").exists()


def test_faults_are_added_and_taken_away(place: Path, pair: Pair) -> None:
    said = done(place, find(STARTS[3], PAGE), PROCESSOR=pair.processor)
    assert said.count('"trouble"') == 4  # one, then three
    assert httpx.get(f"{pair.processor}/control/faults").json() == {"faults": []}


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)] == []


@pytest.mark.long
def test_the_page_names_every_path_of_the_control_api_every_fault_and_every_card() -> None:
    text = (ROOT / "docs" / PAGE).read_text()
    assert {path.split()[1] for path in PROCESSOR_CONTROL_PATHS} - set(re.findall(r"/control/[a-z-]+(?:/{id})?", text)) == set()
    assert [name for name in (*get_args(FaultTrouble), *OUTCOME_CARDS, *NAMED_CARDS) if f"`{name}`" not in text] == []
    grouped = [" ".join(number[i : i + 4] for i in range(0, 16, 4)) for number in OUTCOME_CARDS.values()]
    assert [number for number in grouped if number not in text] == []
    assert len(PROCESSOR_PAGES) == len(re.findall(r"^\| (?:Onboarding|Authorization|Invoice|Checkout|Dashboard) \|", text, re.MULTILINE))
