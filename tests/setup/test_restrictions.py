"""What a restricted key is held to on lines, accounts and counts: over HTTP, and where another key's answer is stored."""

from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth
from registry.restrictions import account_fields, names_one_line
from tests.contract.stage import ROLLBACK_OPERATION, Answered, ContractStage, ServiceHouse, key_for
from tests.network_facts import ACCOUNT, SIBLING

BEARER = [o for o in CATALOGUE.operations.values() if o.auth is Auth.BEARER]
ON_A_LINE = [pytest.param(o, id=o.id) for o in BEARER if names_one_line(o)]
ON_ACCOUNTS = [pytest.param(o, id=o.id) for o in BEARER if not names_one_line(o) and account_fields(o)]
OTHER_LINE = "8988303700000999999"
RESTRICTED = (403, "credential_restricted")


def op(id: str) -> AnyOperation:
    return CATALOGUE.operations[id]


async def secret_of(house: ServiceHouse, stage: ContractStage, **restrictions: Any) -> str:
    return (await house.world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(**restrictions)))[1]


def refusal(said: Answered) -> tuple[int, str | None]:
    return said.status, said.body.get("code") if isinstance(said.body, dict) else None


@pytest.mark.parametrize("operation", ON_A_LINE)
async def test_a_key_for_one_line_or_account_reaches_no_other(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    for restrictions, allowed in (
        ({"iccids": (OTHER_LINE,)}, False),
        ({"account_ids": (SIBLING,)}, False),
        ({"account_ids": (ACCOUNT,), "iccids": (stage.own.iccid,)}, True),
    ):
        before = len(stage.asked())
        said = await house.http(operation, await secret_of(house, stage, **restrictions), given, key=key_for(operation, str(allowed)))
        if allowed:
            assert said.status < 300, said.body
            continue
        assert refusal(said) == RESTRICTED, said.body
        reads = stage.asked(before)
        assert all(method.startswith("get") for method in reads) and len(reads) <= 1
        assert not reads or "account_ids" in restrictions


@pytest.mark.parametrize("operation", ON_ACCOUNTS)
async def test_a_key_for_accounts_must_name_one_of_them(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    wrong, line = await secret_of(house, stage, account_ids=(SIBLING + 7,)), await secret_of(house, stage, iccids=(stage.own.iccid,))
    for secret in (wrong, line):
        assert refusal(await house.http(operation, secret, given, key=key_for(operation))) == RESTRICTED
    assert stage.asked() == []


async def test_lines_are_not_moved_to_an_account_that_the_key_is_not_for(house: ServiceHouse) -> None:
    move = op("move_subscriber_range_to_account")
    stage = await house.stage(move)
    given = stage.fitted(move, move.examples[0].input)
    assert {given["accountId"], given["destAccount"]} == {ACCOUNT, SIBLING}
    said = await house.http(move, await secret_of(house, stage, account_ids=(ACCOUNT,)), given, key="m")
    assert refusal(said) == RESTRICTED and said.body["param"] == "destAccount" and stage.asked() == []
    said = await house.http(move, await secret_of(house, stage, account_ids=(ACCOUNT, SIBLING)), given, key="m")
    assert said.status == 200, said.body


async def test_a_search_names_no_line_and_all_accounts_unless_it_names_one(house: ServiceHouse) -> None:
    search = op("list_subscribers")
    stage = await house.stage(search)
    by_line, by_account = await secret_of(house, stage, iccids=(stage.own.iccid,)), await secret_of(house, stage, account_ids=(ACCOUNT,))
    assert refusal(await house.http(search, by_line, {"iccid": stage.own.iccid})) == RESTRICTED
    assert refusal(await house.http(search, by_account, {"iccid": stage.own.iccid})) == RESTRICTED
    assert refusal(await house.http(search, by_account, {"accountId": SIBLING})) == RESTRICTED
    assert (await house.http(search, by_account, {"accountId": ACCOUNT})).status == 200


async def test_an_answer_stored_for_another_key_is_not_replayed_to_one_that_may_not_ask(house: ServiceHouse) -> None:
    status = op("modify_subscriber_status")
    stage = await house.stage(status)
    given = stage.fitted(status, status.examples[0].input)
    assert (await house.http(status, stage.who.secret, given, key="k")).status == 200
    asked = len(stage.asked())
    for restrictions in ({"iccids": (OTHER_LINE,)}, {"account_ids": (SIBLING,)}, {"read_only": True}, {"toolsets": ("network",)}):
        assert refusal(await house.http(status, await secret_of(house, stage, **restrictions), given, key="k")) == RESTRICTED
    said = await house.http(status, await secret_of(house, stage, iccids=(stage.own.iccid,)), given, key="k")
    assert said.status == 200 and "modifySubscriberStatus" not in stage.asked(asked)


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
