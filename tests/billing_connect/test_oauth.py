"""Connecting a Standard account that somebody has already: a state that is good once, and a code."""

import hashlib
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest
from inline_snapshot import snapshot

from storage.connect_accounts import ConnectAccount, attach_connect_account, find_connect_account, sweep_connect_states
from tests.billing_connect.asking import (
    BILLING_PATH,
    ConnectAnswer,
    attached,
    brought,
    call_connect,
    connected_accounts,
    consented,
    let_go,
    onboarded,
    own_account,
    trouble,
)
from tests.billing_connect.test_connect_status import ABLE, NOTHING
from tests.contract.stage import ServiceHouse
from tests.stage import without_request_id
from tests.world import NOON, Credentials

BEGIN, COMPLETE = f"{BILLING_PATH}/connect/oauth/begin", f"{BILLING_PATH}/connect/oauth/complete"


class Way(NamedTuple):
    """Somebody with an account of their own, who has consented."""

    account: str
    code: str
    state: str


async def state_for(house: ServiceHouse, caller: Credentials) -> str:
    status, body = await call_connect(house, caller.secret, "POST", BEGIN, {})
    assert status == 200, body
    return body["state"]


async def way(house: ServiceHouse, caller: Credentials) -> Way:
    account = await own_account(house)
    return Way(account, await consented(house, account), await state_for(house, caller))


async def complete(house: ServiceHouse, caller: Credentials, code: str, state: str, *, key: str | None = None) -> ConnectAnswer:
    return await call_connect(house, caller.secret, "POST", COMPLETE, {"code": code, "state": state}, key=key, sure=True)


async def stored(house: ServiceHouse, caller: Credentials) -> ConnectAccount | None:
    return await house.world.store.read(find_connect_account, organisation=caller.organisation)


def asked(house: ServiceHouse, path: str) -> bool:
    """Whether the processor was asked: a fault that was put there for the first call is used up."""
    return not any(fault.path == path for fault in house.world.payments.faults.queue)


