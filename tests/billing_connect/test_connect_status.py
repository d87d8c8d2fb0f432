"""GET .../connect/status, under both of its paths: the processor is asked, and its answer kept."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from clients.payments.records import ConnectedAccount
from operations.ledger.payment_accounts import keep_payment_account_status
from storage.billing_config import find_config
from storage.connect_accounts import ConnectAccount, detach_connect_account, find_connect_account
from tests.billing_connect.asking import BILLING_PATH, attached, call_connect, finish_onboarding, member_session, onboarded, trouble
from tests.contract.stage import ServiceHouse
from tests.world import NOON, Credentials

STATUS, FULL = "/v1/invoices/payments/connect/status", f"{BILLING_PATH}/connect/status"
NOTHING = {
    "status": "not_connected",
    "account_id": None,
    "charges_enabled": False,
    "payouts_enabled": False,
    "details_submitted": False,
    "requirements": None,
    "capabilities": None,
    "payout_schedule": None,
    "default_currency": "USD",
    "platform_fee_bps": 100,
}
ABLE = dict.fromkeys(("charges_enabled", "payouts_enabled", "details_submitted"), True)


async def stored(house: ServiceHouse, caller: Credentials) -> ConnectAccount | None:
    return await house.world.store.read(find_connect_account, organisation=caller.organisation)


async def told(house: ServiceHouse, account: str, as_of: float, *, charges: bool) -> None:
    """The processor's word of an account, as a webhook brings it."""
    said = ConnectedAccount(
        account, "express", charges_enabled=charges, payouts_enabled=charges, details_submitted=True, default_currency="EUR"
    )
    await house.world.store.write(
        keep_payment_account_status, deps=house.world.pipeline.deps, account=said, as_of=as_of, now=house.world.clock.now()
    )


