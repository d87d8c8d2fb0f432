"""`reseller plan apply` of a key that asks: the command that is printed gets the result, and asks nobody a second time."""

import shlex
from pathlib import Path

import orjson
import pytest

from tests.cli.reseller import printed, refused
from tests.harness.processes import Running


@pytest.fixture(scope="module")
def agent(place: Path, server: Running) -> dict[str, str]:
    """The environment of a program whose every write waits for a person."""
    owner = {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}
    limits = '{"name": "agent", "restrictions": {"approval": "every_write"}}'
    made = printed("call", "create_api_key", "--json", "--json-input", limits, cwd=place, **owner)
    return {**owner, "RESELLER_API_KEY": orjson.loads(made)["secret"]}


def planned(place: Path, agent: dict[str, str], *words: str) -> str:
    lines = orjson.loads(printed("call", "query_fleet", "--status", "ACTIVE", "--limit", "1", "--json", cwd=place, **agent))["data"]
    return orjson.loads(printed("plan", *words, "--iccid", lines[0]["iccid"], "--json", cwd=place, **agent))["id"]


def waiting(place: Path, agent: dict[str, str]) -> list[str]:
    said = printed("call", "list_approvals", "--state", "waiting", "--json", cwd=place, **agent)
    return [each["id"] for each in orjson.loads(said)["data"]]


@pytest.mark.long
def test_the_printed_command_repeats_the_call_that_waits(place: Path, agent: dict[str, str]) -> None:
    set_id = planned(place, agent, "set-status", "SUSPENDED")
    code, said = refused("plan", "apply", set_id, cwd=place, **agent)
    assert code == 1 and "Have it approved at " in said
    again = said.partition("then this gets the result: ")[2].splitlines()[0]
    assert again.startswith(f"reseller plan apply {set_id} --idempotency-key idk_")
    asked = waiting(place, agent)
    code, repeated = refused(*shlex.split(again)[1:], cwd=place, **agent)
    assert code == 1 and again in repeated and repeated.count("--idempotency-key") == 1
    assert len(asked) == 1 and waiting(place, agent) == asked
    refused("plan", "apply", set_id, "--idempotency-key", "of-mine", cwd=place, **agent)
    code, repeated = refused("plan", "apply", set_id, "--idempotency-key", "of-mine", cwd=place, **agent)
    assert f"reseller plan apply {set_id} --idempotency-key of-mine\n" in repeated and len(waiting(place, agent)) == 2


@pytest.mark.long
def test_a_set_that_asks_for_a_confirmation_names_the_command_that_gives_it(place: Path, server: Running, agent: dict[str, str]) -> None:
    owner = {**agent, "RESELLER_API_KEY": str(server.api_key)}
    set_id = planned(place, owner, "end-of-life")
    code, said = refused("plan", "apply", set_id, cwd=place, **owner)
    assert code == 1 and f"To do it: reseller plan apply {set_id} --yes\n" in said and "confirm-token" not in said
    printed("plan", "cancel", set_id, cwd=place, **owner)
