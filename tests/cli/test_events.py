"""`reseller events tail`: every event once, in order, whatever happens in between."""

import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest

from tests.cli.follower import Follower, following
from tests.cli.reseller import printed, refused
from tests.cli.terminal import at_terminal
from tests.examples.conftest import program
from tests.harness.fork_server import reseller
from tests.harness.processes import COMMAND, Child, Running, environment, free_port, running

FOLLOWING = "following the events of "
DAY_SECONDS = 86_400
DAY_END_SECONDS = 120
"""The last seconds of a day (UTC), in which its quota is as good as new again before a test has used it up."""


def left_of_the_day() -> float:
    """Seconds until the quota of the day begins anew."""
    return DAY_SECONDS - time.time() % DAY_SECONDS


@pytest.fixture
def within_one_day() -> None:
    """A test that begins at the end of a day begins with the next one."""
    if left_of_the_day() < DAY_END_SECONDS:
        time.sleep(left_of_the_day())


@pytest.fixture(params=["local", "remote"])
def where(request: pytest.FixtureRequest, server: Running) -> dict[str, str]:
    """The settings that make a command read the database here, or ask the server."""
    return {} if request.param == "local" else there(server)


def there(server: Running) -> dict[str, str]:
    return {"RESELLER_URL": server.base_url, "RESELLER_API_KEY": str(server.api_key)}


def client(base_url: str, key: str | None) -> httpx.Client:
    return httpx.Client(base_url=f"{base_url}/v1/connectivity", headers={"Authorization": f"Bearer {key}"}, timeout=60)


def issue(http: httpx.Client, *names: str) -> list[str]:
    """The intents that were made, one for each name."""
    made: list[str] = []
    for name in names:
        answer = http.post("/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": name})
        assert answer.status_code == 201, answer.text
        made.append(answer.json()["id"])
    return made


def intents(lines: list[str]) -> list[str]:
    return [json.loads(line)["data"]["intent"] for line in lines]


@pytest.mark.long
def test_thirty_events_between_two_looks_are_printed_once_each_in_order(place: Path, server: Running, where: dict[str, str]) -> None:
    with client(server.base_url, server.api_key) as http, following("events", "tail", "--every", "0.5", cwd=place, **where) as tail:
        tail.told(FOLLOWING)
        made = issue(http, *(f"{len(where)}-{number}" for number in range(30)))
        printed = [tail.line() for _ in made]
        made += issue(http, f"{len(where)}-afterwards")
        printed.append(tail.line())
        assert tail.interrupted() == (0, [])
    assert intents(printed) == made
    assert json.loads(printed[0]).keys() == {"id", "object", "type", "livemode", "created", "data"}


@pytest.mark.long
def test_the_newest_are_printed_first_and_the_count_ends_it(place: Path, server: Running, where: dict[str, str]) -> None:
    with client(server.base_url, server.api_key) as http:
        made = issue(http, *(f"last-{len(where)}-{number}" for number in range(25)))
    assert intents(printed("events", "tail", "--last", "23", "--count", "23", cwd=place, **where).splitlines()) == made[2:]
    whole = printed("events", "tail", "--from-start", "--count", "25", cwd=place, **where).splitlines()
    oldest = printed("events", "tail", "--last", "1000", "--count", "1", cwd=place, **where).splitlines()
    assert (len(whole), whole[:1]) == (25, oldest)


def test_events_are_chosen_by_intent_and_by_type(place: Path, server: Running, where: dict[str, str]) -> None:
    with client(server.base_url, server.api_key) as http:
        [one, _] = issue(http, f"chosen-{len(where)}", f"other-{len(where)}")
        used = http.post("/usage_records", json={"intent": one, "quantity_mb": 900}, headers={"Idempotency-Key": f"used-{len(where)}"})
        assert used.status_code == 201
    words = ("events", "tail", "--from-start", "--intent", one)
    of_intent = [json.loads(line)["type"] for line in printed(*words, "--count", "3", cwd=place, **where).splitlines()]
    assert of_intent == ["esim.issued", "usage.threshold_reached", "usage.threshold_reached"]
    words = ("events", "tail", "--last", "2", "--count", "2", "--type", "usage.threshold_reached")
    of_type = [json.loads(line)["data"] for line in printed(*words, cwd=place, **where).splitlines()]
    assert [(data["intent"], data["threshold_percent"]) for data in of_type] == [(one, 50), (one, 80)]