@pytest.mark.rule("3.5.3")
@pytest.mark.rule("2.11.1")
async def test_without_an_account_everything_is_false(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    assert await call_connect(house, caller.secret, "GET", STATUS) == (200, NOTHING)
    assert await call_connect(house, caller.secret, "GET", FULL) == (200, {**NOTHING, "currently_due": []})


@pytest.mark.rule("3.5.1")
async def test_asking_is_how_pending_becomes_active(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account = await onboarded(house, caller, finished=False)
    assert await call_connect(house, caller.secret, "GET", STATUS) == (
        200,
        {**NOTHING, "status": "pending", "account_id": account, "default_currency": "NOK"},
    )
    await finish_onboarding(house, account)
    assert await stored(house, caller) == (caller.organisation, account, "express", "pending", 0)
    status, body = await call_connect(house, caller.secret, "GET", STATUS)
    assert status == 200
    assert body == {**NOTHING, "status": "active", "account_id": account, "default_currency": "NOK", **ABLE}
    assert await stored(house, caller) == (caller.organisation, account, "express", "active", 1)


@pytest.mark.rule("4.5.53")
async def test_what_the_processor_still_asks_for_is_listed(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await onboarded(house, caller, finished=False)
    _, body = await call_connect(house, caller.secret, "GET", FULL)
    assert body["currently_due"] == snapshot(
        ["business_profile.url", "business_type", "external_account", "tos_acceptance.date", "tos_acceptance.ip"]
    )
    assert body["requirements"] is None


async def test_a_restricted_account_is_pending_again(house: ServiceHouse) -> None:
    from simulators.processor.onboarding import restrict_account

    caller = await house.world.caller()
    account = await onboarded(house, caller)
    async with house.world.payments.turn(writes=True) as state:
        restrict_account(state, account)
    _, body = await call_connect(house, caller.secret, "GET", FULL)
    assert (body["status"], body["charges_enabled"], body["details_submitted"]) == ("pending", False, True)
    assert body["currently_due"] == ["company.verification.document"]
    assert (await stored(house, caller) or pytest.fail()).status == "pending"


@pytest.mark.cases
@pytest.mark.rule("3.5.2")
@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "rate_limited", "garbage"])
@pytest.mark.parametrize("path", [STATUS, FULL])
async def test_when_the_processor_does_not_answer_what_is_stored_is_told(house: ServiceHouse, kind: Any, path: str) -> None:
    caller = await house.world.caller()
    account = await onboarded(house, caller)
    trouble(house, kind)
    status, body = await call_connect(house, caller.secret, "GET", path)
    more = {"currently_due": []} if path == FULL else {}
    assert (status, body) == (200, {**NOTHING, "status": "active", "account_id": account, **more})
    assert (await stored(house, caller) or pytest.fail()).status == "active"


@pytest.mark.rule("3.5.2")
async def test_an_account_that_the_processor_does_not_know_is_told_as_it_is_stored(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await attached(house, caller, "acct_1Gone", status="pending")
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1] == {**NOTHING, "status": "pending", "account_id": "acct_1Gone"}


async def test_an_older_word_of_the_processor_changes_nothing(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await attached(house, caller, "acct_1Own")
    await told(house, "acct_1Own", NOON - 1, charges=False)
    assert (await stored(house, caller) or pytest.fail()).status == "active"
    await told(house, "acct_1Own", NOON, charges=False)
    assert (await stored(house, caller) or pytest.fail()).status == "pending"
    await told(house, "acct_1Own", NOON + 5, charges=True)
    await told(house, "acct_1Own", NOON + 4, charges=False)
    assert (await stored(house, caller) or pytest.fail()).status == "active"


async def test_a_word_about_an_account_that_nobody_has_changes_nothing(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await attached(house, caller, "acct_1Own")
    await told(house, "acct_1Other", NOON + 5, charges=False)
    assert (await stored(house, caller) or pytest.fail()).status == "active"


async def test_the_time_of_change_moves_with_the_status_alone(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await attached(house, caller, "acct_1Own")
    house.world.clock.advance(60)
    await told(house, "acct_1Own", NOON + 60, charges=True)
    assert (await house.world.store.read(find_config, organisation=caller.organisation) or pytest.fail()).updated == NOON
    await told(house, "acct_1Own", NOON + 60, charges=False)
    assert (await house.world.store.read(find_config, organisation=caller.organisation) or pytest.fail()).updated == NOON + 60


async def test_an_account_that_is_let_go_is_forgotten_unless_it_came_back_since(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await attached(house, caller, "acct_1Own", kind="standard")
    await house.world.store.write(detach_connect_account, account="acct_1Own", as_of=NOON - 1, now=NOON)
    assert await stored(house, caller) is not None
    await house.world.store.write(detach_connect_account, account="acct_1Own", as_of=NOON, now=NOON)
    assert (await call_connect(house, caller.secret, "GET", STATUS)) == (200, NOTHING)


async def test_whoever_lost_an_account_begins_with_a_new_one(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    before = await onboarded(house, caller)
    house.world.clock.advance(60)
    await house.world.store.write(detach_connect_account, account=before, as_of=house.world.clock.now(), now=house.world.clock.now())
    status, body = await call_connect(house, await member_session(house, caller), "POST", f"{BILLING_PATH}/connect/begin", {})
    assert (status, body["status"]) == (200, "pending")
    assert body["account_id"] != before


async def test_an_organisation_sees_no_account_of_another(house: ServiceHouse) -> None:
    mine, theirs = await house.world.caller(), await house.world.caller()
    await onboarded(house, theirs)
    assert (await call_connect(house, mine.secret, "GET", STATUS)) == (200, NOTHING)


async def test_the_fee_is_the_organisation_s_own(house: ServiceHouse) -> None:
    from storage.organisations import set_fee_bps

    caller = await house.world.caller()
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1]["platform_fee_bps"] == 100
    await house.world.store.write(set_fee_bps, organisation=caller.organisation, bps=250)
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1]["platform_fee_bps"] == 250
