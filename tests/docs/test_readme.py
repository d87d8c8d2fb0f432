"""Every command and snippet of the documents, run as a reader runs it: by a shell, against a server of this machine."""

import json
import os
import re
import shlex
import signal
import socket
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import Selection
from registry.limits import Limits, Tier
from registry.ports import Site
from tests.databases import NO_POSTGRES, postgres_url
from tests.docs.blocks import ROOT, Block, blocks, every_block
from tests.docs.reader import ADDRESS, as_reader, done, find, others, shell
from tests.running import Running
from transports.cli.banner import curl, mcp_block
from transports.settings import BadSettings, load_settings

HOOK = "127.0.0.1:8080"
POSTGRES = "postgresql://reseller@127.0.0.1/reseller"

NOT_RUN = {  # each with what must exist for it, and the reason
    "python3 ./run serve\npython3 ./run test\n": (["run"], "starts what this test is part of; tests/cli starts `serve`"),
    "python3 ./run test\npython3 ./run test tests/docs -k settings\n.ci/run\n": (["run", ".ci/run"], "starts what this test is part of"),
    "python3 ./run test --inline-snapshot=fix\n": (
        ["run", "tests/contract/test_snapshots.py", "tests/contract/test_outcomes.py", "tests/contract/test_identities.py"],
        "rewrites tests",
    ),
    "python3 ./run bench\npython3 ./run bench --render\n": (["run", "benchmarks/__main__.py"], "takes minutes"),
    "python3 ./run simulate": (["run", "tests/simulation/main.py"], "takes minutes; tests/simulation runs some"),
    "python3 ./run kill": (["run", "tests/kill/main.py"], "takes many minutes; tests/kill runs some"),
    "reseller serve\nreseller worker\n": (["transports/cli/worker.py"], "tests/cli runs both"),
    "uv pip compile": (["requirements.in", "requirements-dev.in", "requirements-bench.in", "requirements-boot.txt"], "needs the network"),
}
POSTGRES_BLOCK = f"export SERVICE_DATABASE_URL={POSTGRES}"
WEBHOOK_BLOCK = "secret=$(reseller call"
FLEET_BLOCKS = ("reseller call list_subscribers", "token=$(curl")
CONNECT_BLOCK = "reseller org connect"
LOGIN_BLOCK = "reseller login"
TEST_CURL, LIVE_CURL = f"curl -s {ADDRESS}", "curl -s $RESELLER_URL/v1/connectivity/intents"
FIRST_BLOCKS = (TEST_CURL, LIVE_CURL, "reseller call create_connectivity_intent", "python examples/mcp_client.py")


def unrun(block: Block) -> list[str]:
    return [start for start in NOT_RUN if block.text.startswith(start)]


RUN = [
    block
    for block in [
        *others(
            "README.md", POSTGRES_BLOCK, WEBHOOK_BLOCK, *FLEET_BLOCKS, CONNECT_BLOCK, LOGIN_BLOCK, *FIRST_BLOCKS
        ),  # each has a test of its own
        *blocks("sh", document="CONTRIBUTING.md"),
    ]
    if not unrun(block)
]


@pytest.mark.parametrize("block", RUN, ids=lambda block: f"{block.document}:{block.text.split(chr(10))[0][:50]}")
def test_a_shell_block_runs_as_it_is_written(block: Block, place: Path, server: Running) -> None:
    done(place, block.text.replace(ADDRESS, server.base_url), **as_reader(server))


def test_the_first_curl_issues_a_test_esim_and_is_the_one_that_serve_prints(place: Path, server: Running) -> None:
    text = find(TEST_CURL)
    site = Site(base_url=ADDRESS, upgrade_url="", connect_url="", docs_url="", mcp_url=f"{ADDRESS}/mcp", sign_in_url="")
    assert shlex.split(text.replace("\\\n", "")) == shlex.split(curl(site, "$RESELLER_API_KEY"))
    intent = json.loads(done(place, text.replace(ADDRESS, server.base_url), **as_reader(server)))
    assert (intent["status"], intent["livemode"]) == ("succeeded", False)
    assert intent["esim"]["activation_code"].startswith("LPA:1$")


def test_the_command_line_repeats_the_curl_and_gets_the_same_esim(place: Path, server: Running) -> None:
    texts = (find(TEST_CURL), find("reseller call create_connectivity_intent"))
    first, second = (json.loads(done(place, text.replace(ADDRESS, server.base_url), **as_reader(server))) for text in texts)
    assert first == second


def test_a_live_esim_is_drawn_from_the_simulated_stock_and_drawn_once(place: Path, server: Running) -> None:
    first, second = (json.loads(done(place, find(LIVE_CURL), **as_reader(server))) for _ in range(2))
    assert first == second
    assert (first["status"], first["livemode"], first["plan"]["id"]) == ("succeeded", True, "nordic-1gb-30d")
    assert first["esim"]["activation_code"].startswith("LPA:1$")


