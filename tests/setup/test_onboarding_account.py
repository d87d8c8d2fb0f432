"""POST /v1/onboarding/managed-account: the organisation finds its sub-account, or is told why there is none."""

from typing import Any

import pytest

from simulators.network.faults import NetworkFault
from simulators.network.seed.resellers import SIMULATED_TOKENS
from storage.upstream_connections import assign_account, find_upstream, leave_simulation, set_connection, unassign_account
from tests.contract.stage import ServiceHouse
from tests.setup.newcomer import BEGINNING, OTHER_TOKEN, SERVICE_TOKEN, Newcomer, newcomer, pending, settle_in, steps_with

STEP = "managed-account"
MANAGED = (False, None, True)
READS = {"getResellerInfo", "listResellerAccount"}


async def assign(new: Newcomer, account: int) -> None:
    found = await new.house.world.store.write(assign_account, organisation=new.who.organisation, account_id=account)
    assert found == "assigned"


@pytest.mark.rule("4.9.22")
async def test_the_account_that_was_assigned_is_connected(house: ServiceHouse) -> None:
    new = await newcomer(house)
    await assign(new, 8102)
    state = await new.done(STEP)
    assert state["connection"] == {"connected": True, "mode": "managed", "account_id": 8102, "former_token_until": None}
    assert (pending(state), await new.connection()) == (MANAGED, ("managed", 8102))
    async with house.world.client(new.who.secret) as http:
        shown = (await http.get("/v1/accounts")).json()["data"]
    assert [account["id"] for account in shown] == [8102]
    assert set(new.asked()) == READS


async def test_the_account_whose_name_holds_the_organisation_s_id_is_connected(house: ServiceHouse) -> None:
    new = await newcomer(house)
    new.rename(8103, f"Reseller ({new.who.organisation.upper()})")
    said = await new.tool("onboarding_start_managed_account")
    assert (pending(said.body), await new.connection()) == (MANAGED, ("managed", 8103))
    assert (await new.organisation()).assigned_account_id is None


async def test_an_account_is_never_told_by_the_organisation_s_display_name(house: ServiceHouse) -> None:
    new = await newcomer(house)
    for account, name in ((8102, "Reseller"), (8103, "Fleet Trackers"), (8104, "org_")):
        new.rename(account, name)
    for name in ("Reseller", "Fleet Trackers", "Demo Retail", "org_", "8101"):
        await new.done("org", name=name, country="NO", operator_type="mvno")
        assert pending(await new.done(STEP)) == (True, "account_absent", True)
    assert await new.connection() == (None, None)


async def test_an_account_of_another_reseller_is_not_told_by_its_name(house: ServiceHouse) -> None:
    """Whoever runs a reseller below the service's may name an account after a stranger's organisation, to watch its lines."""
    new = await newcomer(house)
    assert new.sandbox.world is not None
    fjord, alpine = SIMULATED_TOKENS
    new.sandbox.world.resellers[alpine.reseller_id].parent_id = fjord.reseller_id
    new.rename(8201, new.who.organisation)
    assert pending(await new.done(STEP)) == (True, "account_absent", True)
    listed = await house.world.pipeline.deps.ocs.for_token(SERVICE_TOKEN).reseller.list_reseller_account()
    assert [one.get("id") for one in listed] == [7001, 7002]  # it sees that account


@pytest.mark.rule("4.9.24")
async def test_without_an_account_it_is_pending_and_the_choice_recorded(house: ServiceHouse) -> None:
    new = await newcomer(house)
    said = await new.ask(STEP)
    assert said.status_code == 200
    assert {**said.json(), "organization": {}} == {
        **BEGINNING,
        "steps": steps_with(ocs="pending"),
        "managed_path_chosen": True,
        "pending": True,
        "pending_reason": "account_absent",
    }
    await assign(new, 8104)
    assert pending(await new.state()) == (True, "account_absent", True)
    house.world.clock.advance(1)
    assert (pending(await new.done(STEP)), await new.connection()) == (MANAGED, ("managed", 8104))


@pytest.mark.rule("4.9.25")
async def test_an_assigned_account_that_is_gone_is_absent(house: ServiceHouse) -> None:
    new = await newcomer(house)
    await assign(new, 8999)
    new.rename(8103, new.who.organisation)
    assert pending(await new.done(STEP)) == (True, "account_absent", True)
    assert await new.connection() == (None, None)


async def test_two_accounts_with_the_organisation_s_id_conflict(house: ServiceHouse) -> None:
    new = await newcomer(house)
    for account in (8102, 8103):
        new.rename(account, f"{new.who.organisation} {account}")
    assert pending(await new.done(STEP)) == (True, "account_conflict", True)
    await assign(new, 8103)
    assert (pending(await new.done(STEP)), await new.connection()) == (MANAGED, ("managed", 8103))


