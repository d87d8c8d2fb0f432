"""What the guide says of proxies, tried with the very files: nginx and Caddy in front of a real server."""

import re
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from operations.invoicing.call_records import CDR_BODY_LIMIT
from registry.clock import REQUEST_SECONDS
from tests.harness.cluster import free_port
from tests.harness.processes import ROOT, Running, running
from tests.proxies.front import CADDY, CURL, MISSING, NGINX, Front, front
from tests.proxies.slow_model import FIRST, SECOND, slow_model
from transports.http.connections import Deadlines

pytestmark = pytest.mark.skipif(not (NGINX and CADDY and CURL), reason=MISSING)
BASE = "https://www.example/reseller"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
RECORD = {"id": "cdr-1", "iccid": "8988303000000912345", "occurred_at": "2026-11-20T09:00:00Z", "bytes_up": 1, "bytes_down": 1}


class Served(NamedTuple):
    """A server, its log, and the model behind it."""

    server: Running
    port: int
    log: Path
    go_on: threading.Event

    def lines(self) -> list[dict[str, object]]:
        return [orjson.loads(line) for line in self.log.read_bytes().splitlines()]

    def line_of(self, request_id: str) -> dict[str, object]:
        """The line of a request, as soon as it is written."""
        ends = monotonic() + 20
        while monotonic() < ends:
            for line in self.lines():
                if line.get("request_id") == request_id:
                    return line
            sleep(0.05)
        raise AssertionError(request_id)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    data, port = tmp_path_factory.mktemp("proxies") / "data", free_port()
    with slow_model() as (model, go_on):
        settings = {
            "SERVICE_BASE_URL": BASE,
            "SERVICE_ALLOWED_HOSTS": "esim.example,api.esim.example",
            "SERVICE_TRUSTED_PROXIES": "127.0.0.1/32",
            "SERVICE_LOG": "json",
            "SERVICE_MODEL_URL": model,
            "SERVICE_MODEL_NAME": "small",
        }
        with running(data, settings, port=port) as server:
            yield Served(server, port, data.with_name("data.log"), go_on)


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, served: Served, tmp_path_factory: pytest.TempPathFactory) -> Generator[Front]:
    with front(request.param, tmp_path_factory.mktemp(request.param), free_port(), served.port) as found:
        yield found


@contextmanager
def through(proxy: Front, served: Served, name: str = "esim.example", root: str = "") -> Generator[httpx.Client]:
    """A client of the proxy that asks for a name, with a key."""
    headers = {"Host": f"{name}:{proxy.port}", "Authorization": f"Bearer {served.server.api_key}"}
    with httpx.Client(base_url=f"https://127.0.0.1:{proxy.port}{root}", headers=headers, verify=proxy.context(), timeout=20) as client:
        client.event_hooks["request"].append(lambda request: request.extensions.update(sni_hostname=name))
        yield client


@pytest.mark.cases
@pytest.mark.parametrize("name", ["esim.example", "api.esim.example"])
def test_each_host_name_is_served_over_http2(proxy: Front, served: Served, name: str) -> None:
    with through(proxy, served, name) as client:
        assert client.get("/health/ready").json() == {"ready": True, "reasons": []}
        assert client.get("/v1/connectivity/plans").status_code == 200
    asked = [
        str(CURL),
        "--silent",
        "--show-error",
        "--cacert",
        str(proxy.authority),
        "--http2",
        "--write-out",
        "%{http_version} %{http_code}",
    ]
    asked += ["--resolve", f"{name}:{proxy.port}:127.0.0.1", "--output", "/dev/null", f"https://{name}:{proxy.port}/v1/connectivity/plans"]
    said = subprocess.run([*asked, "-H", f"Authorization: Bearer {served.server.api_key}"], capture_output=True, text=True, check=True)
    assert said.stdout == "2 200"


