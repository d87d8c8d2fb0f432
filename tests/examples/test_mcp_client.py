"""The shortest MCP client, run as a program."""

import pytest

from tests.examples.conftest import program
from tests.running import Running


def test_it_issues_an_esim(server: Running) -> None:
    done = program("mcp_client.py", server.mcp_url, RESELLER_API_KEY=str(server.api_key))
    tools, esim = done.stdout.splitlines()
    assert tools.endswith(" tools")
    assert esim.startswith("succeeded: LPA:1$")


def test_it_says_what_is_missing(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESELLER_API_KEY", raising=False)
    done = program("mcp_client.py", server.mcp_url)
    assert done.returncode == 1
    assert done.stderr == "Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.\n"
