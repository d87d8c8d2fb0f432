"""`reseller issuance`: what nobody knows the outcome of, settled by a person against a charging system in a process of its own."""

import asyncio
import base64
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import sqlalchemy as sa

from storage.audit import AUDIT
from storage.engine.sql import Query
from storage.engine.store import open_store
from storage.reconciliation import require_manual
from tests.cli.network import network
from tests.cli.reseller import printed, refused, run_reseller
from tests.cli.terminal import at_terminal
from tests.databases import migrated_postgres, required_database, sqlite_url
from tests.harness.processes import running

pytestmark = pytest.mark.long

AFFECT, FREE_SIM = "affectPackageToSubscriber", "changeSimStatus"
TOKEN = "sandbox-7001-token"


class Decision(NamedTuple):
    operation: str
    principal: str
    outcome: str


DECISIONS = Query(
    Decision,
    sa.select(AUDIT.c.operation, AUDIT.c.principal, AUDIT.c.outcome)
    .where(AUDIT.c.surface == "cli", AUDIT.c.outcome.startswith("settled_"))
    .order_by(AUDIT.c.id),
)


@dataclass(slots=True)
class Counter:
    http: httpx.Client
    upstream: httpx.Client
    place: Path
    settings: dict[str, str]
    database: str
    organisation: str

    def strike(self, method: str, **fault: object) -> None:
        self.upstream.post("/control/faults", json={"method": method, **fault}).raise_for_status()

    def issue(self, key: str) -> httpx.Response:
        body = {"accountId": 8101, "packageTemplateId": 55010}
        return self.http.post("/v1/subscribers/issue-from-inventory", json=body, headers={"X-Idempotency-Key": key})

    def lose(self, key: str, *, drawn: bool = True) -> str:
        """A draw without an answer; the ICCID that it took, or would have taken."""
        free = self.free()
        self.strike(AFFECT, **{"drop_after" if drawn else "drop_before": True})
        assert self.issue(key).json()["code"] == "OUTCOME_UNKNOWN"
        return free[0]

    def roll_back(self, key: str) -> httpx.Response:
        path = f"/v1/subscribers/issue-from-inventory/{key}"
        first = self.http.delete(path)
        token = first.json().get("confirm_token", "")
        return self.http.delete(path, headers={"X-Confirm-Token": token}) if first.status_code == 202 else first

    def lose_rollback(self, key: str) -> str:
        """A rollback that stopped half way; the ICCID."""
        iccid = self.issue(key).json()["data"]["iccid"]
        self.strike(FREE_SIM, drop_before=True)
        answer = self.roll_back(key)
        assert (answer.status_code, answer.json()["details"]["status"]) == (502, "rollback_unknown")
        return iccid

    def free(self, account: int = 8101) -> list[str]:
        """The stock, by the charging system's own list."""
        body = {"listSubscriber": {"accountId": account}}
        answer = self.upstream.post("/v1", params={"token": TOKEN}, json=body).json()["listSubscriber"]["subscriberList"]
        return [row["imsiList"][-1]["iccid"] for row in answer if row["sim"]["status"] == "FREE"]

    def settle(self, key: str, *words: str) -> str:
        return printed("issuance", "settle", key, "--org", self.organisation, "--yes", *words, cwd=self.place, **self.settings)

    def refused(self, key: str, *words: str) -> tuple[int, str]:
        return refused("issuance", "settle", key, "--org", self.organisation, "--yes", *words, cwd=self.place, **self.settings)

    def listed(self, *words: str) -> dict[str, dict[str, object]]:
        shown = printed("issuance", "list", *words, cwd=self.place, **self.settings)
        return {row["key"]: row for row in json.loads(shown)["data"]}

    def decisions(self) -> list[Decision]:
        async def read() -> list[Decision]:
            store = open_store(self.database)
            try:
                return await store.read(lambda connection: connection.all(DECISIONS))
            finally:
                await store.aclose()

        return asyncio.run(read())


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with network(tmp_path_factory.mktemp("network"), "--lines", "900") as (http, _):
        yield http


@pytest.fixture(scope="module")
def counter(place: Path, upstream: httpx.Client) -> Iterator[Counter]:
    with counter_of(place, upstream, {}) as made:
        yield made


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, upstream: httpx.Client) -> Iterator[Counter]:
    """On either database, for what is asked of both."""
    if request.param == "sqlite":
        yield request.getfixturevalue("counter")
        return
    with required_database(migrated_postgres()) as url:
        given = {"SERVICE_DATABASE_URL": url, "SERVICE_SECRET_KEYS": "k1:" + base64.b64encode(bytes(32)).decode()}
        with counter_of(tmp_path_factory.mktemp("postgresql"), upstream, given) as made:
            yield made


