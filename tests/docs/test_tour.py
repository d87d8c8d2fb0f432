"""Every command of the tour, in a shell, against a server of this machine; programs of examples/ are run by tests/examples."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find, shell
from tests.harness.processes import ROOT, Running

PAGE = "tour.md"
HOOK = "127.0.0.1:8080"
EXAMPLES = ("python examples/money_month.py", "python examples/shop_visit.py", "python examples/fleet_report.py")
PLAIN = ("export RESELLER_URL", "reseller call create_connectivity_intent", "reseller call fleet_health", "curl -N -s")
LIVE, FLEET, WEBHOOK = "curl -s $RESELLER_URL/v1/connectivity/intents", ("reseller call list_subscribers", "token=$(curl"), "secret=$("


@pytest.mark.cases
@pytest.mark.parametrize("start", PLAIN)
def test_a_command_runs_as_it_is_written(start: str, place: Path, server: Running) -> None:
    done(place, find(start, PAGE), **as_reader(server))


def test_a_live_esim_is_drawn_from_the_simulated_stock_and_drawn_once(place: Path, server: Running) -> None:
    first, second = (json.loads(done(place, find(LIVE, PAGE), **as_reader(server))) for _ in range(2))
    assert first == second
    assert (first["status"], first["livemode"], first["plan"]["id"]) == ("succeeded", True, "nordic-1gb-30d")
    assert first["esim"]["activation_code"].startswith("LPA:1$")


@pytest.mark.long
def test_a_fleet_is_looked_after(place: Path, server: Running) -> None:
    """In one shell, since the second block needs what the first has set; the message goes out once it is confirmed."""
    said = done(place, "".join(find(start, PAGE) for start in FLEET), **as_reader(server))
    told = ("Anna Sandberg", "8988303700000100286", '"state": ', '"subsPackageId": ', '"status": "SUSPENDED"', '"iso2":"FR"')
    assert [words for words in told if words not in said] == []
    assert said.endswith('{"data":{"sent":true,"unicode":false,"length":21}}')


@pytest.mark.long
def test_three_lines_show_a_signed_webhook(place: Path, server: Running) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    text = find(WEBHOOK, PAGE).replace(HOOK, f"127.0.0.1:{port}").replace(" 8080 &", f" {port} &")
    process = shell(place, text + "wait", **as_reader(server))
    assert process.stdout is not None
    try:
        seen = next(line for line in process.stdout if line.startswith("esim.issued evt_"))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert " cni_" in seen


def test_every_command_of_the_page_is_run() -> None:
    known = (*PLAIN, LIVE, *FLEET, WEBHOOK, *EXAMPLES)
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(known)] == []
    for start in EXAMPLES:
        [name] = re.findall(r"examples/(\w+)\.py", start)
        test = (ROOT / "tests" / "examples" / f"test_{name}.py").read_text()
        assert f'command("{name}"' in test, "tests/examples runs the command of the page"


def test_the_page_begins_as_the_readme_does() -> None:
    start = "export RESELLER_URL"
    assert find(start, PAGE) == find(start, "README.md")
