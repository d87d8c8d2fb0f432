"""The simulated processor as a server of its own, and as part of `reseller serve`."""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import ClassVar

import httpx
import pytest
import stripe

from tests.cli.reseller import refused
from tests.pages.document import Document
from tests.payments_pages.processor import processor
from transports.settings_files import load_settings

SECRET = "whsec_YSBzZWNyZXQgb2YgdGVzdHM="


class Receiver(BaseHTTPRequestHandler):
    """Takes events, the first of them only when it comes again."""

    seen: ClassVar[Queue[tuple[bytes, str]]] = Queue()
    refuses: ClassVar[list[int]] = [503]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        status = self.refuses.pop() if self.refuses else 200
        if status == 200:
            self.seen.put((body, self.headers["stripe-signature"]))
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.mark.long
def test_it_runs_by_itself_says_how_the_service_is_started_against_it_and_remembers(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        Thread(target=receiver.serve_forever, daemon=True).start()
        hook = f"http://127.0.0.1:{receiver.server_port}/hook"
        words = ("--state", str(tmp_path / "state.json"), "--webhook-secret", SECRET, "--webhook-url", hook)
        with processor(tmp_path, *words) as (http, said):
            settings = load_settings(dict(re.findall(r"^  (SERVICE_\w+)=(\S+)$", said, re.MULTILINE)))
            assert not settings.simulates_payments
            assert settings.payments_url == settings.payments_connect_url == str(http.base_url).rstrip("/")
            account = http.post("/v1/accounts", data={"type": "express"}).json()["id"]
            assert http.post(f"/control/accounts/{account}", json={"do": "enable"}).status_code == 200
            body, signature = Receiver.seen.get(timeout=60)
            event = stripe.Webhook.construct_event(body, signature, SECRET)
            assert (event.type, event.account) == ("account.updated", account)
        with processor(tmp_path, *words) as (http, _):
            assert http.get(f"/v1/accounts/{account}").json()["charges_enabled"] is True
        receiver.shutdown()


@pytest.mark.long
def test_its_pages_and_its_control_api_are_there_and_lost_answers_break_the_connection(tmp_path: Path) -> None:
    with processor(tmp_path, "--webhook-url", "") as (http, said):
        assert "events go to nobody" in said
        account = http.post("/v1/accounts", data={"type": "express"}).json()["id"]
        links = {"account": account, "type": "account_onboarding", "return_url": f"{http.base_url}/back", "refresh_url": "http://a.example"}
        page = httpx.get(http.post("/v1/account_links", data=links).json()["url"])
        form = Document(page.text).forms[0]
        done = http.post(form.action, data={"do": "complete"})
        assert (done.status_code, done.headers["location"]) == (303, f"{http.base_url}/back")
        http.post("/control/faults", json={"trouble": "closed", "method": "GET"})
        with pytest.raises(httpx.RemoteProtocolError):
            http.get("/v1/balance")
        assert http.get("/v1/balance").json()["object"] == "balance"
        assert http.get("/control/state").json()["accounts"][0]["charges_enabled"] is True
        assert http.get("/control/nothing").status_code == 404
        assert http.post("/control/clock", content=b"{").json() == {"error": {"message": "the body is not JSON"}}
        assert http.post("/v1/refunds", content=b"x" * (1 << 20) + b"x").status_code == 413
        assert httpx.get(http.base_url.join("/v1/balance")).status_code == 401


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--key", "secret"), "--key: must be sk_test_"),
        (("--webhook-secret", "secret"), "--webhook-secret: must be whsec_"),
        (("--webhook-url", "ftp://x"), "--webhook-url ftp://x: must begin with http:// or https://"),
    ],
)
def test_words_that_make_no_sense_are_refused(tmp_path: Path, words: tuple[str, str], said: str) -> None:
    assert said in refused("sandbox", "payments", *words, cwd=tmp_path)[1]


def test_a_taken_port_is_named_with_a_way_out(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as taken:
        assert f"port {taken.server_port} on 127.0.0.1" in refused("sandbox", "payments", "--port", str(taken.server_port), cwd=tmp_path)[1]
