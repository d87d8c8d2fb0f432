"""The official suite as a program that logs in: our authorization server against a server as a user starts it.

The suite's checks of a protected resource (401, metadata, scopes) are of clients: it plays the server there. `conformance server` sends no
credential, so all that it could learn of our /mcp is that it needs one; tests/interop logs in to /mcp with the official clients instead.
"""

import subprocess
from pathlib import Path

import httpx
import pytest

from tests.conformance.test_conformance import NODE, SUITE, SUMMARY_LINE
from tests.harness.processes import ROOT, Child, Running, free_port, running
from tests.people import Person, console_of

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(not (NODE.exists() and SUITE.exists()), reason="tools/node is not installed: npm ci"),
]


def run_suite(server: Running, person: Person, resource: str) -> dict[str, int]:
    """Failed checks by scenario; the suite prints a link, and the person follows it."""
    port = free_port()
    asked = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"], "token_endpoint_auth_method": "none"}
    client = httpx.post(f"{server.base_url}/auth/register", json=asked).json()
    words = ["--url", f"{server.base_url}/auth", "--client-id", client["client_id"], "--resource", resource, "--port", str(port)]
    command = [str(NODE), str(SUITE / "dist" / "index.js"), "authorization", *words]
    with Child(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
        assert suite.stdout is not None
        said = ""
        for line in suite.stdout:
            said += line
            if line.startswith("Callback server started"):  # "Waiting up to" comes before, when nobody listens yet
                [link] = [each for each in said.splitlines() if each.startswith(f"{server.base_url}/auth/authorize?")]
                assert httpx.get(person.allow(link)).status_code == 200
    assert suite.returncode == 0, said
    return {name: int(failed) for name, _, failed in SUMMARY_LINE.findall(said)}


@pytest.mark.long
def test_the_authorization_server_passes_what_the_suite_has_for_one(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        person = Person(server, console_of(tmp_path / "data"), "ada@fjord.example")
        person.sign_up("Fjord Mobile")
        for resource in (server.mcp_url, server.base_url):
            assert run_suite(server, person, resource) == {
                "authorization-server-metadata-endpoint": 0,
                "authorization-code-grant": 0,
            }
