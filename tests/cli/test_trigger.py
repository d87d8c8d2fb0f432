"""`reseller trigger`: the events really happen, on test intents only."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.reseller import printed, refused
from tests.cli.terminal import at_terminal
from tests.harness.processes import Running, running

INTERNAL = "the-bridge-of-this-test"


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Running]:
    with running(place / "data", {"SERVICE_BURST_LIMIT": "false", "SERVICE_INTERNAL_API_KEY": INTERNAL}) as server:
        yield server


@pytest.fixture(params=["local", "remote"])
def where(request: pytest.FixtureRequest, server: Running) -> dict[str, str]:
    """The settings that make a command write the database here, or call the server."""
    if request.param == "local":
        return {}
    return {**there(server), "SERVICE_INTERNAL_API_KEY": INTERNAL}


def there(server: Running) -> dict[str, str]:
    return {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}


def triggered(*words: str, place: Path, **settings: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in printed("trigger", *words, cwd=place, **settings).splitlines()]


def types(events: list[dict[str, object]]) -> list[object]:
    return [event["type"] for event in events]


def test_an_esim_is_issued(place: Path, where: dict[str, str]) -> None:
    [event] = triggered("esim.issued", place=place, **where)
    data = event["data"]
    assert (event["type"], event["livemode"]) == ("esim.issued", False) and isinstance(data, dict)
    intent = json.loads(printed("call", "get_connectivity_intent", "--id", data["intent"], cwd=place, **where))
    assert (intent["status"], intent["esim"]["iccid"]) == ("succeeded", data["iccid"])


def test_a_new_esim_attaches_and_an_old_one_when_it_is_named_but_only_once(place: Path, where: dict[str, str]) -> None:
    assert types(triggered("esim.first_attach", place=place, **where)) == ["esim.issued", "esim.first_attach"]
    [issued] = triggered("esim.issued", place=place, **where)
    intent = str(dict(issued["data"])["intent"])  # pyright: ignore[reportArgumentType, reportCallIssue]  # decoded JSON
    [attached] = triggered("esim.first_attach", "--intent", intent, place=place, **where)
    data = attached["data"]
    assert isinstance(data, dict) and (data["intent"], data["country"]) == (intent, "AE")
    code, message = refused("trigger", "esim.first_attach", "--intent", intent, cwd=place, **where)
    told = f"no event came of it: {intent} had its esim.first_attach before, and each comes once; leave --intent out for a new one\n"
    assert (code, message) == (1, told)


@pytest.mark.cases
@pytest.mark.parametrize(("percent", "crossed"), [("50", [50]), ("80", [50, 80]), ("100", [50, 80, 100])])
def test_usage_crosses_the_thresholds_of_the_plan(percent: str, crossed: list[int], place: Path, where: dict[str, str]) -> None:
    issued, *reached = triggered("usage.threshold_reached", "--percent", percent, place=place, **where)
    assert issued["type"] == "esim.issued"
    seen = [event["data"] for event in reached]
    assert [data["threshold_percent"] for data in seen if isinstance(data, dict)] == crossed


def test_a_person_reads_lines(place: Path, server: Running) -> None:
    code, shown = at_terminal("trigger", "usage.threshold_reached", cwd=place, settings=there(server))
    assert code == 0
    assert [line.split()[1] for line in shown.splitlines()] == ["esim.issued", "usage.threshold_reached"]
    assert shown.splitlines()[1].endswith("threshold_percent=50  used_mb=500.0  data_mb=1000")


def made_live(place: Path, intent: str) -> None:
    """No live eSIM can be issued here, so one is written down as such."""
    with closing(sqlite3.connect(place / "data" / "service.db")) as database:
        assert database.execute("update intent set livemode = 1 where id = ?", (intent,)).rowcount == 1
        database.commit()


@pytest.mark.cases
@pytest.mark.parametrize("event", ["esim.first_attach", "usage.threshold_reached"])
def test_a_live_intent_is_refused_and_stays_as_it_is(event: str, place: Path, where: dict[str, str]) -> None:
    [issued] = triggered("esim.issued", place=place, **where)
    data = issued["data"]
    assert isinstance(data, dict)
    made_live(place, data["intent"])
    code, message = refused("trigger", event, "--intent", data["intent"], cwd=place, **where)
    assert code == 1
    assert message == f"{data['intent']} is live: a trigger is a test and touches no real SIM; leave --intent out for a test intent\n"
    events = json.loads(printed("call", "list_connectivity_events", "--intent", data["intent"], cwd=place, **where))["data"]
    assert types(events) == ["esim.issued"]


def test_an_intent_without_an_esim_is_refused(place: Path, where: dict[str, str]) -> None:
    waiting = json.loads(printed("call", "create_connectivity_intent", cwd=place, **where))["id"]
    code, message = refused("trigger", "usage.threshold_reached", "--intent", waiting, cwd=place, **where)
    assert (code, message) == (1, f"{waiting} has no eSIM yet (requires_plan); choose its plan with confirm_connectivity_intent\n")


def test_an_intent_that_is_not_ones_own_is_unknown(place: Path, where: dict[str, str]) -> None:
    code, message = refused("trigger", "esim.first_attach", "--intent", "cni_none", cwd=place, **where)
    assert code == 1 and "[not_found]" in message


def test_an_issued_event_takes_no_intent(place: Path) -> None:
    told = "--intent: esim.issued is about a new intent; leave the option out\n"
    assert refused("trigger", "esim.issued", "--intent", "cni_1", cwd=place) == (2, told)


def test_the_key_of_the_bridge_is_asked_for_and_checked(place: Path, server: Running) -> None:
    code, message = refused("trigger", "esim.first_attach", cwd=place, **there(server))
    assert (code, message.partition(":")[0]) == (2, "--internal-key") and "SERVICE_INTERNAL_API_KEY" in message
    code, message = refused("trigger", "esim.first_attach", "--internal-key", "wrong", cwd=place, **there(server))
    told = f"--internal-key: {server.base_url} does not accept it; it is the server's SERVICE_INTERNAL_API_KEY\n"
    assert (code, message) == (1, told)