@pytest.mark.rule("4.9.24")
@pytest.mark.parametrize("way", ["connected", "assigned"])
async def test_an_account_that_another_organisation_has_conflicts(house: ServiceHouse, way: str) -> None:
    new = await newcomer(house)
    other = await new.another()
    if way == "connected":
        await house.world.store.write(set_connection, organisation=other.who.organisation, mode="managed", account_id=8102, own_token=None)
        await house.world.store.write(unassign_account, organisation=other.who.organisation)
    else:
        await assign(other, 8102)
    new.rename(8102, new.who.organisation)
    assert pending(await new.done(STEP)) == (True, "account_conflict", True)
    assert await new.connection() == (None, None)
    await house.world.store.write(set_connection, organisation=other.who.organisation, mode=None, account_id=None, own_token=None)
    assert pending(await new.done(STEP)) == MANAGED


@pytest.mark.rule("4.9.24")
async def test_without_a_credential_of_the_service_nothing_is_asked(house: ServiceHouse) -> None:
    new = await newcomer(house)
    await assign(new, 8102)
    for blank in ("", "  "):
        settle_in(house, ocs_token=blank)
        assert pending(await new.done(STEP)) == (True, "not_configured", True)
    assert (new.asked(), await new.connection()) == ([], (None, None))


TROUBLE = {
    "a refusal": {"code": 14},
    "a fault of theirs": {"status": 503},
    "no time": {"delay": 60.0},
    "their own time-out": {"code": 18},
    "a dropped connection": {"drop_before": True},
    "nothing": {"empty": True},
    "garbage": {"malformed": True},
}


@pytest.mark.cases
@pytest.mark.rule("4.9.24")
@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
@pytest.mark.parametrize("method", sorted(READS))
async def test_a_charging_system_in_trouble_leaves_it_pending(house: ServiceHouse, method: str, trouble: dict[str, object]) -> None:
    new = await newcomer(house)
    await assign(new, 8102)
    new.sandbox.faults.add(NetworkFault(method, times=None, **trouble))  # pyright: ignore[reportArgumentType]
    assert pending(await new.done(STEP)) == (True, "ocs_unavailable", True)
    assert await new.connection() == (None, None)
    new.sandbox.faults.clear()
    assert pending(await new.done(STEP)) == MANAGED


async def test_a_service_token_that_is_not_accepted_any_more_is_trouble_of_the_charging_system(house: ServiceHouse) -> None:
    new = await newcomer(house)
    settle_in(house, ocs_token="forgotten-token")
    assert pending(await new.done(STEP)) == (True, "ocs_unavailable", True)


@pytest.mark.rule("4.9.23")
async def test_asking_again_changes_nothing(house: ServiceHouse) -> None:
    new = await newcomer(house)
    await assign(new, 8102)
    first = await new.done(STEP)
    await new.done("plan", template_id=55010)
    await new.done("test-esim")
    again = await new.done(STEP)
    assert again["plan"] is not None and again["test_esim"] is not None  # they are of the same account still
    assert (again["connection"], pending(again)) == (first["connection"], pending(first))
    key = {"Idempotency-Key": "once"}
    kept = await new.ask(STEP, {}, **key)
    replay = await new.ask(STEP, {}, **key)
    assert (replay.content, replay.headers["idempotent-replayed"], set(new.asked()) - READS) == (
        kept.content,
        "true",
        {"listPrepaidPackageTemplate", "listSubscriber"},
    )


@pytest.mark.cases
@pytest.mark.parametrize("mode", ["managed", "own"])
@pytest.mark.parametrize("reason", ["account_absent", "account_conflict", "not_configured", "ocs_unavailable"])
async def test_a_pending_outcome_leaves_a_connected_organisation_as_it_is(house: ServiceHouse, mode: str, reason: str) -> None:
    connected: dict[str, Any] = {"mode": "managed", "account": 8101} if mode == "managed" else {"token": OTHER_TOKEN}
    new = await newcomer(house, **connected)
    before, connection = await new.state(), await new.connection()
    if reason == "account_absent":
        await assign(new, 8999)
    elif reason == "account_conflict":
        other = await new.another()
        await house.world.store.write(set_connection, organisation=other.who.organisation, mode="managed", account_id=8104, own_token=None)
        await house.world.store.write(unassign_account, organisation=other.who.organisation)
        await house.world.store.write(unassign_account, organisation=new.who.organisation)
        if mode == "managed":  # whoever is connected to an account that is there stays
            new.sandbox.world.accounts.pop(8101)  # pyright: ignore[reportOptionalMemberAccess]
        new.rename(8104, new.who.organisation)
    elif reason == "not_configured":
        settle_in(house, ocs_token="")
    else:
        new.sandbox.faults.add(NetworkFault("listResellerAccount", code=14, times=None))
    state = await new.done(STEP)
    assert pending(state) == (True, reason, True)
    assert (state["connection"], await new.connection()) == (before["connection"], connection)
    if mode == "own":
        async with house.world.client(new.who.secret) as http:
            assert (await http.get("/v1/reseller")).json()["data"]["id"] == 7002  # its token works still


