"""The shortest MCP client, run as a program."""

import pytest

from tests.examples.conftest import ended, program
from tests.harness.processes import Running

NOBODY = "http://127.0.0.1:1/mcp"
LOGS = "mcp_login"
"""Here the library writes to a log, which only a process of its own would show."""


@pytest.mark.long
def test_it_issues_an_esim(server: Running) -> None:
    done = program("mcp_client.py", server.mcp_url, RESELLER_API_KEY=str(server.api_key))
    tools, esim = done.stdout.splitlines()
    assert tools.endswith(" tools")
    assert esim.startswith("succeeded: LPA:1$")


@pytest.mark.long
@pytest.mark.parametrize("name", ["mcp_client", "mcp_agent", "mcp_login"])
def test_an_address_that_is_none_or_where_nobody_answers_ends_with_a_sentence(name: str) -> None:
    here, nobody = (ended, "here", "here is no address: "), (program if name == LOGS else ended, NOBODY, f"No answer from {NOBODY}: ")
    for run, address, told in (here, nobody):
        done = run(f"{name}.py", address, RESELLER_API_KEY="ak_of_nobody")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(told)


@pytest.mark.parametrize("name", ["mcp_client", "mcp_agent"])
def test_a_key_that_is_none_of_the_server_ends_with_a_sentence(name: str, server: Running) -> None:
    done = ended(f"{name}.py", server.mcp_url, RESELLER_API_KEY="ak_of_nobody")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"{server.mcp_url} refused: ")
