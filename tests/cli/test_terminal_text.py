"""What others wrote commands no terminal, and no secret has to stand on a command line."""

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.characters import COMMANDING_CHARACTERS
from tests.cli.reseller import printed, refused, run_reseller
from tests.cli.terminal import at_terminal
from tests.harness.processes import Running
from transports.cli.terminal import harmless_text

TURNED = "invoice\u202egpj.exe\u2066\u2069"
TOKEN = "sandbox-7002-token"


@pytest.mark.long
@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8))
def test_what_is_escaped_reads_as_the_same_json_and_holds_nothing_that_commands(value: object) -> None:
    shown = harmless_text(orjson.dumps(value).decode())
    assert json.loads(shown) == value
    assert not COMMANDING_CHARACTERS.search(shown)


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b31m", "\x7f", "\r", "\x85", "a\u202eb", "\u2028", "\x00", "\u200f", "\u061c"])
def test_a_text_that_commands_is_shown_as_an_escape(text: str) -> None:
    assert not COMMANDING_CHARACTERS.search(harmless_text(text)) and "\\" in harmless_text(text)
    assert harmless_text("Åse\tØrsted\n日本 🙂") == "Åse\tØrsted\n日本 🙂"


@pytest.mark.long
def test_json_on_a_terminal_is_escaped_and_in_a_pipe_it_is_as_it_was_written(place: Path, server: Running) -> None:
    del server
    made = json.loads(printed("call", "create_connectivity_intent", "--metadata", json.dumps({"note": TURNED}), cwd=place))
    code, shown = at_terminal("call", "get_connectivity_intent", "--id", made["id"], "--json", cwd=place)
    assert code == 0 and "\u202e" not in shown and "\\u202egpj.exe\\u2066\\u2069" in shown
    assert json.loads(shown)["metadata"] == {"note": TURNED}
    assert TURNED in printed("call", "get_connectivity_intent", "--id", made["id"], cwd=place)
    code, table = at_terminal("call", "list_connectivity_intents", cwd=place)
    assert code == 0 and "\u202e" not in table


def test_names_that_commands_list_are_escaped_on_a_terminal(place: Path, server: Running) -> None:
    del server
    made = run_reseller("org", "create", TURNED, "--email", "ada@fjord.example", cwd=place)
    assert made.returncode == 0, made.stderr
    code, shown = at_terminal("org", "list", cwd=place)
    assert code == 0 and "\u202e" not in shown and "\\u202egpj.exe" in shown


def test_a_reseller_token_is_not_taken_from_the_command_line(place: Path, server: Running) -> None:
    del server
    code, message = refused("call", "onboarding_connect_ocs_token", "--token", TOKEN, cwd=place)
    assert (code, message) == (
        2,
        "--token: a secret is not taken from the command line, where others can read it; nothing was sent. "
        "Give `--token -` and type it or pipe it (`--token - < FILE`), or `--token @FILE`\n",
    )
    code, message = refused("call", "onboarding_connect_ocs_token", "--json-input", json.dumps({"token": TOKEN}), cwd=place)
    assert code == 2 and message.startswith("--json-input: token is a secret") and TOKEN not in message
    code, message = refused("call", "onboarding_connect_ocs_token", "--token", "@missing", cwd=place)
    assert (code, message) == (2, "--token: missing cannot be read (No such file or directory)\n")


@pytest.mark.parametrize("way", ["piped", "file", "object piped", "object file"])
def test_a_reseller_token_is_given_by_standard_input_or_a_file(place: Path, tmp_path: Path, server: Running, way: str) -> None:
    there = {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "input").write_text(json.dumps({"token": TOKEN}))
    words = {
        "piped": ("--token", "-"),
        "file": ("--token", f"@{tmp_path}/token"),
        "object piped": ("--json-input", "-"),
        "object file": ("--json-input", f"@{tmp_path}/input"),
    }[way]
    typed = json.dumps({"token": TOKEN}) if way.startswith("object") else f"{TOKEN}\n"
    done = run_reseller("call", "onboarding_connect_ocs_token", *words, "--yes", cwd=place, stdin=typed, **there)
    assert done.returncode == 0 and '"ocs"' in done.stdout, done.stderr


@pytest.mark.long
def test_a_person_is_told_once_that_a_key_on_the_command_line_is_seen(place: Path, server: Running) -> None:
    words = ("call", "list_connectivity_plans", "--url", server.base_url, "--key", str(server.api_key))
    code, shown = at_terminal(*words, "--json", cwd=place)
    told = "--key: others on this machine can read the arguments of a command; RESELLER_API_KEY is not shown to them"
    assert code == 0 and shown.splitlines()[0] == told
    assert run_reseller(*words, cwd=place).stderr == ""