def test_a_person_reads_a_line_for_each_event(place: Path, server: Running) -> None:
    with client(server.base_url, server.api_key) as http:
        [made] = issue(http, "a-line")
        iccid = http.get(f"/intents/{made}").json()["esim"]["iccid"]
    code, shown = at_terminal("events", "tail", "--last", "1", "--count", "1", cwd=place, settings=there(server))
    assert code == 0
    told, line = shown.splitlines()
    assert told == f"{FOLLOWING}{server.base_url}; Ctrl-C ends"
    time, *words = line.split()
    assert time.endswith("Z") and words == ["esim.issued", made, iccid, "test_eu_1gb"]
    _, as_json = at_terminal("events", "tail", "--last", "1", "--count", "1", "--json", cwd=place, settings=there(server))
    assert json.loads(as_json.splitlines()[1])["data"]["intent"] == made


@contextmanager
def serving(folder: Path, port: int) -> Generator[tuple[str, str | None]]:
    """A server on a port that is chosen: its address and, from the first start, its key."""
    words = [reseller(), "serve", "--port", str(port), "--data", str(folder / "data"), "--json"]
    with Child(words, cwd=folder, env=environment({"SERVICE_LOG": "off"}), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = json.loads(process.stdout.readline())
            yield printed["base_url"], printed["api_key"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.long
def test_a_restart_of_the_server_in_the_middle_is_told_and_loses_nothing(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as server:
        url, key = server.enter_context(serving(tmp_path, port))
        with client(url, key) as http:
            made = issue(http, "before")
        with following("events", "tail", "--last", "1", "--every", "0.2", "--url", url, "--key", str(key), cwd=tmp_path) as tail:
            tail.told(FOLLOWING)
            printed = [tail.line()]
            server.close()
            tail.told(f"{url} does not answer; nothing is lost, the next try is in 1 s")
            server.enter_context(serving(tmp_path, port))
            with client(url, key) as http:
                made += issue(http, "one", "two", "three")
            tail.told(f"{url} answers again")
            printed += [tail.line() for _ in range(3)]
            assert tail.interrupted() == (0, [])
    assert intents(printed) == made


@pytest.mark.long
@pytest.mark.usefixtures("within_one_day")
def test_a_call_too_many_is_told_and_waited_for(tmp_path: Path) -> None:
    """The organisation's other programs use up what it may call, at 5 a second; later they leave some."""
    with running(tmp_path / "data") as server, client(server.base_url, server.api_key) as http:
        printed("org", "set-tier", server.organisation, "free", cwd=tmp_path)
        with following("events", "tail", cwd=tmp_path, **there(server)) as tail:
            begins_to_follow(tail, every=1)
            told = Thread(target=tail.told, args=("429 rate_limited; nothing is lost, the next try is in 1 s",))
            told.start()
            with ThreadPoolExecutor(16) as others:  # as many at once are too many a second, however slow the machine is

                def call() -> None:
                    while told.is_alive():
                        http.get("/plans")

                for _ in range(16):
                    others.submit(call)
            tail.told(f"{server.base_url} answers again")
            made = issue(http, "at-last")
            assert intents([tail.line()]) == made


def begins_to_follow(tail: Follower, *, every: float) -> None:
    """It follows, and has said before how long a free organisation's 1,000 calls last, unless the day ends before."""
    if left_of_the_day() > 1000 * every:
        tail.told("each look takes one of the ")
    tail.told(FOLLOWING)


def used_up(place: Path) -> None:
    """As if the free tier's 1,000 calls of today had been made."""
    with closing(sqlite3.connect(place / "data" / "service.db")) as database:
        assert database.execute("update quota set used = 1000").rowcount > 0
        database.commit()


@pytest.mark.long
@pytest.mark.usefixtures("within_one_day")
def test_the_quota_of_the_day_that_is_used_up_is_told_with_the_time_it_begins_anew(tmp_path: Path) -> None:
    with running(tmp_path / "data", {"SERVICE_BURST_LIMIT": "false"}) as server, client(server.base_url, server.api_key) as http:
        printed("org", "set-tier", server.organisation, "free", cwd=tmp_path)
        with following("events", "tail", "--every", "0.2", cwd=tmp_path, **there(server)) as tail:
            begins_to_follow(tail, every=0.2)
            used_up(tmp_path)
            while http.get("/plans").status_code == 200:  # what the server had leased
                continue
            said_so = tail.told("429 quota_exceeded; nothing is lost, the next try is in ")
            assert said_so.endswith("T00:00:00Z)")
            assert tail.interrupted() == (0, [])


def test_a_key_that_is_not_known_ends_it_and_says_where_it_is_given(place: Path, server: Running) -> None:
    for words in (("events", "tail"), ("webhooks", "list"), ("trigger", "esim.issued")):
        code, message = refused(*words, "--url", server.base_url, "--key", "ak_wrong", cwd=place)
        assert code == 1
        assert "[unauthorized]" in message and "  Here the credential is given with --key or RESELLER_API_KEY\n" in message


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--url", "http://127.0.0.1:1"), 3, "--url: http://127.0.0.1:1 does not answer (refused); is the server running there?\n"),
        (("--type", "esim.lost"), 2, "--type esim.lost: no such type; there are esim.issued, esim.first_attach, usage.threshold_reached\n"),
        (("--from-start", "--last", "3"), 2, "--last: is contained in --from-start; leave one of them out\n"),
    ],
    ids=["no-server", "type", "both"],
)
def test_what_cannot_be_followed_is_told_at_once(words: tuple[str, ...], code: int, message: str, place: Path) -> None:
    assert refused("events", "tail", *words, cwd=place) == (code, message)


def test_an_address_that_is_no_service_is_told(place: Path, server: Running) -> None:
    code, message = refused("events", "tail", "--url", f"{server.base_url}/elsewhere", "--key", str(server.api_key), cwd=place)
    assert code == 1 and "[not_found]" in message


PROBE = """
import sys
from transports.cli.main import make_app
make_app(["events", "tail"])
print(*sys.modules)
"""
LATE = {"mcp", "httpx", "httpx2", "aiohttp", "jwt", "cryptography", "alembic", "psycopg", "rich", "jinja2", "segno", "starlette", "uvicorn"}


@pytest.mark.long
def test_the_commands_cost_the_others_no_slow_import(tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMAND[0], "-P", "-c", PROBE], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=30, check=True
    )
    assert LATE & set(done.stdout.split()) == set()


