"""POST /v1/onboarding/test-esim: the first line of the account as a preview, or a demo and why."""

from typing import Any

import pytest

from operations.ledger.esims import luhn_digit
from registry.caller import Role, Tier
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from storage.upstream_connections import set_connection
from tests.contract.stage import ServiceHouse
from tests.setup.newcomer import BEGINNING, OTHER_TOKEN, Newcomer, newcomer, settle_in, steps_with

STEP = "test-esim"


def lines(new: Newcomer, account: int) -> list[Line]:
    assert new.sandbox.world is not None
    return list(new.sandbox.world.lines_of(account))


async def preview(new: Newcomer) -> dict[str, Any]:
    return (await new.done(STEP))["test_esim"]


async def demo_reason(new: Newcomer) -> str:
    """Why there is a demo, which is one."""
    shown = await preview(new)
    iccid = shown["iccid"]
    assert (shown["demo"], shown["status"], len(iccid), iccid[:4]) == (True, None, 19, "8999")
    assert luhn_digit(iccid[:-1]) == iccid[-1]
    new.asked()
    return shown["demo_reason"]


@pytest.mark.rule("4.9.30")
async def test_the_first_line_of_the_account_is_shown_and_nothing_issued(house: ServiceHouse) -> None:
    new = await newcomer(house, Tier.FREE, Role.MEMBER, mode="managed", account=8101)
    shown = await preview(new)
    listed = await house.world.pipeline.deps.ocs.for_token(house.world.pipeline.deps.ocs_token).subscriber.list_subscriber(8101)
    row = listed.get("subscriberList", [])[0]
    first = next(line for line in lines(new, 8101) if line.id == row.get("subscriberId"))
    assert shown == {
        "iccid": first.imsis[-1].iccid,
        "demo": False,
        "demo_reason": None,
        "status": "Active",
        "activated_at": f"{row.get('activationDate')}Z",
        "last_used_at": None,
    }
    assert set(new.asked()) == {"listSubscriber"}
    said = await new.tool("onboarding_test_esim")
    assert said.body["test_esim"] == shown
    sim: dict[str, object] = {**row.get("sim", {})}
    secrets = [str(sim[name]) for name in ("pin1", "puk1", "pin2", "puk2", "activationCode") if name in sim]
    assert secrets and not [secret for secret in secrets if secret in str(said.body)]


async def test_a_token_of_one_s_own_shows_a_line_of_its_first_account_that_has_one(house: ServiceHouse) -> None:
    new = await newcomer(house, token=OTHER_TOKEN)
    assert (await preview(new))["iccid"] in {line.imsis[-1].iccid for line in lines(new, 8201)}
    for line in lines(new, 8201):
        line.account_id = 8202
    moved = await preview(new)
    assert moved["demo"] is False and moved["iccid"] in {line.imsis[-1].iccid for line in lines(new, 8202)}


@pytest.mark.rule("4.9.31")
async def test_without_a_connection_it_is_a_demo(house: ServiceHouse) -> None:
    new = await newcomer(house)
    said = await new.ask(STEP)
    assert said.status_code == 200
    assert {**said.json(), "organization": {}} == {
        **BEGINNING,
        "steps": steps_with(test_esim="done"),
        "test_esim": {
            "iccid": "8999806986354554454",
            "demo": True,
            "demo_reason": "not_connected",
            "status": None,
            "activated_at": None,
            "last_used_at": None,
        },
    }
    assert (await demo_reason(new), new.asked()) == ("not_connected", [])


@pytest.mark.rule("4.9.31")
async def test_without_a_line_it_is_a_demo(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8104)
    for line in lines(new, 8104):
        line.account_id = 8103
    assert await demo_reason(new) == "no_lines"


async def test_an_account_that_is_gone_gives_a_demo(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8999)
    assert await demo_reason(new) == "account_absent"


async def test_without_a_credential_of_the_service_it_is_a_demo(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    settle_in(house, ocs_token=" ")
    assert (await demo_reason(new), new.asked()) == ("not_configured", [])


async def test_an_own_token_that_opens_no_more_gives_a_demo(house: ServiceHouse) -> None:
    new = await newcomer(house)
    await house.world.store.write(
        set_connection, organisation=new.who.organisation, mode="own", account_id=None, own_token="gone.gone.gone"
    )
    assert (await demo_reason(new), new.asked()) == ("ocs_unavailable", [])


@pytest.mark.cases
@pytest.mark.rule("4.9.31")
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ({"code": 14}, "ocs_unavailable"),
        ({"code": 17}, "ocs_unavailable"),
        ({"code": 8}, "ocs_unavailable"),
        ({"status": 503}, "ocs_unavailable"),
        ({"drop_before": True}, "ocs_unavailable"),
        ({"drop_after": True}, "ocs_unavailable"),
        ({"malformed": True}, "ocs_unavailable"),
        ({"empty": True}, "ocs_unavailable"),
        ({"code": 6}, "account_absent"),
        ({"code": 11}, "account_absent"),
        ({"code": 18}, "ocs_timeout"),
        ({"delay": 60.0}, "ocs_timeout"),
        ({"null_lists": True}, "no_lines"),
    ],
    ids=str,
)
async def test_a_charging_system_in_trouble_gives_a_demo(house: ServiceHouse, trouble: dict[str, Any], reason: str) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    new.sandbox.faults.add(NetworkFault("listSubscriber", times=None, **trouble))
    assert await demo_reason(new) == reason
    new.sandbox.faults.clear()
    assert (await preview(new))["demo"] is False


@pytest.mark.parametrize("method", ["listResellerAccount"])
async def test_an_own_token_in_trouble_gives_a_demo(house: ServiceHouse, method: str) -> None:
    new = await newcomer(house, token=OTHER_TOKEN)
    new.sandbox.faults.add(NetworkFault(method, code=14, times=None))
    assert await demo_reason(new) == "ocs_unavailable"


@pytest.mark.parametrize("iccid", ["", "8988", "9988303700000100286", "x" * 19, "8988303700000100286\n", "\u0668" * 19])
async def test_a_line_without_an_iccid_gives_a_demo(house: ServiceHouse, iccid: str) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    for line in lines(new, 8101):
        for imsi in line.imsis:
            imsi.iccid = iccid
    assert await demo_reason(new) == "unreadable"


async def test_a_preview_is_of_the_account_that_is_connected(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    assert (await preview(new))["demo"] is False
    state = await new.done("ocs-connect", token=OTHER_TOKEN)
    assert state["test_esim"] is None
