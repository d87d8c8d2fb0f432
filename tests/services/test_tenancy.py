"""Whose line a call is about: managed accounts share one credential of the upstream, other organisations bring their own."""

from dataclasses import replace

import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import set_connection
from tests.subscribers.staged import LINE_WRITES, LineStage, Write
from tests.world import Credentials

FJORD, ALPINE = "sandbox-7001-token", "sandbox-7002-token"
SUSPEND: dict[str, object] = {"status": "SUSPENDED"}
NOWHERE = "8988303700009999999"
EACH = pytest.mark.parametrize("write", LINE_WRITES, ids=[write.operation for write in LINE_WRITES])


def anonymous(answer: httpx.Response) -> dict[str, object]:
    """The body without what every answer has of its own."""
    return {**answer.json(), "request_id": ""}


async def connect(stage: LineStage, organisation: str, *, mode: str | None, account: int | None = None, sealed: str | None = None) -> None:
    await stage.world.store.write(set_connection, organisation=organisation, mode=mode, account_id=account, own_token=sealed)


def seal(stage: LineStage, token: str, organisation: str, field: str = OWN_TOKEN_FIELD) -> str:
    return stage.world.pipeline.deps.keyring.seal(token, org_id=organisation, field=field)


@pytest.mark.cases
@EACH
@pytest.mark.rule("5.3.3")
async def test_a_line_of_another_account_is_looked_up_once_and_not_found(stage: LineStage, write: Write) -> None:
    sibling, alpine = stage.in_status(8102)[0], stage.in_status(8201)[0]
    before = [repr(sibling), repr(alpine)]
    unknown = await stage.ask(write.path, write.body, method=write.method, iccid=NOWHERE)
    assert (unknown.status_code, unknown.json()["param"]) == (404, "iccid")
    for line in (sibling, alpine):
        seen = len(stage.sent())
        answer = await stage.write(write, line, key="k")
        assert (answer.status_code, anonymous(answer)) == (404, anonymous(unknown))
        assert stage.sent(seen) == ["getSingleSubscriber"]
    assert ([repr(sibling), repr(alpine)], await stage.claims(), await stage.charged()) == (before, {}, 3)


async def test_an_unknown_line_is_answered_with_the_way_to_find_one(stage: LineStage) -> None:
    assert anonymous(await stage.ask("status", SUSPEND, iccid=NOWHERE)) == snapshot(
        {
            "error": "Your account has no line with this ICCID",
            "code": "not_found",
            "request_id": "",
            "param": "iccid",
            "hint": "list_subscribers finds lines by the beginning or the last digits of an ICCID, or by name",
        }
    )


@pytest.mark.rule("5.3.4")
async def test_an_organisation_with_its_own_token_reaches_what_the_token_sees(stage: LineStage) -> None:
    alps = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=ALPINE)
    retail, guests, fjord = stage.in_status(8201)[0], stage.in_status(8202)[0], stage.in_status(8101)[0]
    async with stage.world.client(alps.secret) as http:
        for line in (retail, guests):  # every account of the reseller
            assert (await stage.ask("status", SUSPEND, iccid=line.iccid, http=http)).status_code == 200
            assert line.status == "SUSPENDED"
        seen = len(stage.sent())
        foreign = await stage.ask("status", SUSPEND, iccid=fjord.iccid, http=http)
        assert (stage.sent(seen), stage.world.sandbox.calls[-1].code) == (["getSingleSubscriber"], 11)
        unknown = await stage.ask("status", SUSPEND, iccid=NOWHERE, http=http)
    assert stage.world.sandbox.calls[-1].code == 6
    assert foreign.status_code == unknown.status_code == 404 and anonymous(foreign) == anonymous(unknown)
    assert fjord.status == "ACTIVE"


async def test_an_organisation_with_its_own_token_may_raise_balances(stage: LineStage) -> None:
    alps = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=ALPINE)
    line = stage.in_status(8201)[0]
    before = line.balance
    async with stage.world.client(alps.secret) as http:
        assert (await stage.ask("balance", {"amount": 7.25}, iccid=line.iccid, http=http)).status_code == 200
    assert line.balance == before + 7_250_000


async def test_lists_kept_for_one_credential_are_not_shown_to_another(stage: LineStage) -> None:
    assert (await stage.ask("steering-list", {"listId": 17})).status_code == 200
    alps = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=ALPINE)
    line = stage.in_status(8201)[0]
    async with stage.world.client(alps.secret) as http:
        answer = await stage.ask("steering-list", {"listId": 17}, iccid=line.iccid, http=http)
    assert (answer.status_code, answer.json()["param"], line.steering_list_id) == (404, "listId", None)


async def test_a_disconnected_organisation_reaches_nobody_and_keeps_its_key(stage: LineStage) -> None:
    await connect(stage, stage.who.organisation, mode=None)
    answer = await stage.ask("status", SUSPEND, key="k")
    assert (answer.status_code, answer.json()["error_code"], stage.sent()) == (409, "org_not_connected", [])
    await connect(stage, stage.who.organisation, mode="managed", account=8101)
    assert (await stage.ask("status", SUSPEND, key="k")).status_code == 200
    assert stage.line.status == "SUSPENDED"