@pytest.mark.long
def test_what_the_demos_shop_sells_is_told_in_order_while_it_sells(place: Path, server: Running) -> None:
    with following("events", "tail", "--types", "order.*", cwd=place, **there(server)) as tail:
        tail.told("following order.* of ")
        bought = program("shop_visit.py", f"{server.base_url}/shop/demo", "--plan", "nordics-1gb", "--keep")
        assert bought.returncode == 0, bought.stdout + bought.stderr
        told = [json.loads(tail.line()) for _ in range(3)]
        assert tail.interrupted() == (0, [])
    assert [event["type"] for event in told] == ["order.created", "order.paid", "order.ready"]
    with client(server.base_url, server.api_key) as http:
        [order] = http.get(f"{server.base_url}/v1/storefronts/orders").json()["data"]
    assert [event["data"]["order"] for event in told] == [order["id"]] * 3


def wait_for_places(http: httpx.Client, made: list[str]) -> None:
    """Until the log has the events of these intents: an event gets its place soon after its commit, and who follows begins behind it."""
    whole = {"follow": "false", "cursor": "0", "types": "esim.issued"}
    for _ in range(1200):
        if all(intent in http.get("/events/stream", params=whole).text for intent in made):
            return
    raise AssertionError("an event gets no place")


@pytest.mark.long
def test_types_of_the_log_are_followed_in_its_order(place: Path, server: Running, where: dict[str, str]) -> None:
    with client(server.base_url, server.api_key) as http:
        made = issue(http, f"log-{len(where)}-1", f"log-{len(where)}-2")
        wait_for_places(http, made)
    words = ("events", "tail", "--types", "esim.*", "--every", "0.2")
    with client(server.base_url, server.api_key) as http, following(*words, cwd=place, **where) as tail:
        tail.told("following esim.* of ")
        made += issue(http, f"log-{len(where)}-3")
        assert intents([tail.line()]) == made[2:]
        assert tail.interrupted() == (0, [])
    newest = printed(*words, "--last", "3", "--count", "3", cwd=place, **where).splitlines()
    assert intents(newest) == made
    _, refusal = refused("events", "tail", "--types", "ordre.*", "--count", "1", cwd=place, **where)
    assert "no type of events fits" in refusal
    assert "--types" in refused("events", "tail", "--types", "esim.*", "--intent", made[0], cwd=place, **where)[1]
