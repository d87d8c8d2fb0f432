"""Every command of the page on webhooks, against a service that may deliver to this machine."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from clients.webhooks.sender import RETRY_DELAYS
from operations.event_types.catalogue import PROMISED_TYPES
from registry.caller import Tier
from registry.limits import Limits
from tests.cli.hook import listening
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find, shell
from tests.harness.processes import ROOT, Running, running

PAGE, EVENTS_PAGE = "webhooks.md", "events.md"
RECEIVER, ENDPOINT = "127.0.0.1:8080", "https://hooks.example.com/esim"
BRIDGE = "the-bridge-of-this-page"
FOLLOW, NEWEST = "reseller events tail\n", "reseller events tail --last"
CHOICE = "endpoint=$(reseller call"  # run by test_events.py, whose service delivers to no private address
STARTS = ("secret=", "reseller trigger", "event=", "endpoint=$(reseller webhooks", "curl -s ")


@pytest.fixture(scope="module")
def service(place: Path) -> Iterator[Running]:
    with running(place / "hooks", {"SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8", "SERVICE_INTERNAL_API_KEY": BRIDGE}) as service:
        yield service


@pytest.fixture
def reader(service: Running) -> dict[str, str]:
    return {**as_reader(service), "SERVICE_INTERNAL_API_KEY": BRIDGE}


@contextmanager
def under_way(place: Path, text: str, reader: dict[str, str]) -> Generator[subprocess.Popen[str]]:
    """Commands that follow, once they do; all of them are ended with the block."""
    process = shell(place, text, **reader)
    assert process.stderr is not None
    try:
        assert next(line for line in process.stderr if line.startswith("following the events of "))
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


def triggered(place: Path, reader: dict[str, str]) -> list[str]:
    """The types of the events that came of the page's three triggers."""
    return [json.loads(line)["type"] for line in done(place, find(STARTS[1], PAGE), **reader).splitlines()]


ISSUED = "esim.issued"
CAME = [ISSUED, ISSUED, "esim.first_attach", ISSUED, "usage.threshold_reached", "usage.threshold_reached"]


@pytest.mark.long
def test_what_is_triggered_is_followed(place: Path, reader: dict[str, str]) -> None:
    with under_way(place, find(FOLLOW, EVENTS_PAGE), reader) as tail:
        assert tail.stdout is not None
        assert triggered(place, reader) == CAME
        assert [json.loads(next(tail.stdout))["type"] for _ in CAME] == CAME
    *newest, reached = done(place, find(NEWEST, EVENTS_PAGE), **reader).splitlines()
    assert [json.loads(line)["type"] for line in newest] == CAME[1:]
    assert json.loads(reached)["data"]["threshold_percent"] == 50


@pytest.mark.long
def test_the_example_receiver_takes_what_is_listened_for(place: Path, reader: dict[str, str]) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    text = find(STARTS[0], PAGE).replace(RECEIVER, f"127.0.0.1:{port}").replace(" 8080 &", f" {port} &")
    with under_way(place, text, reader) as listen:
        assert listen.stdout is not None
        done(place, "reseller trigger usage.threshold_reached", **reader)
        lines = [next(listen.stdout).strip() for _ in range(1 + 2 * 2)]  # where it listens, then two of each
    assert sum(bool(re.fullmatch(r"\S+ evt_\w+ cni_\w+", line)) for line in lines) == 2
    assert sum(bool(re.fullmatch(r"\S+ evt_\w+ -> 204 \(\d+ ms\)", line)) for line in lines) == 2


@pytest.mark.long
def test_a_delivery_is_looked_up_and_sent_again(place: Path, service: Running, reader: dict[str, str]) -> None:
    bearer = {"Authorization": f"Bearer {service.api_key}"}
    with listening() as hook, httpx.Client(base_url=f"{service.base_url}/v1/connectivity", headers=bearer) as http:
        endpoint = json.loads(done(place, find(STARTS[4], PAGE).replace(ENDPOINT, hook.url), **reader))
        done(place, "reseller trigger esim.issued", **reader)
        _, event = hook.take(endpoint["secret"])
        while http.get(f"/events/{event}/deliveries").json()["data"][0]["state"] != "delivered":
            continue
        said = done(place, find(STARTS[2], PAGE) + find(STARTS[3], PAGE), **reader)
        assert re.findall(r'"state": "(\w+)"|"replayed": (\d)', said) == [("delivered", ""), ("", "0"), ("", "1")]
        assert hook.take(endpoint["secret"]) == (204, event)
        http.delete(f"/webhook_endpoints/{endpoint['id']}")


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith((*STARTS, CHOICE))] == []


@pytest.mark.long
def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    text = " ".join(f"{(ROOT / 'docs' / PAGE).read_text()} {(ROOT / 'docs' / EVENTS_PAGE).read_text()}".split())
    assert [type for type in PROMISED_TYPES if f"`{type}`" not in text] == []
    assert RETRY_DELAYS[1:] == (5, 300, 1800, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24)))
    assert "after 5 seconds, 5 minutes, 30 minutes, 2, 5, 10, 14, 20 and 24 hours" in text
    assert f"the free tier has {Limits().tiers[Tier.FREE].calls_per_day:,}" in text