@pytest.mark.rule("4.5.42")
async def test_a_state_and_where_to_consent_are_given(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    status, body = await call_connect(house, caller.secret, "POST", BEGIN, {})
    url = urlsplit(body["url"])
    query = dict(parse_qsl(url.query))
    assert query.pop("state") == body["state"] and len(body["state"]) == 43
    assert status == 200
    assert body["expires_at"] == 1800015000
    assert url.path == "/sandbox/payments/oauth/authorize"
    assert query == snapshot(
        {
            "response_type": "code",
            "client_id": "ca_simulated_processor",
            "scope": "read_write",
            "redirect_uri": "https://reseller.test/auth/payments",
        }
    )
    (row,) = await house.world.store.read(all_states)
    assert row.digest == hashlib.sha256(body["state"].encode()).hexdigest()
    assert (row.organisation, row.person, row.expires_at) == (caller.organisation, caller.person, NOON + 600)


def all_states(connection: Any) -> list[Any]:
    import sqlalchemy as sa

    from storage.connect_accounts import CONNECT_STATE, ConnectState
    from storage.engine.sql import Query

    return connection.all(Query(ConnectState, sa.select(*(CONNECT_STATE.c[name] for name in ConnectState._fields))))


async def test_consent_leads_back_to_the_page_that_was_named(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, body = await call_connect(house, caller.secret, "POST", BEGIN, {"return_url": "https://fjord.example/back"})
    assert dict(parse_qsl(urlsplit(body["url"]).query))["redirect_uri"] == "https://fjord.example/back"


@pytest.mark.rule("4.5.43")
async def test_the_account_is_attached(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account, code, state = await way(house, caller)
    status, body = await complete(house, caller, code, state)
    assert status == 200
    assert body == {**NOTHING, "status": "active", "account_id": account, **ABLE}
    assert await stored(house, caller) == (caller.organisation, account, "standard", "active", 1)
    assert (await call_connect(house, caller.secret, "GET", f"{BILLING_PATH}/connect/status"))[1] == {**body, "currently_due": []}


async def test_a_state_is_good_once(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, code, state = await way(house, caller)
    assert (await complete(house, caller, code, state))[0] == 200
    status, body = await complete(house, caller, code, state)
    assert status == 400
    assert without_request_id(body) == snapshot(
        {
            "error": "state: it is unknown, used, older than 10 minutes, or another person or organisation began with it",
            "code": "invalid_request",
            "param": "state",
            "hint": "Begin again: operator_billing_connect_oauth_begin gives a new url",
        }
    )


@pytest.mark.parametrize("seconds", [599, 600, 601])
async def test_a_state_is_good_for_ten_minutes(house: ServiceHouse, seconds: int) -> None:
    caller = await house.world.caller()
    account = await own_account(house)
    state = await state_for(house, caller)
    house.world.clock.advance(seconds)
    status, _ = await complete(house, caller, await consented(house, account), state)
    assert status == (200 if seconds < 600 else 400)
    assert (await stored(house, caller) is not None) == (seconds < 600)


@pytest.mark.parametrize("whose", ["another organisation", "a colleague", "nobody"])
async def test_a_state_is_good_for_whoever_began_it_and_stays_so(house: ServiceHouse, whose: str) -> None:
    caller = await house.world.caller()
    account, code, state = await way(house, caller)
    colleague = await house.world.caller(organisation=caller.organisation)
    other = {"another organisation": await house.world.caller(), "a colleague": colleague, "nobody": caller}[whose]
    trouble(house, "error", "/oauth/token", times=1)
    status, body = await complete(house, other, code, "x" * 43 if whose == "nobody" else state)
    assert (status, body["param"]) == (400, "state")
    assert not asked(house, "/oauth/token")
    house.world.payments.faults.queue.clear()
    assert await stored(house, other) is None
    assert (await complete(house, caller, code, state))[1]["account_id"] == account


async def test_a_wrong_code_is_refused_and_uses_the_state_up(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, code, state = await way(house, caller)
    status, body = await complete(house, caller, "ac_wrong", state)
    assert status == 400
    assert without_request_id(body) == snapshot(
        {
            "error": "The payment processor refused it: the code is wrong, was used before or has expired. Nothing was done.",
            "code": "payments_refused",
            "processor_code": "invalid_grant",
        }
    )
    assert (await complete(house, caller, code, state))[1]["param"] == "state"
    assert await stored(house, caller) is None


async def test_an_account_of_another_organisation_is_not_attached_and_its_owner_not_named(house: ServiceHouse) -> None:
    first, second = await house.world.caller(), await house.world.caller()
    account, code, state = await way(house, first)
    assert (await complete(house, first, code, state))[0] == 200
    status, body = await complete(house, second, await consented(house, account), await state_for(house, second))
    assert status == 409
    assert without_request_id(body) == snapshot(
        {
            "error": "This account is connected to another organisation already",
            "code": "payments_account_taken",
            "hint": "The consent stays until the account's owner takes it back in the account's settings at the processor",
        }
    )
    assert first.organisation not in str(body) and account not in str(body)
    assert await stored(house, second) is None
    assert (await stored(house, first) or pytest.fail()).account == account


async def test_an_organisation_keeps_the_account_it_has(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    first = await onboarded(house, caller)
    _, code, state = await way(house, caller)
    status, body = await complete(house, caller, code, state)
    assert status == 409
    assert without_request_id(body) == snapshot(
        {
            "error": "Your organisation has another account connected already, and keeps it",
            "code": "payments_already_connected",
            "hint": "The consent stays until the account's owner takes it back in the account's settings at the processor",
        }
    )
    assert (await stored(house, caller) or pytest.fail()).account == first


async def test_an_express_account_that_was_never_finished_gives_way(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    first = await onboarded(house, caller, finished=False)
    account, code, state = await way(house, caller)
    status, body = await complete(house, caller, code, state)
    assert (status, body["account_id"], body["status"]) == (200, account, "active")
    assert first in {row.id for row in await connected_accounts(house)}


async def test_an_express_account_that_was_restricted_does_not_give_way(house: ServiceHouse) -> None:
    from simulators.processor.onboarding import restrict_account

    caller = await house.world.caller()
    first = await onboarded(house, caller)
    async with house.world.payments.turn(writes=True) as state:
        restrict_account(state, first)
    await call_connect(house, caller.secret, "GET", f"{BILLING_PATH}/connect/status")
    _, code, given = await way(house, caller)
    assert (await complete(house, caller, code, given))[0] == 409
    assert await stored(house, caller) == (caller.organisation, first, "express", "pending", 1)


@pytest.mark.parametrize("kind", ["standard", "express"])
async def test_an_account_that_let_the_service_go_unheard_gives_way(house: ServiceHouse, kind: str) -> None:
    caller = await house.world.caller()
    first = await brought(house, caller) if kind == "standard" else await onboarded(house, caller)
    house.world.clock.advance(60)
    await let_go(house, first)
    assert await stored(house, caller) == (caller.organisation, first, kind, "active", 1)
    account, code, state = await way(house, caller)
    status, body = await complete(house, caller, code, state)
    assert (status, body.get("account_id"), body.get("status")) == (200, account, "active")
    assert await stored(house, caller) == (caller.organisation, account, "standard", "active", 1)


async def test_an_account_that_let_the_service_go_unheard_may_be_brought_again(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account = await brought(house, caller)
    await let_go(house, account)
    status, body = await complete(house, caller, await consented(house, account), await state_for(house, caller))
    assert (status, body["account_id"], body["status"]) == (200, account, "active")


@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "rate_limited", "garbage"])
async def test_an_account_of_which_the_processor_says_nothing_does_not_give_way(house: ServiceHouse, kind: Any) -> None:
    caller = await house.world.caller()
    first = await brought(house, caller)
    await let_go(house, first)
    _, code, state = await way(house, caller)
    trouble(house, kind, f"/v1/accounts/{first}")
    status, body = await complete(house, caller, code, state)
    assert (status, body["code"]) == (409, "payments_already_connected")
    assert await stored(house, caller) == (caller.organisation, first, "standard", "active", 1)


async def test_an_account_that_gives_way_does_so_to_none_that_is_another_organisations(house: ServiceHouse) -> None:
    caller, other = await house.world.caller(), await house.world.caller()
    first, theirs = await brought(house, caller), await brought(house, other)
    await let_go(house, first)
    status, body = await complete(house, caller, await consented(house, theirs), await state_for(house, caller))
    assert (status, body["code"]) == (409, "payments_account_taken")
    assert (await stored(house, caller) or pytest.fail()).account == first


async def test_an_account_of_which_something_newer_is_known_does_not_give_way(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await attached(house, caller, "acct_1First", kind="standard")
    now = house.world.clock.now()

    async def attach(as_of: float) -> bool:
        said = {"organisation": caller.organisation, "account": "acct_1Next", "kind": "standard", "status": "active", "gone": "acct_1First"}
        return await house.world.store.write(attach_connect_account, **said, as_of=as_of, now=now)

    assert [await attach(now - 1), await attach(now)] == [False, True]


async def test_the_same_account_may_be_brought_again(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account, code, state = await way(house, caller)
    await complete(house, caller, code, state)
    status, body = await complete(house, caller, await consented(house, account), await state_for(house, caller))
    assert (status, body["account_id"]) == (200, account)


@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "rate_limited", "garbage"])
async def test_a_processor_that_fails_attaches_nothing(house: ServiceHouse, kind: Any) -> None:
    caller = await house.world.caller()
    _, code, state = await way(house, caller)
    trouble(house, kind, "/oauth/token")
    status, body = await complete(house, caller, code, state)
    assert (status, body["code"]) == (502, "payments_error" if kind == "rate_limited" else "OUTCOME_UNKNOWN")
    assert await stored(house, caller) is None
    assert (await complete(house, caller, code, state))[1]["param"] == "state"


async def test_an_account_that_was_let_in_is_attached_though_nothing_more_is_told_of_it(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account, code, state = await way(house, caller)
    trouble(house, "error", "/v1/accounts/*")
    status, body = await complete(house, caller, code, state)
    assert (status, body["status"], body["account_id"]) == (200, "pending", account)
    house.world.payments.faults.queue.clear()
    assert (await call_connect(house, caller.secret, "GET", f"{BILLING_PATH}/connect/status"))[1]["status"] == "active"


async def test_records_that_cannot_be_read_do_not_stand_in_the_way(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, code, state = await way(house, caller)
    for path in ("/v1/charges", "/v1/payouts", "/v1/refunds", "/v1/disputes"):
        trouble(house, "error", path, method="GET")
    assert (await complete(house, caller, code, state))[0] == 200


async def test_a_state_is_told_again_to_its_own_credential_alone(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    colleague = await house.world.caller(organisation=caller.organisation)
    first = await call_connect(house, caller.secret, "POST", BEGIN, {}, key="one")
    assert await call_connect(house, caller.secret, "POST", BEGIN, {}, key="one") == first
    assert (await call_connect(house, colleague.secret, "POST", BEGIN, {}, key="one"))[1]["code"] == "idempotency_key_reused"


async def test_a_service_without_a_client_id_says_so(house: ServiceHouse) -> None:
    from dataclasses import replace

    from clients.http import Outbound
    from clients.payments.client import PROCESSOR_LIMITS, ProcessorClient
    from clients.payments.port import ProcessorSettings

    caller = await house.world.caller()
    without = ProcessorClient(ProcessorSettings(key="sk_test_1", webhook_secrets=()), Outbound(PROCESSOR_LIMITS))
    before = house.world.pipeline.deps
    house.world.pipeline.deps = replace(before, payments=without)
    status, body = await call_connect(house, caller.secret, "POST", BEGIN, {})
    assert status == 501
    assert without_request_id(body) == snapshot(
        {
            "error": "This service has no client id for OAuth at the payment processor, so accounts of your own cannot be connected",
            "code": "not_implemented",
            "hint": "POST /v1/operator-billing/connect/begin makes an account; the client id is SERVICE_PAYMENTS_CLIENT_ID",
        }
    )
    house.world.pipeline.deps = before


async def test_states_are_forgotten_when_their_time_has_passed(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await state_for(house, caller)
    assert await house.world.store.write(sweep_connect_states, now=NOON + 599) == 0
    assert await house.world.store.write(sweep_connect_states, now=NOON + 600) == 1


@pytest.mark.parametrize("given", [{"code": ""}, {"code": "a b"}, {"code": "x" * 501}, {"state": "é"}, {"state": ""}, {"code": 5}])
async def test_what_is_no_code_or_state_is_named_and_not_repeated(house: ServiceHouse, given: dict[str, object]) -> None:
    caller = await house.world.caller()
    body = {"code": "ac_1", "state": "x" * 43, **given}
    status, said = await call_connect(house, caller.secret, "POST", COMPLETE, body)
    assert (status, said["param"]) == (400, next(iter(given)))
    assert "a b" not in said["error"]


@pytest.mark.rule("4.5.51")
async def test_dashboard_links_are_for_express_accounts(house: ServiceHouse) -> None:
    link = f"{BILLING_PATH}/connect/dashboard-link"
    caller, standard = await house.world.caller(), await house.world.caller()
    status, body = await call_connect(house, caller.secret, "POST", link, {})
    assert status == 409
    assert without_request_id(body) == snapshot(
        {
            "error": "Your organisation has no account at the payment processor yet, and this call needs one; nothing was done",
            "code": "payments_not_connected",
            "hint": "Open the url of POST /v1/operator-billing/connect/begin, signed in, or of operator_billing_connect_oauth_begin",
        }
    )
    await onboarded(house, caller)
    said = [await call_connect(house, caller.secret, "POST", link, {}) for _ in range(2)]
    assert [status for status, _ in said] == [200, 200]
    assert all(list(body) == ["url"] and body["url"].startswith("https://reseller.test/sandbox/payments/") for _, body in said)
    await attached(house, standard, "acct_1Own", kind="standard")
    status, body = await call_connect(house, standard.secret, "POST", link, {})
    assert (status, body["code"]) == (409, "payments_account_standard")


@pytest.mark.cases
@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "rate_limited", "garbage"])
async def test_a_dashboard_link_that_the_processor_does_not_give_is_told_and_may_be_asked_for_again(house: ServiceHouse, kind: Any) -> None:
    link = f"{BILLING_PATH}/connect/dashboard-link"
    caller = await house.world.caller()
    await onboarded(house, caller)
    trouble(house, kind)
    status, body = await call_connect(house, caller.secret, "POST", link, {}, key="one")
    assert (status, body["code"]) == (502, "payments_timeout" if kind == "timeout" else "payments_error")
    house.world.payments.faults.queue.clear()
    assert (await call_connect(house, caller.secret, "POST", link, {}, key="two"))[0] == 200
