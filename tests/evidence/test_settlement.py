"""An admin says what became of an issuance whose outcome is unknown: after a day, not against evidence, and once."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from operations.ledger.reconciliation import Reconciliation
from registry.caller import Role, Tier
from storage.journal import StoreJournal
from tests.contract.stage import StubProvider
from tests.evidence.issuing import OTHER_ACCOUNT, Issuing, open_issuing
from tests.fulfilment.mortal import Killed, Mortal
from tests.mcp.house import request, wire_headers
from tests.network_facts import ACCOUNT, HOUR
from tests.registry.ledgers import audited_of
from tests.stage import without_request_id

DAY = 24 * HOUR
REASON = "Nothing left the stock; Ada (ada@example.com) looked, code=4711"
KEPT = "Nothing left the stock; Ada (***@***) looked, code=***"
UNKNOWN_ICCID = "8988303700009999999"


@dataclass(slots=True)
class SettlementStage:
    issuing: Issuing
    session: str
    person: str

    def client(self, session: str | None = None) -> httpx.AsyncClient:
        return self.issuing.world.client(session or self.session)

    async def admin(self, organisation: str | None = None, role: Role = Role.ADMIN) -> str:
        """The session of one more person of an organisation, without one of the operator's."""
        world, organisation = self.issuing.world, organisation or self.issuing.operator.organisation
        subject = world.ids.new("sub_")
        await world.join(await world.person(subject=subject), organisation, role)
        return f"session.{subject}.{organisation}"

    async def ask(
        self,
        key: str,
        outcome: str,
        iccid: str | None = None,
        *,
        session: str | None = None,
        headers: dict[str, str] | None = None,
        **body: Any,
    ) -> httpx.Response:
        """One call, without a confirm token unless `headers` has one."""
        given = {"outcome": outcome, "reason": REASON, **({} if iccid is None else {"iccid": iccid}), **body}
        async with self.client(session) as http:
            return await http.post(f"/v1/subscribers/issue-from-inventory/{key}/settlement", json=given, headers=headers or {})

    async def settle(
        self, key: str, outcome: str, iccid: str | None = None, *, session: str | None = None, once: str | None = None, **body: Any
    ) -> httpx.Response:
        """The call with its confirmation; a refusal of the first is given as it is."""
        headers = {} if once is None else {"Idempotency-Key": once}
        asked = await self.ask(key, outcome, iccid, session=session, headers=headers, **body)
        if asked.status_code != 202:
            return asked
        headers["X-Confirm-Token"] = asked.json()["confirm_token"]
        return await self.ask(key, outcome, iccid, session=session, headers=headers, **body)

    async def lost(self, key: str = "order-1", *, drawn: bool = True, seconds: float = DAY + 1) -> str | None:
        """A draw whose answer was lost so long ago, and that no worker has looked into; the ICCID that it took."""
        before = set(self.issuing.drawn())
        await self.issuing.lose(key, drawn=drawn)
        self.issuing.world.clock.advance(seconds)
        return next(iter(set(self.issuing.drawn()) - before), None)

    async def settlements(self) -> list[tuple[str, str]]:
        """Who ended an issuance, and how, by the audit log."""
        await self.issuing.world.journal.flush()
        rows = await self.issuing.world.store.read(audited_of, organisation=self.issuing.operator.organisation)
        return [(row.principal, row.outcome) for row in rows if row.outcome.startswith(("settled_", "reconciled_"))]


async def staged(issuing: Issuing) -> SettlementStage:
    issuing.world.pipeline.sessions = StubProvider()
    world, organisation = issuing.world, issuing.operator.organisation
    person = await world.person(subject="sub_ada")
    await world.join(person, organisation)
    return SettlementStage(issuing, f"session.sub_ada.{organisation}", person)


@pytest.fixture
async def stage(issuing: Issuing) -> SettlementStage:
    return await staged(issuing)


@pytest.fixture
async def on_both(tmp_path: Path, database_url: str | None) -> AsyncGenerator[SettlementStage]:
    async with open_issuing(tmp_path, database_url) as issuing:
        yield await staged(issuing)


async def test_an_issuance_that_an_admin_settles_as_issued_is_its_keys_answer_and_names_them(stage: SettlementStage) -> None:
    iccid = await stage.lost()
    answer = await stage.settle("order-1", "issued", iccid)
    assert (answer.status_code, answer.json()["data"]["status"], answer.json()["data"]["iccid"]) == (200, "issued", iccid), answer.text
    again = await stage.issuing.issue("order-1")
    assert (again.status_code, again.json()["data"]["iccid"], again.headers["idempotent-replayed"]) == (201, iccid, "true")
    assert (await stage.issuing.events(), stage.issuing.affects()) == ([iccid], 1)
    assert (await stage.issuing.row("order-1")).note == f"settled by {stage.person}: {KEPT}"
    assert await stage.settlements() == [(stage.person, "settled_issued")]
    async with stage.client() as http:
        (row,) = (await http.get("/v1/audit-log", params={"operation": "settle_issuance", "outcome": "ok"})).json()["data"]
    assert (row["principal"], row["change"]) == (stage.person, f"order-1: outcome_unknown -> issued ({KEPT})")
    assert await stage.issuing.look() == 0


