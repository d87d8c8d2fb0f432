"""The example of a login over MCP, run as a program; a person allows it in their browser."""

import os
import subprocess
import sys
from pathlib import Path

import httpx

from tests.people import Person, console_of
from tests.running import ROOT, running


def test_a_program_that_knows_the_url_alone_is_let_in_and_issues_an_esim(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        person = Person(server, console_of(tmp_path / "data"), "ada@fjord.example")
        person.sign_up("Fjord Mobile")
        program = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "mcp_login.py"), f"{server.base_url}/mcp"],
            env={**os.environ, "BROWSER": "true"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "Log in with your browser:\n"
            back = httpx.get(person.allow(program.stdout.readline().strip(), admin=False))
            assert back.text == "Logged in: go back to the terminal.\n"
            out, err = program.communicate(timeout=30)
        finally:
            program.kill()
    assert program.returncode == 0, err
    tools, esim = out.splitlines()
    assert int(tools.removesuffix(" tools")) > 20
    assert esim.startswith("succeeded: LPA:1$")
