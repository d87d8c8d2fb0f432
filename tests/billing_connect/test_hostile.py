"""A processor that answers with what is another's, or in another shape, and addresses that lead two programs to two places."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from simulators.processor.faults import ProcessorFault
from simulators.processor.simulated_processor import SimulatedProcessor
from simulators.server import WireAnswer
from storage.connect_accounts import find_connect_account
from tests.billing_connect.asking import (
    BILLING_PATH,
    attached,
    call_connect,
    connected_accounts,
    consented,
    member_session,
    own_account,
    person,
)
from tests.contract.stage import ServiceHouse, StubProvider
from tests.world import HOST, SettableClock, open_world
from transports.payments import SIMULATED_PROCESSOR_KEY

BEGIN = f"{BILLING_PATH}/connect/begin"


class Liar(SimulatedProcessor):
    about = "/nowhere"
    lie: Callable[[dict[str, Any]], object]

    async def handle(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> WireAnswer:
        answer = await super().handle(method, path, query, headers, body)
        if self.about not in path or answer.status != 200:
            return answer
        told = orjson.loads(answer.body)
        instead = self.lie(told)
        return instead if isinstance(instead, WireAnswer) else WireAnswer(answer.status, orjson.dumps(told), answer.headers)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[ServiceHouse]:
    liar = Liar(
        wall=SettableClock().now,
        pages_url=f"https://{HOST}/sandbox/payments",
        key=SIMULATED_PROCESSOR_KEY,
        webhook_secret="whsec_dGVzdHMgb2YgdGhlIHJlc2VsbGVyIHNlcnZpY2U=",
    )
    limits = Limits(burst_enabled=False)
    async with open_world(tmp_path, CATALOGUE, limits=limits, sessions=StubProvider(), payments=liar) as world:
        yield ServiceHouse(world)
        assert world.faults == []


def lies(house: ServiceHouse, about: str, **members: object) -> None:
    liar = house.world.payments
    assert isinstance(liar, Liar)
    liar.about, liar.lie = about, lambda told: told.update(members)


async def status_in_store(house: ServiceHouse, organisation: str) -> str | None:
    found = await house.world.store.read(find_connect_account, organisation=organisation)
    return None if found is None else found.status


@pytest.mark.parametrize("path", [f"{BILLING_PATH}/connect/status", "/v1/invoices/payments/connect/status"])
async def test_an_answer_about_a_neighbours_account_changes_neither(house: ServiceHouse, path: str) -> None:
    caller, neighbour = await house.world.caller(), await house.world.caller()
    await attached(house, caller, await own_account(house), status="active")
    await attached(house, neighbour, "acct_1Neighbour", status="active")
    house.world.clock.advance(60)
    lies(house, "/v1/accounts/", id="acct_1Neighbour", charges_enabled=False, details_submitted=False)
    status, body = await call_connect(house, caller.secret, "GET", path)
    assert (status, body["status"], body["charges_enabled"]) == (200, "active", False)
    assert [await status_in_store(house, each.organisation) for each in (caller, neighbour)] == ["active", "active"]


async def test_a_new_account_that_is_a_neighbours_is_not_kept(house: ServiceHouse) -> None:
    neighbour = await house.world.caller()
    await attached(house, neighbour, "acct_1Neighbour")
    session, organisation = await person(house)
    lies(house, "/v1/accounts", id="acct_1Neighbour")
    status, body = await call_connect(house, session, "POST", BEGIN, {"country": "NO"})
    assert (status, body["code"]) == (502, "payments_error")
    assert "Neighbour" not in str(body) and await status_in_store(house, organisation) is None


@pytest.mark.cases
@pytest.mark.parametrize(
    ("refused", "code", "said"),
    [
        (403, "account_invalid", (502, "payments_error")),
        (404, "resource_missing", (502, "payments_error")),
        (403, "permission", (502, "payments_error")),
        (400, "account_closed", (400, "payments_refused")),
    ],
)
async def test_an_account_that_the_processor_does_not_let_us_into_is_not_attached(
    house: ServiceHouse, refused: int, code: str, said: tuple[int, str]
) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    state = (await call_connect(house, caller.secret, "POST", f"{BILLING_PATH}/connect/oauth/begin", {}))[1]["state"]
    given = {"code": await consented(house, await own_account(house)), "state": state}
    liar = house.world.payments
    assert isinstance(liar, Liar)
    error = {"error": {"type": "invalid_request_error", "code": code, "message": "hidden words"}}
    liar.about, liar.lie = "/v1/accounts/", lambda told: WireAnswer(refused, orjson.dumps(error))
    status, body = await call_connect(house, caller.secret, "POST", f"{BILLING_PATH}/connect/oauth/complete", given)
    assert (status, body.get("code")) == said
    assert await status_in_store(house, caller.organisation) is None
    assert "hidden words" not in str(body) and ("oauth_begin" in str(body)) == (code in ("account_invalid", "resource_missing"))


async def test_whoever_begins_again_in_another_country_after_a_lost_answer_is_told_what_to_do(house: ServiceHouse) -> None:
    session, _ = await person(house)
    lost = ProcessorFault(trouble="closed", method="POST", path="/v1/accounts", account=None, times=5, after=True)
    house.world.payments.faults.queue.append(lost)
    assert (await call_connect(house, session, "POST", BEGIN, {"country": "NO"}))[0] == 502
    house.world.payments.faults.queue.clear()
    status, body = await call_connect(house, session, "POST", BEGIN, {"country": "DE"})
    assert (status, body["param"]) == (400, "country")
    assert "Idempotency-Key" not in str(body) and "first call" in body["hint"]
    assert (await call_connect(house, session, "POST", BEGIN, {"country": "NO"}))[0] == 200
    assert [account.country for account in await connected_accounts(house)] == ["NO"]


async def test_whoever_begins_with_an_account_that_went_unheard_gets_a_new_one(house: ServiceHouse) -> None:
    from simulators.processor.onboarding import release_account

    session, organisation = await person(house)
    first = (await call_connect(house, session, "POST", BEGIN, {"country": "NO"}))[1]["account_id"]
    house.world.clock.advance(60)
    async with house.world.payments.turn(writes=True) as state:
        release_account(state, first)  # and nobody is told
    said = await asyncio.gather(*(call_connect(house, session, "POST", BEGIN, {"country": "NO"}) for _ in range(8)))
    assert [status for status, _ in said] == [200] * 8
    [second] = {body["account_id"] for _, body in said}
    assert second != first and await status_in_store(house, organisation) == "pending"
    assert len(await connected_accounts(house)) == 2


@pytest.mark.cases
@pytest.mark.parametrize(
    "address",
    [
        "https://fjord.example;script-src/",
        "https://fjord.example,evil.example/",
        "https://fjord.example'/",
        "https://%00/",
        "https://fjord.example%2f.evil.example/",
        "https://\uff0e/",
        "https://\u2100fjord.example/",
        "https://[::1",
    ],
)
async def test_an_address_whose_host_two_programs_read_differently_is_refused(house: ServiceHouse, address: str) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    session = await member_session(house, caller)
    for path, name in (("connect/begin", "return_url"), ("connect/begin", "refresh_url"), ("connect/oauth/begin", "return_url")):
        status, body = await call_connect(house, session, "POST", f"{BILLING_PATH}/{path}", {name: address})
        assert (status, body["param"]) == (400, name)
    for fine in ("https://b\u00fccher.example/x", "https://[2001:db8::1]:8443/", "https://a-b.c_d.example./?x=1"):
        assert (await call_connect(house, session, "POST", f"{BILLING_PATH}/connect/oauth/begin", {"return_url": fine}))[0] == 200
