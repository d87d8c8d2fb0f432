"""POST /v1/onboarding/ocs-connect: a token of the organisation's own, verified, sealed and never seen again."""

import logging
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from simulators.network.entities import NetworkToken
from simulators.network.faults import NetworkFault
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import find_upstream
from tests.contract.stage import ServiceHouse
from tests.setup.newcomer import OTHER_TOKEN, Newcomer, newcomer, settle_in
from tests.stage import without_request_id

STEP = "ocs-connect"
INFO = "getResellerInfo"
SECRET = "fjord-Own-7f3a91c4-token"


async def kept(new: Newcomer) -> str | None:
    """The token as the database holds it, opened."""
    world = new.house.world
    row = await world.store.read(find_upstream, organisation=new.who.organisation)
    assert row is not None
    if row.own_token is None:
        return None
    return world.pipeline.deps.keyring.open(row.own_token, org_id=new.who.organisation, field=OWN_TOKEN_FIELD)


def known_upstream(new: Newcomer, token: str = SECRET) -> None:
    assert new.sandbox.world is not None
    new.sandbox.world.tokens = {**new.sandbox.world.tokens, token: NetworkToken(token, 7002)}


@pytest.mark.rule("4.9.26")
@pytest.mark.rule("4.9.27")
async def test_a_token_that_is_accepted_is_connected_and_the_sub_account_left(house: ServiceHouse) -> None:
    new = await newcomer(house, Tier.FREE, mode="managed", account=8101)
    state = await new.done(STEP, token=OTHER_TOKEN)
    assert state["connection"] == {"connected": True, "mode": "own", "account_id": None, "former_token_until": None}
    assert (await new.connection(), await kept(new)) == (("own", None), OTHER_TOKEN)
    assert new.asked() == ["getResellerInfo"] * 2  # for the question, and for the change
    async with house.world.client(new.who.secret) as http:
        assert (await http.get("/v1/reseller")).json()["data"]["id"] == 7002
    known_upstream(new)
    connect = CATALOGUE.operations["onboarding_connect_ocs_token"]
    assert (await house.mcp(connect, new.who.secret, {"token": SECRET}, sure=True)).body["connection"]["mode"] == "own"
    assert await kept(new) == SECRET


async def test_a_token_is_in_no_byte_but_the_sealed_ones(house: ServiceHouse, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="clients")
    world = house.world
    new = await newcomer(house)
    shouted = SECRET.replace("-", " ")
    told: list[Any] = [
        (await new.ask(STEP, {"token": SECRET}, **{"Idempotency-Key": "refused"})).text,
        (await new.tool("onboarding_connect_ocs_token", {"token": SECRET})).body,
        (await new.ask(STEP, {"token": shouted})).text,
        (await new.tool("onboarding_connect_ocs_token", {"token": shouted})).body,
        (await new.ask(STEP, {"token": SECRET + "x" * 1024})).text,
        (await new.ask(STEP, {"token": [SECRET]})).text,
        (await new.ask(STEP, {"token": SECRET, "surprise": 1})).text,
    ]
    known_upstream(new)
    for trouble in (
        NetworkFault(INFO, code=14, times=2),
        NetworkFault(INFO, malformed=True, times=2),
        NetworkFault(INFO, status=500, times=2),
    ):
        new.sandbox.faults.add(trouble)
        told.append((await new.ask(STEP, {"token": SECRET}, **{"Idempotency-Key": "refused"})).text)
        new.sandbox.faults.clear()
    for _ in range(2):
        told.append((await new.ask(STEP, {"token": SECRET}, **{"Idempotency-Key": "refused"})).text)
    told += [(await new.tool("onboarding_connect_ocs_token", {"token": SECRET}, key="tool")).body, await new.state()]
    assert await kept(new) == SECRET
    await world.journal.flush()
    dump = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert new.who.organisation.encode() in dump and "getResellerInfo" in caplog.text and len(world.lines) >= len(told)
    for secret in (SECRET, shouted):
        assert secret not in str(told) and secret.encode() not in dump
        assert secret not in caplog.text and secret not in str(world.lines) and secret not in repr(world.faults)
        assert secret not in str(await house.committed())


