"""`reseller doctor` and the payment processor."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.reseller import printed
from tests.cli.test_doctor import findings
from tests.harness.thread_servers import serving_in_thread

TEST_KEY, LIVE_KEY, SECRET = "sk_test_a1b2c3d4e5", "sk_live_a1b2c3d4e5", "whsec_a1b2c3d4e5"


class Answering(BaseHTTPRequestHandler):
    """A processor that knows two keys."""

    def do_GET(self) -> None:
        key = self.headers["authorization"].removeprefix("Bearer ")
        balance = {"object": "balance", "livemode": key == LIVE_KEY, "available": [], "pending": []}
        known = self.path == "/v1/balance" and key in (TEST_KEY, LIVE_KEY)
        body = json.dumps(balance if known else {"error": {"type": "invalid_request_error", "message": f"Invalid API Key: {key}"}}).encode()
        self.send_response_only(200 if known else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def processor() -> Iterator[str]:
    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Answering)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def settings(url: str, key: str = TEST_KEY, **more: str) -> dict[str, str]:
    return {"SERVICE_PAYMENTS_URL": url, "SERVICE_PAYMENTS_KEY": key, "SERVICE_PAYMENTS_WEBHOOK_SECRET": SECRET, **more}


def test_the_processor_is_asked_whether_it_takes_our_key_and_what_money_it_is(processor: str, tmp_path: Path) -> None:
    assert "ok   payments   simulated processor in this process" in printed("doctor", cwd=tmp_path, SERVICE_PORT="0")
    shown = printed("doctor", cwd=tmp_path, SERVICE_PORT="0", **settings(processor))
    assert f"ok   payments   {processor} accepts our key, test money, no OAuth client\n" in shown
    live = settings(processor, LIVE_KEY, SERVICE_PAYMENTS_CLIENT_ID="ca_1")
    shown += printed("doctor", cwd=tmp_path, SERVICE_PORT="0", **live)
    assert f"ok   payments   {processor} accepts our key, REAL money\n" in shown
    assert not [secret for secret in (TEST_KEY, LIVE_KEY, SECRET) if secret in shown]


def test_a_processor_that_does_not_answer_as_it_should_is_found_with_the_fix(processor: str, tmp_path: Path) -> None:
    state, fix = findings(tmp_path, **settings(processor, "sk_test_revoked123"))["payments"]
    assert state == f"{processor} does not accept our key, or not for reading the balance"
    assert fix is not None and fix.startswith("set SERVICE_PAYMENTS_KEY to a secret key") and "revoked" not in state + fix
    state, fix = findings(tmp_path, **settings("http://127.0.0.1:1"))["payments"]
    assert "could not be reached (refused)" in state and TEST_KEY not in state
    assert fix == "check SERVICE_PAYMENTS_URL, and that this machine may reach it"
