"""The example of a visit to a shop, run against a service on the embedded default, and once with a network that can be told."""

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from inline_snapshot import snapshot

from tests.cli.network import network
from tests.cli.reseller import printed
from tests.docs.test_simulated_network import port_of_a_run
from tests.examples.conftest import command, program
from tests.harness.processes import Child, Running, running

SECRETS = re.compile(r"LPA:|1\$|ord_|tuc_|acct_|cs_test_|data:image|89\d{15}")


def visited(shop: str, *words: str) -> list[str]:
    done = program("shop_visit.py", shop, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SECRETS.findall(done.stdout + done.stderr) == []
    return done.stdout.splitlines()


def orders(server: Running) -> list[dict[str, object]]:
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}) as http:
        return http.get("/v1/storefronts/orders").json()["data"]


@pytest.mark.long
def test_a_buyer_has_an_esim_adds_data_and_closes_the_order_and_what_opens_it_is_not_printed(server: Running) -> None:
    """The command of the tour, but that it chooses a plan."""
    lines = visited(*command("shop_visit", server), "--plan", "nordics-1gb")
    order = orders(server)[0]
    steps = [line for line in lines if not line.startswith("order: ")]  # how often the page said where it stands is a matter of speed
    assert [re.sub(r"ending in \d{4}$", "ending in ...", line) for line in steps] == snapshot(
        [
            "shop: eSIM plans; on sale: japan-3gb, usa-3gb, europe-3gb, nordics-1gb, world-1gb",
            "choice: nordics-1gb",
            "payment: with a test card",
            "eSIM: Your eSIM is ready; a QR code, 3 fields to copy, SIM number ending in ...",
            "usage: 1.07 GB of 1.07 GB left",
            "can be added: nordics-1gb, europe-3gb, world-1gb, usa-3gb, japan-3gb",
            "choice: nordics-1gb",
            "payment: with a test card",
            "usage: 2.15 GB of 2.15 GB left",
            "closed; can be added: nothing",
        ]
    )
    assert (order["status"], order["top_ups"], order["storefront"]) == ("ready", 1, "demo")
    assert order["cancelled_at"] is not None


@pytest.mark.long
def test_the_figures_move_when_the_phone_is_on_in_a_network_that_is_a_server(tmp_path: Path) -> None:
    with network(tmp_path) as (control, _):
        wire = {"SERVICE_OCS_URL": f"{control.base_url}/v1", "SERVICE_OCS_TOKEN": "sandbox-7001-token"}
        with running(tmp_path / "data", wire) as server:
            printed("org", "connect", server.organisation, "--account", "8101", "--data", str(tmp_path / "data"), cwd=tmp_path)
            given = ("--plan", "nordics-1gb", "--keep", "--network", str(control.base_url).rstrip("/"))
            lines = visited(f"{server.base_url}/shop/demo", *given)
    assert [line for line in lines if line.startswith(("phone", "usage"))] == [
        "usage: 1.07 GB of 1.07 GB left",
        "phone: on in NO, 300 MB used",
        "usage: 773.7 MB of 1.07 GB left",
    ]


@pytest.mark.long
def test_it_pays_only_where_the_processor_is_simulated(tmp_path: Path) -> None:
    """A shop whose button leads to a page that is none of the simulated processor's."""
    port = port_of_a_run()
    (tmp_path / "shop").mkdir()
    form = '<h1>Shop</h1><form method="get" action="/pay/checkout"><input name="plan" value="one"></form>'
    (tmp_path / "shop" / "index.html").write_text(form)
    words = [sys.executable, "-c", ELSEWHERE, str(port), str(tmp_path)]
    with Child(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdout.readline()
        done = program("shop_visit.py", f"http://127.0.0.1:{port}/shop/")
        server.terminate()
    assert (done.returncode, done.stdout.splitlines()) == (1, ["shop: Shop; on sale: one", "choice: one"])
    assert done.stderr == f"the payment page at 127.0.0.1:{port} is no simulated one, so nothing is paid\n"


ELSEWHERE = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler
class Handler(SimpleHTTPRequestHandler):
    def do_POST(self):
        body = b'<h1>Pay</h1><form action="/card"><input name="number"></form>'
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
import os
os.chdir(sys.argv[2])
server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listens", flush=True)
server.serve_forever()
"""
