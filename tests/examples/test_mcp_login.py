"""The example of a login over MCP, run as a program; a person allows it in their browser, or does not."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.harness.processes import ROOT, Child, running
from tests.people import Person, console_of


@contextmanager
def asking(url: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """The program, which waits for the person's answer; where it sends them."""
    words = [sys.executable, str(ROOT / "examples" / "mcp_login.py"), url]
    pipe = subprocess.PIPE
    with Child(words, env={**os.environ, "BROWSER": "true"}, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "Log in with your browser:\n"
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.long
def test_a_program_that_knows_the_url_alone_is_let_in_and_issues_an_esim_unless_the_person_says_no(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        person = Person(server, console_of(tmp_path / "data"), "ada@fjord.example")
        person.sign_up("Fjord Mobile")
        with asking(server.mcp_url) as (process, address):
            assert httpx.get(person.deny(address)).text == "Not logged in: go back to the terminal.\n"
            refused = process.communicate(timeout=60)
            assert (process.returncode, *refused) == (
                1,
                "",
                "Not logged in: it was refused (access_denied). The same command asks again.\n",
            )
        with asking(server.mcp_url) as (process, address):
            back = httpx.get(person.allow(address, admin=False))
            assert back.text == "Logged in: go back to the terminal.\n"
            out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    tools, esim = out.splitlines()
    assert int(tools.removesuffix(" tools")) > 20
    assert esim.startswith("succeeded: LPA:1$")