async def test_a_token_that_is_not_accepted_is_refused_and_nothing_stored(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    before = await new.state()
    said = await new.ask(STEP, {"token": SECRET}, **{"Idempotency-Key": "mine"})
    assert said.status_code == 400
    assert without_request_id(said) == snapshot(
        {
            "error": "token: the charging system does not accept it; nothing was changed",
            "code": "ocs_token_refused",
            "param": "token",
            "hint": "Give the reseller token that your provider gave you, whole and without blanks; an API key of this service is none",
        }
    )
    assert (await new.state(), await kept(new), await new.connection()) == (before, None, ("managed", 8101))
    known_upstream(new)
    assert (await new.agree(STEP, {"token": SECRET}, **{"Idempotency-Key": "mine"})).status_code == 200  # the key was free


@pytest.mark.cases
@pytest.mark.parametrize(
    "token", ["", "two words", "line\n", "tab\there", "caf\u00e9", "x" * 1025, "bell\x07", "\u0661\u0662", 5, None, ["x"]]
)
async def test_what_is_no_token_is_refused_unrepeated_and_not_asked_for(house: ServiceHouse, token: object) -> None:
    new = await newcomer(house)
    said = await new.ask(STEP, {"token": token})
    assert (said.status_code, said.json()["param"]) == (400, "token")
    assert said.json()["error"].startswith("token: must ") and "got" not in said.json()["error"]
    assert (new.asked(), await new.connection()) == ([], (None, None))


@pytest.mark.cases
@pytest.mark.parametrize(
    "trouble",
    [
        {"code": 9},
        {"code": 17},
        {"code": 18},
        {"status": 503},
        {"delay": 60.0},
        {"drop_before": True},
        {"malformed": True},
        {"empty": True},
    ],
    ids=str,
)
async def test_a_charging_system_that_cannot_be_asked_stores_nothing(house: ServiceHouse, trouble: dict[str, Any]) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    before = await new.state()
    new.sandbox.faults.add(NetworkFault(INFO, times=None, **trouble))
    said = await new.ask(STEP, {"token": OTHER_TOKEN}, **{"Idempotency-Key": "mine"})
    assert said.status_code == 502, said.text
    assert (await new.state(), await kept(new)) == (before, None)
    new.sandbox.faults.clear()
    assert (await new.agree(STEP, {"token": OTHER_TOKEN}, **{"Idempotency-Key": "mine"})).status_code == 200


async def test_a_key_is_bound_to_its_token(house: ServiceHouse) -> None:
    new = await newcomer(house)
    known_upstream(new)
    key = {"Idempotency-Key": "mine"}
    assert (await new.ask(STEP, {"token": SECRET}, **key)).status_code == 200
    said = await new.ask(STEP, {"token": OTHER_TOKEN}, **key)
    assert (said.status_code, said.json()["code"], await kept(new)) == (409, "idempotency_key_reused", SECRET)


async def test_an_organisation_tries_ten_tokens_an_hour(house: ServiceHouse) -> None:
    new = await newcomer(house)
    other = await new.another()
    for number in range(10):
        assert (await new.ask(STEP, {"token": f"guess-{number}"})).status_code == 400
        house.world.clock.advance(1)
    said = await new.ask(STEP, {"token": OTHER_TOKEN})
    assert said.status_code == 429
    assert without_request_id(said) == snapshot(
        {
            "error": "Too many tries to connect a token: 10 per hour are allowed here; wait 3590 s and repeat the call",
            "code": "rate_limited",
            "limit": 10,
            "used": 10,
            "reset_at": "2027-01-15T13:00:00Z",
            "upgrade_url": "https://reseller.test/upgrade",
        }
    )
    assert (said.headers["retry-after"], await kept(new)) == ("3590", None)
    assert (await other.ask(STEP, {"token": OTHER_TOKEN})).status_code == 200
    house.world.clock.advance(3590)
    assert (await new.ask(STEP, {"token": OTHER_TOKEN})).status_code == 200


async def test_a_token_forgets_that_a_managed_account_was_waited_for(house: ServiceHouse) -> None:
    new = await newcomer(house)
    settle_in(house, ocs_token="")
    assert (await new.done("managed-account"))["pending"]
    state = await new.done(STEP, token=OTHER_TOKEN)
    assert (state["pending"], state["pending_reason"], state["managed_path_chosen"]) == (False, None, False)