@contextmanager
def counter_of(place: Path, upstream: httpx.Client, given: dict[str, str]) -> Generator[Counter]:
    settings = {
        "SERVICE_OCS_URL": str(upstream.base_url).rstrip("/") + "/v1",
        "SERVICE_OCS_TOKEN": TOKEN,
        "SERVICE_BURST_LIMIT": "false",
        "SERVICE_WORKER": "false",
        **given,
    }
    with running(place / "data", settings) as server:
        database = settings.get("SERVICE_DATABASE_URL") or sqlite_url(place / "data")
        organisation = printed("org", "create", "Acme", "--tier", "pro", cwd=place, **settings).strip()
        printed("org", "connect", organisation, "--account", "8101", cwd=place, **settings)
        key = printed("keys", "create", "test", "--org", organisation, cwd=place, **settings).strip()
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as http:
            yield Counter(http, upstream, place, settings, database, organisation)


def test_an_intent_that_a_person_settles_as_issued_succeeds_and_tells_of_it_once(either: Counter) -> None:
    plan = next(plan["id"] for plan in either.http.get("/v1/connectivity/plans").json()["data"] if plan["livemode"])
    iccid = either.free()[0]
    either.strike(AFFECT, drop_after=True)
    buying = ("/v1/connectivity/intents", {"plan": plan}, {"Idempotency-Key": "buy-1"})
    intent = either.http.post(buying[0], json=buying[1], headers=buying[2]).json()
    assert (intent["status"], intent["error"]["code"]) == ("processing", "OUTCOME_UNKNOWN")
    row = either.listed("--unknown")[intent["id"]]
    assert (row["state"], row["account"], row["iccid"], row["organisation"]) == ("outcome_unknown", 8101, None, either.organisation)
    assert either.settle(intent["id"], "--issued", iccid) == f"{intent['id']} of {either.organisation} is issued: {iccid}\n"
    now = either.http.get(f"/v1/connectivity/intents/{intent['id']}").json()
    assert (now["status"], now["error"], now["esim"]["iccid"]) == ("succeeded", None, iccid)
    again = either.http.post(buying[0], json=buying[1], headers=buying[2])
    assert (again.status_code, again.json(), again.headers["idempotent-replayed"]) == (201, now, "true")
    events = either.http.get("/v1/connectivity/events", params={"intent": intent["id"]}).json()["data"]
    assert [(event["type"], event["data"]["iccid"]) for event in events] == [("esim.issued", iccid)]
    assert intent["id"] not in either.listed("--unknown")


def test_a_key_that_is_settled_as_issued_answers_with_the_esim(counter: Counter) -> None:
    iccid = counter.lose("drawn")
    counter.settle("drawn", "--issued", iccid, "--by", "kari")
    again = counter.issue("drawn")
    assert (again.status_code, again.json()["data"]["iccid"], again.headers["idempotent-replayed"]) == (201, iccid, "true")
    assert counter.decisions()[-1] == Decision("issue_esim_from_inventory", "kari", "settled_issued")
    assert counter.listed()["drawn"]["note"] == "settled by kari"
    assert counter.roll_back("drawn").json()["data"]["status"] == "rolled_back"


def test_a_key_that_is_settled_as_failed_says_that_nothing_was_drawn(counter: Counter) -> None:
    counter.lose("not-drawn", drawn=False)
    assert counter.settle("not-drawn", "--failed", "--early") == f"not-drawn of {counter.organisation} is failed\n"
    again = counter.issue("not-drawn")
    assert (again.status_code, again.json()["code"]) == (502, "issuance_failed")
    assert again.json()["hint"] == "Use a new key to draw one"
    assert counter.decisions()[-1].outcome == "settled_failed"


def test_a_rollback_is_settled_as_done_or_as_not_done(either: Counter) -> None:
    iccid = either.lose_rollback("gone")
    row = either.listed("--unknown", "--org", either.organisation)["gone"]
    assert (row["state"], row["iccid"]) == ("rollback_unknown", iccid)
    command = f"reseller issuance settle gone --org {either.organisation}"
    assert row["next"] == f"look at the line {iccid}; package gone: {command} --rolled-back; still there: --still-issued"
    assert either.settle("gone", "--rolled-back") == f"gone of {either.organisation} is rolled_back\n"
    assert either.roll_back("gone").json()["data"]["status"] == "rolled_back"
    kept = either.lose_rollback("kept")
    assert either.settle("kept", "--still-issued") == f"kept of {either.organisation} is issued: {kept}\n"
    assert either.roll_back("kept").json()["data"]["status"] == "rolled_back"
    assert [decision.outcome for decision in either.decisions()[-2:]] == ["settled_rolled_back", "settled_still_issued"]


