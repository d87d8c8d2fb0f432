"""What a restricted key is held to on lines, accounts and counts: over HTTP, and where another key's answer is stored."""

from typing import Any

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth
from tests.contract.stage import ROLLBACK_OPERATION, Answered, ContractStage, ServiceHouse
from tests.network_facts import ACCOUNT, SIBLING

BEARER = [o for o in CATALOGUE.operations.values() if o.auth is Auth.BEARER]
OTHER_LINE = "8988303700000999999"
RESTRICTED = (403, "credential_restricted")


def op(id: str) -> AnyOperation:
    return CATALOGUE.operations[id]


async def secret_of(house: ServiceHouse, stage: ContractStage, **restrictions: Any) -> str:
    return (await house.world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(**restrictions)))[1]


def refusal(said: Answered) -> tuple[int, str | None]:
    return said.status, said.body.get("code") if isinstance(said.body, dict) else None


async def test_a_search_names_no_line_and_all_accounts_unless_it_names_one(house: ServiceHouse) -> None:
    search = op("list_subscribers")
    stage = await house.stage(search)
    by_line, by_account = await secret_of(house, stage, iccids=(stage.own.iccid,)), await secret_of(house, stage, account_ids=(ACCOUNT,))
    assert refusal(await house.http(search, by_line, {"iccid": stage.own.iccid})) == RESTRICTED
    assert refusal(await house.http(search, by_account, {"iccid": stage.own.iccid})) == RESTRICTED
    assert refusal(await house.http(search, by_account, {"accountId": SIBLING})) == RESTRICTED
    assert (await house.http(search, by_account, {"accountId": ACCOUNT})).status == 200


async def test_a_confirm_token_of_one_key_opens_nothing_for_another(house: ServiceHouse) -> None:
    clean = op("clean_all_packages")
    stage = await house.stage(clean)
    given = stage.fitted(clean, clean.examples[0].input)
    token = (await house.http(clean, stage.who.secret, given)).body["confirm_token"]
    for restrictions in ({"iccids": (OTHER_LINE,)}, {"account_ids": (SIBLING,)}, {"no_admin": True}, {"read_only": True}):
        assert refusal(await house.http(clean, await secret_of(house, stage, **restrictions), given, token=token)) == RESTRICTED
    assert (await house.http(clean, stage.who.secret, given, token=token)).status == 200


async def test_a_rollback_names_neither_a_line_nor_an_account(house: ServiceHouse) -> None:
    rollback = op(ROLLBACK_OPERATION)
    stage = await house.stage(rollback)
    given = stage.fitted(rollback, rollback.examples[0].input)
    for restrictions in ({"iccids": (stage.own.iccid,)}, {"account_ids": (ACCOUNT,)}):
        assert refusal(await house.http(rollback, await secret_of(house, stage, **restrictions), given)) == RESTRICTED
    assert stage.asked() == []


async def test_notes_are_of_the_account_that_the_line_is_in_now(house: ServiceHouse) -> None:
    notes = op("get_subscriber_notes")
    stage = await house.stage(notes)
    ours = await secret_of(house, stage, account_ids=(ACCOUNT,))
    assert (await house.http(notes, ours, {"iccid": stage.own.iccid})).status == 200
    assert (await house.http(notes, ours, {"iccid": OTHER_LINE})).status == 404
    assert (await house.http(notes, stage.who.secret, {"iccid": OTHER_LINE})).status == 200  # who may see all accounts needs no connection
    unconnected = await house.world.caller(Tier.PRO)
    _, lost = await house.world.key(unconnected.person, unconnected.organisation, restrictions=Restrictions(account_ids=(ACCOUNT,)))
    assert refusal(await house.http(notes, lost, {"iccid": stage.own.iccid})) == RESTRICTED


async def test_reads_and_writes_at_both_doors_share_one_count(house: ServiceHouse) -> None:
    stage = await house.stage(tier=Tier.PRO)
    secret = await secret_of(house, stage, calls_per_day=6)
    plans, intents, one = op("list_connectivity_plans"), op("create_connectivity_intent"), op("get_connectivity_intent")
    assert (await house.http(plans, secret, {})).status == 200
    assert (await house.mcp(plans, secret, {})).status == 200
    assert (await house.http(intents, secret, {}, key="a")).status == 201
    assert (await house.mcp(intents, secret, {}, key="b")).status == 200
    assert (await house.http(intents, secret, {}, key="a")).status == 201  # a replay costs nothing
    assert (await house.http(one, secret, {"id": "cni_" + "0" * 26})).status == 404  # nor what did nothing
    assert (await house.http(plans, secret, {})).status == 200
    assert (await house.http(intents, secret, {}, key="c")).status == 201
    said = await house.http(plans, secret, {})
    assert (said.status, said.body["code"], said.body["limit"], said.body["used"]) == (429, "quota_exceeded", 6, 6)
    assert (await house.mcp(intents, secret, {}, key="d")).body["code"] == "quota_exceeded"
    assert (await house.http(plans, stage.who.secret, {})).status == 200
    house.world.clock.advance(86_400)
    assert (await house.http(plans, secret, {})).status == 200