async def test_an_organisation_that_moved_to_another_account_has_that_account_s_lines_at_once(stage: LineStage) -> None:
    trackers = stage.in_status(8102)[0]
    first = await stage.ask("status", SUSPEND, key="k")
    assert first.status_code == 200
    await connect(stage, stage.who.organisation, mode="managed", account=8102)
    replay = await stage.ask("status", SUSPEND, key="k")
    assert (replay.status_code, replay.json()["param"]) == (404, "iccid")  # access is asked again before an answer is repeated
    assert (await stage.ask("status", {"status": "INACTIVE"})).status_code == 404
    assert (await stage.ask("status", SUSPEND, iccid=trackers.iccid)).status_code == 200
    assert (stage.line.status, trackers.status) == ("SUSPENDED", "SUSPENDED")


async def test_an_organisation_that_brings_its_own_token_leaves_the_shared_one(stage: LineStage) -> None:
    alpine = stage.in_status(8201)[0]
    organisation = stage.who.organisation
    await connect(stage, organisation, mode="own", sealed=seal(stage, ALPINE, organisation))
    assert (await stage.ask("status", SUSPEND)).status_code == 404
    assert (await stage.ask("status", SUSPEND, iccid=alpine.iccid)).status_code == 200
    assert (stage.line.status, alpine.status) == ("ACTIVE", "SUSPENDED")


@pytest.mark.parametrize("token", ["", "  "])
async def test_a_service_without_a_token_says_so_to_managed_organisations_only(stage: LineStage, token: str) -> None:
    pipeline = stage.world.pipeline
    pipeline.deps = replace(pipeline.deps, ocs_token=token)
    answer = await stage.ask("status", SUSPEND, key="k")
    assert answer.status_code == 502
    assert anonymous(answer) == snapshot(
        {
            "error": "The service has no credential for the charging system, so managed accounts cannot be reached; nothing was done",
            "code": "ocs_error",
            "request_id": "",
            "hint": "Whoever runs the service sets SERVICE_OCS_TOKEN",
        }
    )
    assert (stage.sent(), await stage.claims(), await stage.charged()) == ([], {}, 0)
    alps = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=ALPINE)
    async with stage.world.client(alps.secret) as http:
        assert (await stage.ask("status", SUSPEND, iccid=stage.in_status(8201)[0].iccid, http=http)).status_code == 200


@pytest.mark.parametrize("case", ["another organisation's", "another field's", "changed", "no sealed value"])
async def test_a_token_that_does_not_open_is_no_way_to_the_upstream(stage: LineStage, case: str) -> None:
    alps = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=ALPINE)
    thief = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=FJORD)
    good = seal(stage, ALPINE, alps.organisation)
    moved = {
        "another organisation's": good,
        "another field's": seal(stage, ALPINE, thief.organisation, "webhook|we_1"),
        "changed": seal(stage, ALPINE, thief.organisation)[:-4] + "AAAA",
        "no sealed value": ALPINE,
    }[case]
    await connect(stage, thief.organisation, mode="own", sealed=moved)
    answer = await attempt(stage, thief)
    assert answer.status_code == 502
    assert anonymous(answer) == snapshot(
        {
            "error": "The token that your organisation was connected with can no longer be opened; nothing was done",
            "code": "ocs_error",
            "request_id": "",
            "hint": "Connect the account again, or have whoever runs the service put the former encryption key back",
        }
    )
    assert (stage.sent(), await stage.claims(), await stage.charged(thief), stage.world.faults) == ([], {}, 0, [])


async def test_a_token_sealed_with_a_key_that_is_gone_is_to_be_tried_again(stage: LineStage) -> None:
    thief = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=FJORD)
    await connect(stage, thief.organisation, mode="own", sealed="gone." + seal(stage, ALPINE, thief.organisation).partition(".")[2])
    answer = await attempt(stage, thief)
    assert answer.status_code == 503
    assert anonymous(answer) == snapshot(
        {
            "error": "The service cannot open what it has stored, until the encryption key of another of its processes is here too",
            "code": "store_unavailable",
            "request_id": "",
            "hint": "Repeat the call in a few seconds, with the idempotency key that it had",
        }
    )
    assert (stage.sent(), await stage.claims(), await stage.charged(thief), stage.world.faults) == ([], {}, 0, [])


@pytest.mark.parametrize(("mode", "account"), [("own", None), ("own", 8101), ("managed", None)])
async def test_half_a_connection_never_falls_back_on_the_service_s_token(stage: LineStage, mode: str, account: int | None) -> None:
    await connect(stage, stage.who.organisation, mode=mode, account=account)
    answer = await attempt(stage, stage.who)
    assert (answer.status_code, answer.json()["error"]) == (
        502,
        "Your organisation was disconnected from its account while this call ran; nothing was done",
    )
    assert (stage.sent(), stage.line.status, await stage.charged()) == ([], "ACTIVE", 0)


@pytest.mark.cases
@pytest.mark.parametrize(("token", "ocs_code"), [("revoked-4f1c", 8), ("line\nfeed", 8), ("ключ", 8)])
async def test_a_token_that_the_upstream_does_not_know_is_not_repeated_to_anybody(stage: LineStage, token: str, ocs_code: int) -> None:
    stranger = await stage.world.caller(Tier.ENTERPRISE, mode="own", token=token)
    answer = await attempt(stage, stranger)
    assert (answer.status_code, answer.json().get("ocs_code")) == (502, ocs_code)
    assert token not in answer.text and "revoked" not in answer.text
    assert (stage.line.status, await stage.claims()) == ("ACTIVE", {})


async def attempt(stage: LineStage, caller: Credentials) -> httpx.Response:
    """Somebody tries to suspend the line."""
    async with stage.world.client(caller.secret) as http:
        return await stage.ask("status", SUSPEND, key="k", http=http)