async def test_an_issuance_that_drew_nothing_is_settled_as_not_issued(stage: SettlementStage) -> None:
    await stage.lost(drawn=False)
    answer = await stage.settle("order-1", "not_issued")
    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "failed"), answer.text
    again = await stage.issuing.issue("order-1")
    assert (again.status_code, again.json()["code"]) == (502, "issuance_failed")
    twice = await stage.settle("order-1", "not_issued")
    assert (twice.status_code, twice.json()["code"]) == (409, "issuance_not_settled")
    assert await stage.settlements() == [(stage.person, "settled_failed")]


async def test_an_issuance_is_not_settled_by_an_admin_within_its_first_day(stage: SettlementStage) -> None:
    await stage.lost(drawn=False, seconds=DAY - 60)
    early = await stage.settle("order-1", "not_issued")
    assert (early.status_code, early.json()["code"]) == (409, "settlement_too_early")
    command = f"reseller issuance settle order-1 --org {stage.issuing.operator.organisation}"
    assert command in early.json()["hint"]
    assert await stage.issuing.state("order-1") == "outcome_unknown"
    stage.issuing.world.clock.advance(61)
    assert (await stage.settle("order-1", "not_issued")).status_code == 200


async def test_nothing_is_settled_against_what_the_charging_system_shows(stage: SettlementStage) -> None:
    before = stage.issuing.outsider().iccid
    stage.issuing.world.clock.advance(HOUR)
    iccid = await stage.lost()
    told = await stage.settle("order-1", "not_issued")
    assert (told.status_code, told.json()["code"]) == (409, "settlement_against_evidence"), told.text
    assert iccid is not None and iccid in told.json()["error"] and "reseller issuance settle" in told.json()["hint"]
    assert (await stage.settle("order-1", "issued", iccid)).status_code == 200
    await stage.lost("order-2", drawn=False)
    clear = await stage.settle("order-2", "issued", before)
    assert (clear.status_code, "nothing was drawn for it" in clear.json()["error"]) == (409, True), clear.text
    late = await stage.settle("order-2", "issued", stage.issuing.outsider().iccid)
    assert (late.status_code, "at another time" in late.json()["error"]) == (409, True), late.text
    assert await stage.issuing.state("order-2") == "outcome_unknown"


@pytest.mark.long
async def test_of_two_keys_that_may_have_drawn_one_line_the_admin_says_which_did(stage: SettlementStage) -> None:
    await stage.issuing.lose("order-1", drawn=True)
    await stage.issuing.lose("order-2", drawn=False)
    await stage.issuing.work(25 * HOUR, every=9 * HOUR)
    assert await stage.issuing.state("order-1") == "manual_reconciliation_required"
    (iccid,) = stage.issuing.drawn()
    assert (await stage.settle("order-2", "issued", iccid)).status_code == 200
    twice = await stage.settle("order-1", "issued", iccid)
    assert (twice.status_code, twice.json()["code"], "order-2" in twice.json()["error"]) == (409, "issuance_not_settled", True)
    assert (await stage.settle("order-1", "not_issued")).status_code == 200
    assert await stage.issuing.events() == [iccid]


async def test_only_an_admin_who_is_signed_in_settles(stage: SettlementStage) -> None:
    await stage.lost(drawn=False)
    by_key = await stage.settle("order-1", "not_issued", session=stage.issuing.operator.secret)
    assert (by_key.status_code, by_key.json()["code"]) == (401, "unauthorized")
    member = await stage.settle("order-1", "not_issued", session=await stage.admin(role=Role.MEMBER))
    assert (member.status_code, member.json()["code"]) == (403, "role_required")
    assert await stage.issuing.state("order-1") == "outcome_unknown"


async def test_mcp_offers_no_tool_that_settles(stage: SettlementStage) -> None:
    async with stage.client() as http:
        for name in ("settle_issuance", "settle_order"):
            body = request("tools/call", name=name, arguments={})
            answer = await http.post("/mcp?toolsets=all", json=body, headers=wire_headers(body))
            assert answer.status_code == 404 or "error" in answer.json()


async def test_what_is_another_organisations_is_answered_as_what_is_not_there(stage: SettlementStage) -> None:
    await stage.lost()
    world = stage.issuing.world
    other = await stage.admin(await world.organisation(Tier.PRO, mode="managed", account=ACCOUNT))
    foreign, unknown = [await stage.settle(key, "not_issued", session=other) for key in ("order-1", "order-9")]
    assert foreign.status_code == unknown.status_code == 404
    assert without_request_id(foreign) == without_request_id(unknown)
    line = next(line.iccid for line in stage.issuing.network.lines_of(OTHER_ACCOUNT))
    there, nowhere = [await stage.settle("order-1", "issued", iccid) for iccid in (line, UNKNOWN_ICCID)]
    assert there.status_code == nowhere.status_code == 404
    assert without_request_id(there) == without_request_id(nowhere)


