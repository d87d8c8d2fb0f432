"""`reseller mcp`: what clients are configured with, and the server over stdio."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.cli.reseller import printed, run_reseller
from tests.databases import migrated_sqlite
from tests.harness.fork_server import reseller
from tests.harness.processes import COMMAND, environment

KEY = "ak_of_the_test"
URL = "https://esim.example/mcp"


def config(client: str, place: Path) -> str:
    return printed("mcp", "config", client, "--url", URL, cwd=place, RESELLER_API_KEY=KEY)


def test_claude_code_gets_its_command(tmp_path: Path) -> None:
    words = shlex.split(config("claude-code", tmp_path))
    assert words[:3] == ["claude", "mcp", "add"]
    assert words[3:] == ["--transport", "http", "connectivity", URL, "--header", f"Authorization: Bearer {KEY}"]


def test_cursor_and_vscode_get_the_address_and_the_key(tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    assert json.loads(config("cursor", tmp_path)) == {"mcpServers": {"connectivity": {"url": URL, "headers": headers}}}
    assert json.loads(config("vscode", tmp_path)) == {"servers": {"connectivity": {"type": "http", "url": URL, "headers": headers}}}


def test_claude_desktop_gets_a_local_command_that_finds_the_database_from_anywhere(tmp_path: Path) -> None:
    text = config("claude-desktop", tmp_path)
    [server] = json.loads(text)["mcpServers"].values()
    assert server == {
        "command": str(Path(sys.executable).with_name("reseller")),
        "args": ["mcp", "stdio", "--data", str(tmp_path / "data")],
        "env": {"SERVICE_DEMO_LIFE": "false"},  # set for every test
    }
    assert KEY not in text


def test_claude_desktop_gets_the_settings_too_since_it_reads_no_env_file_but_no_secret(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "SERVICE_DATABASE_URL=postgresql://u:hidden@db.example/reseller\nSERVICE_PORT=80\nSERVICE_WORKER=false\n"
    )
    made = {
        "SERVICE_SECRET_KEYS": "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "SERVICE_DEMO": "false",
        "SERVICE_OCS_CONCURRENCY": "9",
    }
    done = run_reseller("mcp", "config", "claude-desktop", "--org", "org_1", cwd=tmp_path, **made)
    [server] = json.loads(done.stdout)["mcpServers"].values()
    assert server == {
        "command": str(Path(sys.executable).with_name("reseller")),
        "args": ["mcp", "stdio", "--org", "org_1"],
        "env": {
            "SERVICE_DATABASE_URL": "<SERVICE_DATABASE_URL>",
            "SERVICE_SECRET_KEYS": "<SERVICE_SECRET_KEYS>",
            "SERVICE_DEMO": "false",
            "SERVICE_DEMO_LIFE": "false",
            "SERVICE_OCS_CONCURRENCY": "9",
        },
    }
    assert (
        done.stderr
        == "write the values of the server into the block, which leaves secrets out: SERVICE_DATABASE_URL, SERVICE_SECRET_KEYS\n"
    )


@pytest.mark.long
@pytest.mark.postgres
async def test_the_block_of_claude_desktop_works_on_postgresql_from_any_directory(tmp_path: Path, postgres: str) -> None:
    made = {"SERVICE_DATABASE_URL": postgres, "SERVICE_SECRET_KEYS": "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}
    block = await anyio.to_thread.run_sync(lambda: printed("mcp", "config", "claude-desktop", cwd=tmp_path, **made))
    for name, value in made.items():
        block = block.replace(f"<{name}>", value)
    [desktop] = json.loads(block)["mcpServers"].values()
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *desktop["args"]], cwd=tmp_path, env={**environment(), **desktop["env"]}
    )
    with anyio.fail_after(60):
        async with Client(server) as client:
            arguments = {"plan": "test_global_1gb", "idempotency_key": "one"}
            issued = (await client.call_tool("create_connectivity_intent", arguments)).structured_content
    assert issued is not None and issued["status"] == "succeeded"
    with psycopg.connect(postgres) as database:
        assert database.execute("select count(*) from intent").fetchone() == (1,)
    assert list(tmp_path.iterdir()) == []


def test_who_has_claude_desktop_in_mind_is_told_that_it_uses_no_server_and_where_a_database_is_missing(tmp_path: Path) -> None:
    here, url = tmp_path / "data", "http://127.0.0.1:8000"
    server = {"RESELLER_URL": url}
    local = f"Claude Desktop starts a local program on the database in {here}, as its admin: {url} and the key are not used\n"
    missing = f"there is no database in {here}: name the directory of `serve` with --data\n"
    assert run_reseller("mcp", "config", "claude-desktop", cwd=tmp_path, **server).stderr == local + missing
    assert run_reseller("mcp", "config", "claude-desktop", cwd=tmp_path).stderr == missing
    here.mkdir()
    migrated_sqlite(here)
    assert run_reseller("mcp", "config", "claude-desktop", cwd=tmp_path).stderr == ""
    assert run_reseller("mcp", "config", "cursor", cwd=tmp_path / "data", **server).stderr == ""


@pytest.mark.long
def test_a_first_start_says_that_it_makes_a_database_and_a_second_one_nothing(tmp_path: Path) -> None:
    """Without a client: its input ends at once."""
    words = [reseller(), "mcp", "stdio", "--data", "here"]
    for told in (f"there is no database at {tmp_path / 'here' / 'service.db'} yet: making one, with a demo organisation\n", ""):
        done = subprocess.run(
            words, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
        )
        assert (done.stdout, done.stderr) == ("", told)


@pytest.mark.long
async def test_a_python_client_issues_an_esim_over_stdio(tmp_path: Path) -> None:
    words = ["mcp", "stdio", "--toolsets", "connectivity"]
    server = StdioServerParameters(command=str(reseller()), args=words, cwd=tmp_path, env=environment())
    with anyio.fail_after(60):
        async with Client(server) as client:
            assert "create_connectivity_intent" in {tool.name for tool in (await client.list_tools()).tools}
            arguments = {"plan": "test_global_1gb", "idempotency_key": "one"}
            made = (await client.call_tool("create_connectivity_intent", arguments)).structured_content
    assert made is not None and made["status"] == "succeeded"
    there = await anyio.to_thread.run_sync(lambda: printed("call", "get_connectivity_intent", "--id", made["id"], cwd=tmp_path))
    assert json.loads(there) == made


@pytest.mark.long
def test_a_block_for_one_of_several_organisations_has_to_name_it(tmp_path: Path) -> None:
    first = printed("org", "create", "First", "--email", "first@example.com", cwd=tmp_path)
    alone = run_reseller("mcp", "config", "claude-desktop", cwd=tmp_path)
    assert (alone.returncode, "--org" in alone.stdout, alone.stderr) == (0, False, "")
    second = printed("org", "create", "Second", "--email", "second@example.com", cwd=tmp_path)
    ids = [next(word for word in text.split() if word.startswith("org_")) for text in (first, second)]
    refused = run_reseller("mcp", "config", "claude-desktop", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.strip() == f"--org: name the organisation to act for; there are: {ids[0]} (First), {ids[1]} (Second)"
    named = json.loads(printed("mcp", "config", "claude-desktop", "--org", ids[1], cwd=tmp_path))
    assert named["mcpServers"]["connectivity"]["args"][-2:] == ["--org", ids[1]]
    assert json.loads(config("cursor", tmp_path))  # a key is of one organisation


def test_a_database_that_does_not_answer_leaves_the_choice_to_the_reader(tmp_path: Path) -> None:
    made = {
        "SERVICE_DATABASE_URL": "postgresql://u:hidden@127.0.0.1:1/reseller",
        "SERVICE_SECRET_KEYS": "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    }
    done = run_reseller("mcp", "config", "claude-desktop", cwd=tmp_path, **made)
    assert done.returncode == 0 and "--org" not in done.stdout and "hidden" not in done.stderr
    assert "if it has several organisations, name one with --org" in done.stderr
