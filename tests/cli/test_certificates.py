"""SERVICE_CA_FILE: authorities of one's own, trusted beside the public ones; doctor names what is wrong with a certificate."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from clients.http import Outbound, OutboundFailed
from tests.cli.reseller import refused, run_reseller
from tests.clients.webhooks.authority import self_signed


class Models(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"data": [{"id": "small"}]}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An https address on this machine, and the file of the authority that signed its certificate."""
    server_side, _ = self_signed(tmp_path, "localhost")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    server.socket = server_side.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    ca_file = tmp_path / "own-authority.pem"
    ca_file.write_text(public_half((tmp_path / "server.pem").read_text()))
    yield f"https://localhost:{server.server_port}/v1", ca_file
    server.shutdown()
    thread.join()
    server.server_close()


def public_half(pem: str) -> str:
    end = "-----END CERTIFICATE-----\n"
    return pem[: pem.index(end) + len(end)]


def test_doctor_names_the_certificate_and_the_authority_of_the_setting_is_trusted(endpoint: tuple[str, Path], tmp_path: Path) -> None:
    url, ca_file = endpoint
    model = {"SERVICE_MODEL_URL": url, "SERVICE_MODEL_NAME": "small", "SERVICE_PORT": "0"}
    upstream = {"SERVICE_OCS_URL": url, "SERVICE_OCS_TOKEN": "token"}
    untrusted = run_reseller("doctor", cwd=tmp_path, **model, **upstream)
    for subject in ("model", "upstream"):
        assert f"BAD  {subject:<10} {url}: its certificate is not accepted (self-signed certificate)" in untrusted.stdout
    assert "SERVICE_CA_FILE is trusted beside the public ones" in untrusted.stdout
    trusted = run_reseller("doctor", cwd=tmp_path, **model, SERVICE_CA_FILE=str(ca_file))
    assert f"ok   model      {url} accepts our key, small" in trusted.stdout


def test_doctor_names_the_certificate_of_the_identity_provider(endpoint: tuple[str, Path], tmp_path: Path) -> None:
    url, ca_file = endpoint
    issuer = {"SERVICE_AUTH_ISSUER": url, "SERVICE_AUTH_JWKS_URL": f"{url}/jwks", "SERVICE_PORT": "0"}
    assert f"BAD  identity   {url}/jwks: its certificate is not accepted" in run_reseller("doctor", cwd=tmp_path, **issuer).stdout
    assert f"ok   identity   {url}/jwks" in run_reseller("doctor", cwd=tmp_path, **issuer, SERVICE_CA_FILE=str(ca_file)).stdout


async def test_ssl_cert_file_takes_the_place_of_the_public_authorities(endpoint: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    url, ca_file = endpoint
    for name, value, trusted in (
        ("SSL_CERT_FILE", "", False),
        ("SSL_CERT_FILE", str(ca_file), True),
        ("SERVICE_CA_FILE", str(ca_file), True),
    ):
        with monkeypatch.context() as patched:
            patched.delenv("SSL_CERT_FILE", raising=False)
            patched.setenv(name, value)
            outbound = Outbound()
            try:
                if trusted:
                    assert (await outbound.exchange("GET", f"{url}/models", headers={})).status == 200
                else:
                    with pytest.raises(OutboundFailed, match="tls"):
                        await outbound.exchange("GET", f"{url}/models", headers={})
            finally:
                await outbound.aclose()


def test_a_file_without_a_certificate_stops_the_start_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("no certificate")
    for name, why in (("empty.pem", "no certificate in PEM form"), ("absent.pem", "No such file or directory")):
        code, message = refused("org", "list", cwd=tmp_path, SERVICE_CA_FILE=str(tmp_path / name))
        assert code == 2 and message.startswith("SERVICE_CA_FILE: ") and why in message


@pytest.mark.cases
@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("http://10.0.0.7:11434/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://models.corp.internal/v1", True),
        ("http://models.example/v1", False),
        ("http://8.8.8.8/v1", False),
    ],
)
def test_a_model_is_asked_over_plain_http_inside_alone_and_only_by_setting(url: str, accepted: bool, tmp_path: Path) -> None:
    whole = {
        "SERVICE_ENV": "production",
        "SERVICE_DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "SERVICE_SECRET_KEYS": "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "SERVICE_BASE_URL": "https://esim.example",
        "SERVICE_OCS_URL": "https://ocs.example/v1",
        "SERVICE_PAYMENTS_KEY": "sk_test_12345678",
        "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_12345678",
        "SERVICE_SMTP_URL": "smtp://mail.example",
        "SERVICE_MAIL_FROM": "a@esim.example",
        "SERVICE_MODEL_URL": url,
        "SERVICE_MODEL_NAME": "small",
    }
    plain = "SERVICE_MODEL_URL must start with https:// in production"
    assert plain in refused("org", "list", cwd=tmp_path, **whole)[1]
    assert (plain not in refused("org", "list", cwd=tmp_path, **whole, SERVICE_MODEL_PLAIN_HTTP="true")[1]) is accepted
