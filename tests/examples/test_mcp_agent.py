"""The patterns of the guide for agent builders, run as a program."""

import pytest

from tests.examples.conftest import command, program
from tests.harness.processes import Running


@pytest.mark.long
def test_every_pattern_does_what_the_guide_says(server: Running) -> None:
    done = program("mcp_agent.py", *command("mcp_agent", server), RESELLER_API_KEY=str(server.api_key))
    assert done.returncode == 0, done.stdout + done.stderr
    tools, issued, refused, lines, asked, sent, to_ask, again, reads = done.stdout.splitlines()
    assert tools == "5 tools of core"
    assert issued == "issued: succeeded, replayed: True"
    assert refused == "refused: invalid_request: limit: got 1000; must be <= 100"
    assert lines == "140 lines"
    assert asked.startswith("asked: This will send one SMS to the line ") and asked.endswith("Carry it out?")
    assert sent == again == "sent: {'data': {'sent': True, 'unicode': False, 'length': 21}}"
    assert to_ask.startswith("to ask: This will send one SMS to the line ")
    assert reads.endswith(" tools that change nothing")
