"""Calls of this folder, and what a test does at the simulated processor beside them."""

from typing import Any

from registry.caller import Tier
from simulators.processor.faults import FaultTrouble, ProcessorFault
from simulators.processor.state import ProcessorAccount
from storage.connect_accounts import attach_connect_account
from tests.contract.stage import ServiceHouse
from tests.world import Credentials

BILLING_PATH = "/v1/operator-billing"
ConnectAnswer = tuple[int, dict[str, Any]]


async def call_connect(
    house: ServiceHouse, secret: str | None, method: str, path: str, body: object = None, *, key: str | None = None, sure: bool = False
) -> ConnectAnswer:
    """One call: its status and its body; whoever is sure confirms it where that is asked."""
    headers = {} if key is None else {"Idempotency-Key": key}
    async with house.client(secret) as http:
        answer = await http.request(method, path, json=body, headers=headers)
        if sure and answer.status_code == 202:
            headers["X-Confirm-Token"] = answer.json()["confirm_token"]
            answer = await http.request(method, path, json=body, headers=headers)
    return answer.status_code, answer.json()


async def person(house: ServiceHouse, tier: Tier = Tier.FREE) -> tuple[str, str]:
    """Somebody with a session in a new organisation: the session, and the organisation."""
    world = house.world
    subject = world.ids.new("sub_")
    id, organisation = await world.person(subject=subject), await world.organisation(tier)
    await world.join(id, organisation)
    return f"session.{subject}.{organisation}", organisation


async def member_session(house: ServiceHouse, who: Credentials) -> str:
    world = house.world
    subject = world.ids.new("sub_")
    await world.join(await world.person(subject=subject), who.organisation)
    return f"session.{subject}.{who.organisation}"


async def onboarded(house: ServiceHouse, who: Credentials, *, finished: bool = True) -> str:
    """An Express account of this organisation, made through the front door; its owner has told everything, unless not finished."""
    status, body = await call_connect(house, await member_session(house, who), "POST", f"{BILLING_PATH}/connect/begin", {"country": "NO"})
    assert status == 200, body
    if finished:
        await finish_onboarding(house, body["account_id"])
        assert (await call_connect(house, who.secret, "GET", f"{BILLING_PATH}/connect/status"))[1]["status"] == "active"
    return body["account_id"]


async def finish_onboarding(house: ServiceHouse, account: str) -> None:
    """The account's owner tells the processor everything."""
    from simulators.processor.onboarding import complete_onboarding

    async with house.world.payments.turn(writes=True) as state:
        complete_onboarding(state, account)


async def restricted(house: ServiceHouse, who: Credentials, account: str) -> None:
    """The processor wants to know more of the account's owner and stops payments; the service has seen it."""
    from simulators.processor.onboarding import restrict_account

    async with house.world.payments.turn(writes=True) as state:
        restrict_account(state, account, None)
    house.world.clock.advance(60)
    assert (await call_connect(house, who.secret, "GET", f"{BILLING_PATH}/connect/status"))[1]["status"] == "pending"


async def own_account(house: ServiceHouse) -> str:
    """A Standard account that somebody has at the processor, and that no organisation is connected with."""
    from simulators.processor.onboarding import open_standard_account

    async with house.world.payments.turn(writes=True) as state:
        return open_standard_account(state).id


async def brought(house: ServiceHouse, who: Credentials) -> str:
    from simulators.processor.onboarding import attach_account

    account = await own_account(house)
    async with house.world.payments.turn(writes=True) as state:
        attach_account(state, account)
    await attached(house, who, account, kind="standard")
    return account


async def let_go(house: ServiceHouse, account: str) -> None:
    """Its owner lets the service go, and the event of it is lost."""
    from simulators.processor.onboarding import release_account

    async with house.world.payments.turn(writes=True) as state:
        release_account(state, account)


async def consented(house: ServiceHouse, account: str) -> str:
    """The code with which its owner comes back."""
    from simulators.processor.onboarding import authorize_oauth

    async with house.world.payments.turn(writes=True) as state:
        return authorize_oauth(state, account)


async def connected_accounts(house: ServiceHouse) -> list[ProcessorAccount]:
    async with house.world.payments.turn(writes=False) as state:
        return [account for id, account in state.accounts.items() if id != state.platform]


async def attached(house: ServiceHouse, who: Credentials, account: str, *, kind: str = "express", status: str = "active") -> None:
    """The organisation's account is this one, whatever the processor knows."""
    now = house.world.clock.now()
    assert await house.world.store.write(
        attach_connect_account, organisation=who.organisation, account=account, kind=kind, status=status, as_of=now, now=now
    )


def trouble(house: ServiceHouse, kind: FaultTrouble, path: str = "*", *, method: Any = "*", times: int = 50, after: bool = False) -> None:
    house.world.payments.faults.queue.append(ProcessorFault(trouble=kind, method=method, path=path, account=None, times=times, after=after))