def test_the_largest_body_passes_and_one_byte_more_is_refused_by_the_service(proxy: Front, served: Served) -> None:
    record = {"events": [{**RECORD, "id": f"cdr-{proxy.name}"}]}
    body = orjson.dumps(record).ljust(CDR_BODY_LIMIT)
    with through(proxy, served) as client:
        largest = client.post(
            "/v1/cdr/ingest", content=body, headers={"Content-Type": "application/json", "Idempotency-Key": f"k-{proxy.name}"}
        )
        assert (largest.status_code, largest.json()) == (200, {"received": 1, "stored": 1, "skipped": 0})
        refused = client.post("/v1/cdr/ingest", content=body + b" ", headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    assert refused.json()["request_id"] == refused.headers["request-id"]


@pytest.mark.long
def test_a_stream_is_read_as_it_is_made(proxy: Front, served: Served) -> None:
    served.go_on.clear()
    asked = {"messages": [{"role": "user", "content": "Say two words."}]}
    with through(proxy, served) as client, client.stream("POST", "/v1/ai/chat", json=asked) as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        pieces, read = answer.iter_text(), ""
        while FIRST.strip() not in read:
            read += next(pieces)
        assert SECOND not in read
        served.go_on.set()
        assert SECOND in "".join(pieces)


@pytest.mark.long
def test_links_below_a_path_lead_below_it(proxy: Front, served: Served) -> None:
    with through(proxy, served, "www.example", "/reseller") as client:
        for path in ("/docs", "/docs/connectivity", "/auth/sign-in", "/auth/sign-up"):
            page = client.get(path, headers={"Accept": "text/html"})
            links = re.findall(r'(?:href|action|src)="(/[^"]*)"', page.text)
            assert page.status_code == 200 and links and [link for link in links if not link.startswith("/reseller/")] == []
        document = client.get("/openapi.json").json()
        assert [each["url"] for each in document["servers"]] == [BASE]
        listed = client.get("/v1/subscribers", params={"limit": 1})
        link = re.search(r'<([^>]*)>; rel="next"', listed.headers["link"])
        assert link is not None and link[1].startswith("/reseller/v1/subscribers?")
        following = client.get(link[1].removeprefix("/reseller"))
        assert following.status_code == 200 and following.json() != listed.json()
        assert client.get("/v1/connectivity/intents/a%2Fb").json()["code"] == "not_found"
        assert client.get("/auth/account").headers["location"].startswith("/reseller/auth/sign-in")
        assert client.get("/", follow_redirects=False).headers["location"] == "/reseller/docs"


def test_a_client_of_mcp_below_a_path_finds_out_where_to_log_in(proxy: Front, served: Served) -> None:
    with through(proxy, served, "www.example") as client:
        asked = client.post("/reseller/mcp", json={}, headers={"Authorization": ""})
        found = re.search(r'resource_metadata="([^"]+)"', asked.headers["www-authenticate"])
        assert asked.status_code == 401 and found is not None
        metadata = client.get(urlsplit(found[1]).path).json()
        assert metadata["resource"] == f"{BASE}/mcp"
        [issuer] = metadata["authorization_servers"]
        split = urlsplit(issuer)
        told = client.get(f"/.well-known/oauth-authorization-server{split.path}").json()
        assert told["issuer"] == issuer and told["token_endpoint"].startswith(BASE)


def test_the_log_has_the_proxys_id_of_a_request_and_nothing_of_what_its_client_made_up(proxy: Front, served: Served) -> None:
    with through(proxy, served) as client:
        answer = client.get("/v1/connectivity/plans", headers={"X-Request-Id": "made-up", "traceparent": TRACE})
    line = served.line_of(answer.headers["request-id"])
    assert re.fullmatch(r"[0-9a-f-]{32,36}", str(line["client_request_id"]))
    assert "trace" not in line and line["client"] == "127.0.0.1" and line["level"] == "info" and str(line["key"]).startswith("key_")


@pytest.mark.long
def test_a_trusted_proxy_that_takes_part_in_traces_is_believed(served: Served) -> None:
    """Asked from 127.0.0.1, which is one."""
    with httpx.Client(base_url=f"http://127.0.0.1:{served.port}", headers={"Host": "esim.example"}) as client:
        answer = client.get("/health", headers={"traceparent": TRACE, "X-Forwarded-For": "203.0.113.9"})
    line = served.line_of(answer.headers["request-id"])
    assert (line["trace"], line["client"]) == (TRACE.split("-")[1], "203.0.113.9")


def test_times_of_the_files_fit_those_of_the_service() -> None:
    for text in ((ROOT / "ops" / name).read_text() for name in ("nginx.conf", "Caddyfile")):
        [kept] = re.findall(r"(?:keepalive_timeout|\bkeepalive) (\d+)s", text)
        waits = {int(seconds) for seconds in re.findall(r"(?:proxy_read_timeout|response_header_timeout) (\d+)s", text)}
        assert int(kept) < Deadlines().keep_alive_of_proxies and min(waits) > REQUEST_SECONDS
        assert {int(size) << 20 for size in re.findall(r"(?:client_max_body_size|max_size) (\d+)", text)} == {
            3 << 20
        } and CDR_BODY_LIMIT < 3 << 20