def test_an_esim_that_cannot_be_it_is_refused(counter: Counter) -> None:
    taken = counter.issue("somebody").json()["data"]["iccid"]
    iccid = counter.lose("which")
    before = counter.decisions()
    foreign, stock = counter.free(8102)[0], counter.free()[0]
    told = {wrong: counter.refused("which", "--issued", wrong) for wrong in (taken, foreign, stock, "8988000000000000000")}
    assert told == {
        taken: (1, f"which: The eSIM {taken} belongs to the issuance somebody of {counter.organisation}\n"),
        foreign: (1, f"which: The line {foreign} is not of account 8101, which the eSIM was to be drawn from\n"),
        stock: (1, f"which: The SIM of {stock} is in stock, so it was not drawn, or was given back\n"),
        "8988000000000000000": (1, "which: The charging system has no line 8988000000000000000 that this organisation could have\n"),
    }
    assert counter.decisions() == before
    counter.settle("which", "--issued", iccid)


def test_what_is_not_open_is_not_settled(counter: Counter) -> None:
    counter.lose("once", drawn=False)
    assert counter.refused("once", "--rolled-back") == (1, "once: is outcome_unknown, which is settled with --issued ICCID or --failed\n")
    counter.settle("once", "--failed", "--early")
    assert counter.refused("once", "--failed") == (1, "once: is failed, so there is nothing to settle\n")
    counter.lose_rollback("half")
    assert counter.refused("half", "--failed") == (1, "half: is rollback_unknown, which is settled with --rolled-back or --still-issued\n")
    assert counter.refused("nobody", "--failed")[0] == 1
    rule = "give exactly one of --issued ICCID, --failed, --rolled-back and --still-issued: what you found at the charging system\n"
    assert counter.refused("once") == counter.refused("once", "--failed", "--rolled-back") == (2, rule)
    counter.settle("half", "--rolled-back")


def test_in_a_pipe_nobody_is_asked_and_nothing_is_settled(counter: Counter) -> None:
    counter.lose("asked", drawn=False)
    words = ("issuance", "settle", "asked", "--org", counter.organisation, "--failed", "--early")
    done = run_reseller(*words, cwd=counter.place, **counter.settings)
    assert done.returncode == 2
    assert done.stderr == "asked: --yes settles it without asking, where nobody can be asked; `reseller issuance list` shows the row\n"
    counter.settle("asked", "--failed", "--early")


def test_a_person_at_a_terminal_sees_what_is_known_and_decides(counter: Counter) -> None:
    iccid = counter.lose("shown")

    async def wait() -> None:
        store = open_store(counter.database)
        await store.write(require_manual, organisation=counter.organisation, key="shown", obstacle="equal_keys", now=1.0)
        await store.aclose()

    asyncio.run(wait())
    words = ("issuance", "settle", "shown", "--org", counter.organisation, "--issued", iccid)
    code, screen = at_terminal(*words, cwd=counter.place, settings=counter.settings, typed="n\n")
    assert (code, "nothing was changed" in screen, "The account now:" in screen, iccid in screen) == (1, True, True, True)
    assert "LPA:1$" not in screen and "\\u001b" not in screen
    _, screen = at_terminal("issuance", "list", "--unknown", cwd=counter.place, settings=counter.settings)
    assert "manual_reconciliation_required" in screen and "\\u001b" not in screen and "\x1b[1m" in screen
    code, screen = at_terminal(*words, cwd=counter.place, settings=counter.settings, typed="y\n")
    assert (code, "shown of" in screen) == (0, True)
    assert counter.issue("shown").json()["data"]["iccid"] == iccid
    _, screen = at_terminal("issuance", "list", "--limit", "1", cwd=counter.place, settings=counter.settings)
    assert iccid in screen


def test_a_network_inside_the_server_cannot_be_asked_from_here(counter: Counter) -> None:
    iccid = counter.lose("inside")
    inside = {name: value for name, value in counter.settings.items() if not name.startswith("SERVICE_OCS")}
    words = ("issuance", "settle", "inside", "--org", counter.organisation, "--yes")
    code, message = refused(*words, "--issued", iccid, cwd=counter.place, **inside)
    assert code == 1
    assert message.startswith(f"--issued {iccid}: the charging system is simulated inside the server's process, so this command cannot")
    assert counter.listed("--unknown")["inside"]["state"] == "outcome_unknown"
    counter.settle("inside", "--issued", iccid)


def test_what_there_is_not_is_named(counter: Counter) -> None:
    message = refused("issuance", "list", "--org", "org_none", cwd=counter.place, **counter.settings)
    assert message == (1, "--org org_none: no such organisation; `reseller org list` names them\n")
    other = printed("org", "create", "Other", cwd=counter.place, **counter.settings).strip()
    counter.issue("acmes")
    assert (counter.listed("--org", other), "acmes" in counter.listed("--org", counter.organisation)) == ({}, True)
    message = refused("issuance", "settle", "acmes", "--org", other, "--failed", "--yes", cwd=counter.place, **counter.settings)
    assert message == (1, f"acmes: {other} issued nothing under this key; `reseller issuance list --unknown`\n")
