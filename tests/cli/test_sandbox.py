"""`reseller sandbox ocs`: the simulated network as a server of its own."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from time import time
from typing import ClassVar

import httpx
import pytest

from tests.cli.network import network
from tests.cli.reseller import refused
from tests.harness.thread_servers import serving_in_thread
from transports.cli.sandbox import start_moment

TOKEN = {"token": "sandbox-7001-token"}


class Receiver(BaseHTTPRequestHandler):
    seen: ClassVar[Queue[dict[str, object]]] = Queue()

    def do_POST(self) -> None:
        self.seen.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def receiving() -> Generator[str]:
    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Receiver)) as server:
        yield f"http://127.0.0.1:{server.server_port}/hook"


@pytest.mark.long
def test_the_network_runs_by_itself_says_where_and_tells_what_happens(tmp_path: Path) -> None:
    with (
        receiving() as hook,
        network(tmp_path, "--clock", "frozen", "--start", "2026-09-21T12:00:00", "--row-cap", "3", "--push-to", hook) as (
            http,
            said,
        ),
    ):
        assert "sandbox-7001-token  7001 Fjord Mobile" in said
        assert "8101 Demo Retail" in said
        assert "curl -s 'http://127.0.0.1:" in said
        found = http.post("/v1", params=TOKEN, json={"listSubscriber": {"accountId": 8101}}).json()["listSubscriber"]
        assert (len(found["subscriberList"]), found["hasMore"]) == (3, True)
        assert http.get("/control/state").json()["now"] == "2026-09-21T12:00:00"
        iccid = found["subscriberList"][0]["imsiList"][-1]["iccid"]
        http.post("/control/provider-status", json={"iccid": iccid, "status": "Enable"})
        body = Receiver.seen.get(timeout=60)
        assert (body["iccid"], body["status"]) == (iccid, "Enable")


def test_a_dropped_answer_breaks_the_connection_and_long_answers_arrive_whole(tmp_path: Path) -> None:
    with network(tmp_path) as (http, _):
        http.post("/control/faults", json={"method": "getResellerInfo", "drop_after": True})
        with pytest.raises(httpx.RemoteProtocolError):
            http.post("/v1", params=TOKEN, json={"getResellerInfo": {}})
        assert http.post("/v1", params=TOKEN, json={"getResellerInfo": {}}).status_code == 200
        zones = http.post("/v1", params=TOKEN, json={"listDetailedLocationZone": 7001})
        assert zones.json()["listDetailedLocationZone"]


@pytest.mark.parametrize(("start", "ago"), [("now", 0), ("-31d", 31 * 86_400), ("-12h", 12 * 3_600), ("-90m", 90 * 60)])
def test_the_start_may_be_told_by_how_long_ago_it_is(start: str, ago: int) -> None:
    assert int(time()) <= start_moment(start) + ago <= time()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--start", "soon"), "--start soon"),
        (("--start", "31d"), "--start 31d"),
        (("--start", "-31w"), "--start -31w"),
        (("--start", "-99999d"), "--start -99999d"),
        (("--start", "-3\u0661d"), "--start -3\u0661d"),
        (("--push-to", "ftp://x"), "http://"),
    ],
)
def test_words_that_make_no_sense_are_refused(tmp_path: Path, words: tuple[str, str], said: str) -> None:
    assert said in refused("sandbox", "ocs", *words, cwd=tmp_path)[1]


def test_a_taken_port_is_named_with_a_way_out(tmp_path: Path) -> None:
    with receiving() as hook:
        port = hook.split(":")[2].split("/")[0]
        assert f"port {port} on 127.0.0.1" in refused("sandbox", "ocs", "--port", port, cwd=tmp_path)[1]