async def test_an_esim_of_another_organisation_in_the_same_account_is_refused_without_a_name(stage: SettlementStage) -> None:
    operator = await stage.issuing.world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    theirs = (await stage.issuing.issue("their-key", operator=operator)).json()["data"]["iccid"]
    await stage.lost(drawn=False)
    answer = await stage.settle("order-1", "issued", theirs)
    assert (answer.status_code, answer.json()["code"]) == (409, "issuance_not_settled")
    assert operator.organisation not in answer.text and "their-key" not in answer.text


@pytest.mark.cases
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"outcome": "issued"}, "iccid"),
        ({"outcome": "not_issued", "iccid": UNKNOWN_ICCID}, "iccid"),
        ({"outcome": "lost"}, "outcome"),
        ({"outcome": "not_issued", "reason": " "}, "reason"),
        ({"outcome": "not_issued", "reason": "x" * 501}, "reason"),
        ({"outcome": "not_issued", "sure": True}, "sure"),
    ],
)
async def test_a_statement_that_breaks_a_rule_is_refused_with_the_field(stage: SettlementStage, body: dict[str, Any], param: str) -> None:
    await stage.lost(drawn=False)
    answer = await stage.ask("order-1", **body)
    assert (answer.status_code, answer.json()["param"]) == (400, param), answer.text


async def test_a_settlement_asks_first_and_its_token_is_good_for_that_statement_alone(stage: SettlementStage) -> None:
    await stage.lost(drawn=False)
    asked = await stage.ask("order-1", "not_issued")
    assert asked.status_code == 202 and "no eSIM was drawn" in asked.json()["message"], asked.text
    assert await stage.issuing.state("order-1") == "outcome_unknown"
    token = {"X-Confirm-Token": asked.json()["confirm_token"]}
    other = await stage.ask("order-1", "not_issued", reason="another", headers=token)
    assert (other.status_code, other.json()["code"]) == (400, "confirm_token_invalid"), other.text
    assert (await stage.ask("order-1", "not_issued", headers=token)).status_code == 200


async def test_a_settlement_that_is_repeated_with_its_key_answers_the_same(stage: SettlementStage) -> None:
    iccid = await stage.lost()
    first = await stage.settle("order-1", "issued", iccid, once="settle-1")
    again = await stage.ask("order-1", "issued", iccid, headers={"Idempotency-Key": "settle-1"})
    assert (again.status_code, again.content, again.headers["idempotent-replayed"]) == (200, first.content, "true")
    other = await stage.ask("order-1", "issued", iccid, reason="another", headers={"Idempotency-Key": "settle-1"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert len(await stage.settlements()) == 1


@pytest.mark.long
async def test_admins_and_the_worker_who_settle_at_once_settle_once(on_both: SettlementStage) -> None:
    stage, issuing = on_both, on_both.issuing
    for place in range(2):
        key = f"order-{place}"
        iccid = await stage.lost(key)
        tokens = [(await stage.ask(key, "issued", iccid)).json()["confirm_token"] for _ in range(3)]
        answers: list[int] = []

        async def settle(token: str, key: str = key, iccid: str | None = iccid, answers: list[int] = answers) -> None:
            answers.append((await stage.ask(key, "issued", iccid, headers={"X-Confirm-Token": token})).status_code)

        async with anyio.create_task_group() as group:
            for token in tokens:
                group.start_soon(settle, token)
            group.start_soon(Reconciliation(issuing.world.pipeline.deps, issuing.reports.append).step)
        assert set(answers) <= {200, 409} and answers.count(200) <= 1, answers
        assert (await issuing.state(key), len(await stage.settlements())) == ("issued", place + 1)
    assert len(await issuing.events()) == 2


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("outcome", ["issued", "not_issued"])
async def test_a_process_that_dies_at_the_commit_of_a_settlement_leaves_one(stage: SettlementStage, outcome: str, *, after: bool) -> None:
    world, said = stage.issuing.world, (outcome, await stage.lost(drawn=outcome == "issued"))
    once = {"Idempotency-Key": "settle-1"}
    once["X-Confirm-Token"] = (await stage.ask("order-1", *said, headers=once)).json()["confirm_token"]
    journal = world.pipeline.journal
    world.pipeline.journal = StoreJournal(
        Mortal(world.store, 0, after), keyring=world.pipeline.deps.keyring, blocks=world.blocks, clock=world.clock, replica="rpl_mortal"
    )
    with pytest.raises(Killed):
        await stage.ask("order-1", *said, headers=once)
    world.pipeline.journal = journal
    assert len(await stage.settlements()) == int(after)
    again = await stage.ask("order-1", *said, headers=once)
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, after), again.text
    assert (len(await stage.settlements()), len(await stage.issuing.events())) == (1, int(outcome == "issued"))