def test_the_python_mcp_client_issues_an_esim(place: Path, server: Running) -> None:
    text = find("python examples/mcp_client.py")
    printed = done(place, text.replace(ADDRESS, server.base_url), **as_reader(server)).splitlines()
    assert printed[0].endswith(" tools")
    assert printed[1].startswith("succeeded: LPA:1$")


def test_the_python_mcp_client_says_what_is_missing(place: Path) -> None:
    process = shell(place, "unset RESELLER_API_KEY; python examples/mcp_client.py")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err == "Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.\n"


def test_the_mcp_block_is_the_one_that_serve_prints() -> None:
    [block] = blocks("json", document="README.md")
    site = Site(base_url=ADDRESS, upgrade_url="", connect_url="", docs_url="", mcp_url=f"{ADDRESS}/mcp", sign_in_url="")
    assert block.text.strip() == mcp_block(site, "ak_...")


def test_three_lines_show_a_signed_webhook(place: Path, server: Running) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    text = find(WEBHOOK_BLOCK).replace(HOOK, f"127.0.0.1:{port}").replace(" 8080 &", f" {port} &")
    process = shell(place, text + "wait", **as_reader(server))
    assert process.stdout is not None
    try:
        seen = next(line for line in process.stdout if line.startswith("esim.issued evt_"))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=10)
    assert " cni_" in seen


def test_the_fleet_can_be_looked_after_as_the_readme_says(place: Path, server: Running) -> None:
    """In one shell, since the second block needs what the first has set; the message goes out once it is confirmed."""
    said = done(place, "".join(find(start) for start in FLEET_BLOCKS), **as_reader(server))
    told = ("Anna Sandberg", "8988303700000100286", '"state": ', '"subsPackageId": ', '"status": "SUSPENDED"', '"iso2":"FR"')
    assert [words for words in told if words not in said] == []
    assert said.endswith('{"data":{"sent":true,"unicode":false,"length":21}}')


def test_the_toolsets_of_the_readme_show_what_plain_mcp_leaves_out() -> None:
    text = (ROOT / "README.md").read_text()
    names = re.search(r"`\?toolsets=([a-z]+,[a-z,]+)`", text)
    assert names
    plain, whole = CATALOGUE.chosen(Selection()), CATALOGUE.chosen(Selection(tuple(names[1].split(","))))
    left_out = {"push_steering_to_subscriber", "plan_network_default", "get_subscriber_notes", "subscriber_country_history"}
    assert left_out <= whole - plain
    assert whole == {
        o.id for name in names[1].split(",") for o in CATALOGUE.operations.values() if CATALOGUE.toolset_of[o.id] == name and o.tool
    }


def test_the_burst_limits_are_those_of_the_tiers() -> None:
    limits = Limits()
    speeds = [f"{limits.tiers[tier].burst_per_second:g}" for tier in (Tier.FREE, Tier.PRO, Tier.ENTERPRISE)]
    for page in ("README.md", "docs/upstream.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert re.findall(r"free (?:gets )?(\d+) calls a second, pro (\d+), enterprise (\d+)", text) == [tuple(speeds)]
    assert f"changes at the charging system {limits.upstream_writes_per_second:g}." in (ROOT / "README.md").read_text()


def test_an_organisation_is_connected_by_commands_that_the_page_on_the_charging_system_has_too() -> None:
    """They are run there."""
    assert set(find(CONNECT_BLOCK).splitlines()) <= set(find("reseller org list", "upstream.md").splitlines())


def test_the_login_is_the_one_of_the_page_on_people() -> None:
    """It is run there."""
    assert find(LOGIN_BLOCK) == find(LOGIN_BLOCK, "identity.md")


def test_what_production_refuses_to_start_without_is_named() -> None:
    with pytest.raises(BadSettings) as refused:
        load_settings({"SERVICE_ENV": "production"})
    text = (ROOT / "README.md").read_text()
    production = text[text.index("## Production") : text.index("## What is not there yet")]
    assert [name for name in re.findall(r"SERVICE_[A-Z_]+", str(refused.value)) if f"`{name}" not in production] == []


@pytest.mark.postgres
def test_the_postgresql_block_makes_the_tables(place: Path) -> None:
    with postgres_url() as url:
        if url is None:
            pytest.skip(NO_POSTGRES)
        text = find(POSTGRES_BLOCK).replace(POSTGRES, f"'{url}'")
        assert done(place, text).startswith("upgraded to ")


def test_what_is_not_run_is_there_and_still_in_a_document() -> None:
    assert [start for start in NOT_RUN if not any(start in unrun(block) for block in blocks("sh"))] == []
    files = [file for needed, _ in NOT_RUN.values() for file in needed]
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_every_block_is_in_a_language_that_a_test_knows() -> None:
    """sh, python and json are run or compared; text is for people."""
    assert {block.language for block in every_block()} <= {"sh", "python", "json", "text"}
    assert [(block.document, block.language) for block in blocks("python", "json")] == [
        ("README.md", "json"),
        ("CONTRIBUTING.md", "python"),
        ("intelligence.md", "json"),
    ]