@pytest.mark.rule("4.9.27")
async def test_from_managed_to_a_token_of_its_own_and_back(house: ServiceHouse) -> None:
    new = await newcomer(house)
    await assign(new, 8102)
    await new.done(STEP)
    await new.done("plan", template_id=55010)
    state = await new.done("ocs-connect", token=OTHER_TOKEN)
    of_its_own = {"connected": True, "mode": "own", "account_id": None, "former_token_until": None}
    assert (state["connection"], state["managed_path_chosen"]) == (of_its_own, False)
    assert state["plan"] is None  # its template was of the account before
    assert ((await new.organisation()).assigned_account_id, await new.connection()) == (8102, ("own", None))
    state = await new.done(STEP)
    assert (pending(state), await new.connection()) == (MANAGED, ("managed", 8102))
    assert await own_token_of(new) is None
    async with house.world.client(new.who.secret) as http:
        assert [account["id"] for account in (await http.get("/v1/accounts")).json()["data"]] == [8102]


async def own_token_of(new: Newcomer) -> str | None:
    row = await new.house.world.store.read(find_upstream, organisation=new.who.organisation)
    assert row is not None
    return row.own_token


async def test_another_assignment_moves_the_organisation_when_it_asks(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    await assign(new, 8103)
    assert await new.connection() == ("managed", 8101)
    assert (pending(await new.done(STEP)), await new.connection()) == (MANAGED, ("managed", 8103))


async def test_who_shares_an_account_since_the_service_said_so_stays_connected(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    await new.another(mode="managed", account=8101)
    assert (pending(await new.done(STEP)), await new.connection()) == (MANAGED, ("managed", 8101))


async def test_a_new_account_is_found_at_once_though_lists_are_kept_for_a_minute(house: ServiceHouse) -> None:
    new = await newcomer(house)
    elder = await new.another(mode="managed", account=8101)
    async with house.world.client(elder.who.secret) as http:
        assert (await http.get("/v1/accounts")).status_code == 200
    new.rename(8104, new.who.organisation)
    await new.done(STEP)
    async with house.world.client(new.who.secret) as http:
        assert [account["name"] for account in (await http.get("/v1/accounts")).json()["data"]] == [new.who.organisation]


async def test_newcomers_of_a_simulated_network_get_the_spare_accounts_one_after_the_other(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    settle_in(house, spare_accounts=(8102, 8777, 8103))
    seats = [await new.another() for _ in range(3)]
    states = [await seat.done(STEP) for seat in (*seats, *seats)]
    assert [pending(state) for state in states] == [MANAGED, MANAGED, (True, "account_absent", True)] * 2
    assert [await seat.connection() for seat in seats] == [("managed", 8102), ("managed", 8103), (None, None)]
    assert pending(await new.done(STEP)) == MANAGED
    await seats[0].done("ocs-connect", token=OTHER_TOKEN)
    assert pending(await seats[2].done(STEP)) == (True, "account_absent", True)  # what was given stays given
    await seats[0].done(STEP)
    assert await seats[0].connection() == ("managed", 8102)


async def test_what_a_simulated_network_gave_is_nobody_s_in_a_real_one(house: ServiceHouse) -> None:
    new = await newcomer(house)
    settle_in(house, spare_accounts=(8102, 8103))
    token, managed = await new.another(), await new.another()
    await managed.done(STEP)
    await token.done(STEP)
    await token.done("ocs-connect", token=OTHER_TOKEN)
    real = await new.another()
    await house.world.store.write(set_connection, organisation=real.who.organisation, mode="managed", account_id=8104, own_token=None)
    assert len(await house.world.store.write(leave_simulation)) == 2
    settle_in(house, spare_accounts=())
    for seat in (managed, token):
        row = await seat.organisation()
        assert (row.mode, row.account_id, row.assigned_account_id) == (None, None, None)
        assert pending(await seat.done(STEP)) == (True, "account_absent", True)
    assert (await real.connection(), (await real.organisation()).assigned_account_id) == (("managed", 8104), 8104)
