"""Replacing a live connection to the charging system: by an admin alone, who confirms it, and undone once within a day."""

from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from simulators.network.entities import NetworkToken
from simulators.network.faults import NetworkFault
from storage.access_grants import AccessGrant, insert_grant
from storage.former_tokens import find_former_token
from storage.rekey import SEALED_COLUMNS, reseal
from storage.sealing import OWN_TOKEN_FIELD, Keyring, new_key_setting
from storage.upstream_connections import assign_account, find_upstream, leave_simulation, set_connection
from tests.contract.stage import Answered, ServiceHouse
from tests.setup.newcomer import OTHER_TOKEN, SERVICE_TOKEN, Newcomer, newcomer, settle_in
from tests.stage import opened_on_both
from tests.world import World, open_world
from transports.worker.retention import retention_chore

CONNECT, MANAGED, RESTORE = (
    CATALOGUE.operations[name]
    for name in ("onboarding_connect_ocs_token", "onboarding_start_managed_account", "onboarding_restore_ocs_token")
)
SECOND = "sandbox-7002-second-token"
LIVE = ("managed", "own")
DAY = 86_400


async def live(house: ServiceHouse, mode: str = "own", tier: Tier = Tier.PRO) -> Newcomer:
    """An organisation that is connected, and for which another account is opened."""
    connected: dict[str, Any] = {"token": SERVICE_TOKEN} if mode == "own" else {"mode": "managed", "account": 8101}
    new = await newcomer(house, tier, **connected)
    assert new.sandbox.world is not None
    new.sandbox.world.tokens = {**new.sandbox.world.tokens, SECOND: NetworkToken(SECOND, 7002)}
    assert await house.world.store.write(assign_account, organisation=new.who.organisation, account_id=8102) == "assigned"
    return new


async def strangers(new: Newcomer) -> dict[str, tuple[str, str]]:
    """Everybody of the organisation who may not replace its connection: their credential, and the code of the refusal."""
    world, organisation = new.house.world, new.who.organisation
    member = await world.caller(organisation=organisation, role=Role.MEMBER)
    _, narrow = await world.key(new.who.person, organisation, restrictions=Restrictions(no_admin=True))
    now = world.clock.now()
    grant = AccessGrant(world.ids.new("gnt_"), new.who.person, organisation, "client", "A program", "read write", "", now, now + 3600)
    await world.store.write(insert_grant, grant)
    return {
        "member": (member.secret, "role_required"),
        "key without admin": (narrow, "credential_restricted"),
        "login with read and write": (f"login.{grant.person_id}.{grant.id}", "credential_restricted"),
    }


async def reach(new: Newcomer) -> tuple[str | None, int | None, str | None]:
    """Mode, account and token of the organisation."""
    world = new.house.world
    row = await world.store.read(find_upstream, organisation=new.who.organisation)
    assert row is not None
    keyring = world.pipeline.deps.keyring
    token = None if row.own_token is None else keyring.open(row.own_token, org_id=new.who.organisation, field=OWN_TOKEN_FIELD)
    return row.mode, row.account_id, token


async def former(new: Newcomer) -> str | None:
    """The former token, opened; nothing where none is kept now."""
    world = new.house.world
    found = await world.store.read(find_former_token, organisation=new.who.organisation, now=world.clock.now())
    return found and world.pipeline.deps.keyring.open(found.sealed, org_id=new.who.organisation, field=OWN_TOKEN_FIELD)


async def sure(new: Newcomer, token: str | None = OTHER_TOKEN, key: str | None = None) -> Answered:
    """An admin switches to a token, or to the managed account, and confirms it."""
    operation, given = (MANAGED, {}) if token is None else (CONNECT, {"token": token})
    return await new.house.http(operation, new.who.secret, given, key=key, sure=True)


@pytest.mark.parametrize("mode", LIVE)
@pytest.mark.parametrize("door", ["http", "mcp"])
async def test_a_live_connection_is_replaced_by_no_member_and_by_no_credential_without_admin(
    house: ServiceHouse, mode: str, door: str
) -> None:
    new = await live(house, mode)
    before = await reach(new)
    for name, (secret, code) in (await strangers(new)).items():
        for operation, given in ((CONNECT, {"token": OTHER_TOKEN}), (MANAGED, {})):
            said = await getattr(house, door)(operation, secret, given, sure=True)
            assert (said.status in (400, 403), said.body["code"]) == (True, code), (name, operation.id, said.body)
            assert "confirm_token" not in said.body
    assert await reach(new) == before
    assert new.asked().count("getResellerInfo") <= 1  # a token that nobody may connect is not asked for


@pytest.mark.parametrize("tier", list(Tier))
async def test_an_admin_of_any_tier_replaces_a_live_connection_once_it_is_confirmed(house: ServiceHouse, tier: Tier) -> None:
    new = await live(house, "managed", tier)
    asked = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN})
    assert (asked.status, await reach(new)) == (202, ("managed", 8101, None))
    assert asked.body["message"] == snapshot(
        "This will move your organisation from the managed account 8101 to the reseller 7002. What you have at the "
        "former one (lines, packages, templates) is then out of reach here: products, shop plans and schedules that use"
        " it fail, and eSIMs whose outcome is not known yet can no longer be settled. onboarding_start_managed_account "
        "leads back while that account stays assigned to your organisation."
    )
    done = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN}, token=asked.body["confirm_token"])
    assert (done.status, await reach(new)) == (200, ("own", None, OTHER_TOKEN))
    again = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN}, token=asked.body["confirm_token"])
    assert again.status == 200  # nothing is left to be changed
    to_managed = await house.mcp(MANAGED, new.who.secret, {})
    assert to_managed.body["message"] == snapshot(
        "This will move your organisation from the reseller 7002 to the managed account 8102. What you have at the "
        "former one (lines, packages, templates) is then out of reach here: products, shop plans and schedules that use"
        " it fail, and eSIMs whose outcome is not known yet can no longer be settled. The token in use, and one that it"
        " replaced, are erased at once: the only way back is to enter the token again."
    )
    assert (await house.mcp(MANAGED, new.who.secret, {}, token=to_managed.body["confirm_token"])).status == 200
    assert await reach(new) == ("managed", 8102, None)


async def test_the_first_connection_and_what_changes_nothing_are_anybody_s_at_once(house: ServiceHouse) -> None:
    new = await newcomer(house, Tier.FREE, Role.MEMBER)
    assert new.sandbox.world is not None
    assert (await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN})).status == 200
    assert (await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN})).status == 200
    row = await house.world.store.read(find_upstream, organisation=new.who.organisation)
    assert (await new.done("managed-account"))["pending"]  # there is no account, so nothing changes
    assert await house.world.store.read(find_upstream, organisation=new.who.organisation) == row
    other = await new.another(Tier.FREE)
    member = await house.world.caller(organisation=other.who.organisation, role=Role.MEMBER)
    other.rename(8103, other.who.organisation)
    for _ in range(2):
        assert (await house.http(MANAGED, member.secret, {})).body["connection"]["account_id"] == 8103


@pytest.mark.parametrize("mode", LIVE)
async def test_what_was_confirmed_is_what_is_replaced(house: ServiceHouse, mode: str) -> None:
    new = await live(house, mode)
    to_token = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN})
    to_managed = await house.http(MANAGED, new.who.secret, {})
    assert (to_token.status, to_managed.status) == (202, 202)
    await house.world.store.write(set_connection, organisation=new.who.organisation, mode="managed", account_id=8104, own_token=None)
    await house.world.store.write(assign_account, organisation=new.who.organisation, account_id=8102)
    for operation, given, asked in ((CONNECT, {"token": OTHER_TOKEN}, to_token), (MANAGED, {}, to_managed)):
        said = await house.http(operation, new.who.secret, given, token=asked.body["confirm_token"])
        assert (said.status, said.body["code"]) == (400, "confirm_token_invalid")
    assert await reach(new) == ("managed", 8104, None)


async def test_a_confirmation_is_good_for_its_token_and_its_account_alone(house: ServiceHouse) -> None:
    new = await live(house)
    asked = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN})
    said = await house.http(CONNECT, new.who.secret, {"token": SECOND}, token=asked.body["confirm_token"])
    assert (said.status, said.body["code"]) == (400, "confirm_token_invalid")
    asked = await house.http(MANAGED, new.who.secret, {})
    await house.world.store.write(assign_account, organisation=new.who.organisation, account_id=8103)
    said = await house.http(MANAGED, new.who.secret, {}, token=asked.body["confirm_token"])
    assert (said.status, said.body["code"]) == (400, "confirm_token_invalid")
    assert await reach(new) == ("own", None, SERVICE_TOKEN)


async def test_a_role_that_is_lost_between_the_question_and_the_change_changes_nothing(house: ServiceHouse) -> None:
    new = await live(house)
    asked = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN})
    await house.world.caller(organisation=new.who.organisation)
    await house.world.join(new.who.person, new.who.organisation, Role.MEMBER)
    said = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN}, token=asked.body["confirm_token"])
    assert (said.status, said.body["code"], await reach(new)) == (403, "role_required", ("own", None, SERVICE_TOKEN))


async def test_a_token_that_replaces_a_token_is_undone_once_within_a_day(house: ServiceHouse) -> None:
    new = await live(house)
    done = await sure(new)
    assert (done.status, done.body["connection"]["former_token_until"]) == (200, "2027-01-16T12:00:00Z")
    assert (await reach(new), await former(new)) == (("own", None, OTHER_TOKEN), SERVICE_TOKEN)
    for secret, code in (await strangers(new)).values():
        assert (await house.http(RESTORE, secret, {}, sure=True)).body["code"] == code
    asked = await house.http(RESTORE, new.who.secret, {})
    assert asked.status == 202
    assert asked.body["message"] == snapshot(
        "This will move your organisation back from the reseller 7002 to the reseller 7001. What you have at the former"
        " one (lines, packages, templates) is then out of reach here: products, shop plans and schedules that use it "
        "fail, and eSIMs whose outcome is not known yet can no longer be settled. The token in use is erased at once, "
        "and this cannot be undone: the only way to it is to enter it again."
    )
    back = await house.http(RESTORE, new.who.secret, {}, token=asked.body["confirm_token"])
    assert (back.status, back.body["connection"]["former_token_until"]) == (200, None)
    assert (await reach(new), await former(new)) == (("own", None, SERVICE_TOKEN), None)
    said = await house.http(RESTORE, new.who.secret, {}, sure=True)
    assert (said.status, said.body["code"]) == (409, "no_former_token")


async def test_only_the_last_change_is_undone_and_only_for_a_day(house: ServiceHouse) -> None:
    new = await live(house)
    await sure(new)
    house.world.clock.advance(DAY - 1)
    assert await former(new) == SERVICE_TOKEN
    await sure(new, SECOND)
    assert await former(new) == OTHER_TOKEN
    house.world.clock.advance(DAY)
    said = await house.http(RESTORE, new.who.secret, {}, sure=True)
    assert (said.status, said.body["code"]) == (409, "no_former_token")
    await retention_chore(house.world.store, house.world.clock, print).run()
    assert (await new.state())["connection"]["former_token_until"] is None


@pytest.mark.cases
@pytest.mark.parametrize("how", ["managed", "disconnected", "simulation left"])
async def test_whoever_leaves_own_tokens_leaves_no_token_behind(house: ServiceHouse, how: str) -> None:
    new = await live(house)
    settle_in(house, spare_accounts=(8777,))
    await sure(new)
    assert await former(new) == SERVICE_TOKEN
    if how == "managed":
        assert (await sure(new, None)).status == 200
    elif how == "disconnected":
        await house.world.store.write(set_connection, organisation=new.who.organisation, mode=None, account_id=None, own_token=None)
    else:
        assert len(await house.world.store.write(leave_simulation)) == 1
    assert (await former(new), (await reach(new))[2]) == (None, None)
    assert (await house.http(RESTORE, new.who.secret, {})).body["code"] == "no_former_token"


async def test_a_former_token_that_is_dead_is_not_restored(house: ServiceHouse) -> None:
    new = await live(house)
    await sure(new)
    assert new.sandbox.world is not None
    tokens = new.sandbox.world.tokens
    new.sandbox.world.tokens = {name: token for name, token in tokens.items() if name != SERVICE_TOKEN}
    said = await house.http(RESTORE, new.who.secret, {}, sure=True)
    assert (said.status, said.body["code"]) == (409, "former_token_refused")
    new.sandbox.world.tokens = tokens
    new.sandbox.faults.add(NetworkFault("getResellerInfo", status=503, times=None))
    assert (await house.http(RESTORE, new.who.secret, {}, sure=True)).status == 502
    assert (await reach(new), await former(new)) == (("own", None, OTHER_TOKEN), SERVICE_TOKEN)


async def test_a_token_in_use_that_is_dead_can_be_replaced(house: ServiceHouse) -> None:
    new = await live(house)
    assert new.sandbox.world is not None
    new.sandbox.world.tokens = {name: token for name, token in new.sandbox.world.tokens.items() if name != SERVICE_TOKEN}
    asked = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN})
    assert (asked.status, asked.body["message"][:120]) == snapshot(
        (202, "This will move your organisation from the reseller of the token in use (unknown, it cannot be asked) to the reseller 700")
    )
    assert (await sure(new)).status == 200


async def test_another_token_of_the_same_reseller_is_a_change_too(house: ServiceHouse) -> None:
    new = await live(house)
    await sure(new)
    asked = await house.http(CONNECT, new.who.secret, {"token": SECOND})
    assert asked.status == 202
    assert asked.body["message"] == snapshot(
        "This will replace the token with which your organisation reaches the reseller 7002 by another one of the same "
        "reseller. The token in use is kept sealed for 24 hours, in which an admin can go back once with "
        "onboarding_restore_ocs_token; then it is erased, and must be entered again."
    )


async def test_the_audit_log_says_who_moved_the_organisation_from_where_to_where_and_no_token(house: ServiceHouse) -> None:
    new = await newcomer(house, Tier.ENTERPRISE)
    await house.world.store.write(assign_account, organisation=new.who.organisation, account_id=8102)
    await new.done("ocs-connect", token=SERVICE_TOKEN)
    await sure(new, OTHER_TOKEN)
    await house.http(RESTORE, new.who.secret, {}, sure=True)
    await sure(new, None)
    await sure(new, None)
    listed = await house.http(CATALOGUE.operations["list_audit_log"], new.who.secret, {"outcome": "ok"})
    rows = [row for row in listed.body["data"] if row["operation"].startswith("onboarding_")]
    assert {row["principal"] for row in rows} == {new.who.person}
    assert [(row["operation"], row["change"]) for row in rows] == snapshot(
        [
            ("onboarding_start_managed_account", None),
            ("onboarding_start_managed_account", "own token, reseller 7001 -> managed account 8102"),
            ("onboarding_restore_ocs_token", "own token, reseller 7002 -> own token, reseller 7001 (former token)"),
            ("onboarding_connect_ocs_token", "own token, reseller 7001 -> own token, reseller 7002"),
            ("onboarding_connect_ocs_token", "none -> own token, reseller 7001"),
        ]
    )
    assert "sandbox-7" not in str(listed.body)


async def test_a_key_replays_the_switch_without_another_question(house: ServiceHouse) -> None:
    new = await live(house)
    done = await sure(new, key="switch")
    again = await house.http(CONNECT, new.who.secret, {"token": OTHER_TOKEN}, key="switch")
    assert (again.status, again.content) == (200, done.content)


async def test_a_former_token_is_sealed_again_by_a_new_key_and_then_restored(house: ServiceHouse) -> None:
    world = house.world
    older, newer = (new_key_setting(world.ids.bytes) for _ in range(2))
    settle_in(house, keyring=Keyring(older, world.ids.bytes))
    new = await live(house)
    await sure(new)
    both = Keyring(f"{newer},{older}", world.ids.bytes)
    done = {column.name: await reseal(world.store, both, column) for column in SEALED_COLUMNS}
    assert (done["former_token.sealed"].resealed, done["organisation.own_token"].resealed) == (1, 1)
    settle_in(house, keyring=Keyring(newer, world.ids.bytes))
    assert (await house.http(RESTORE, new.who.secret, {}, sure=True)).status == 200
    assert await reach(new) == ("own", None, SERVICE_TOKEN)


world = opened_on_both(open_world, CATALOGUE, faultless=True)


async def test_of_two_changes_at_the_same_moment_one_is_made(world: World) -> None:
    """On both databases: what the slower one confirmed is not there any more."""
    network = await world.network()
    network.tokens = {**network.tokens, SECOND: NetworkToken(SECOND, 7002)}
    who = await world.caller(token=SERVICE_TOKEN)
    calls = [("ocs-connect", {"token": OTHER_TOKEN}), ("ocs-connect", {"token": SECOND})]
    answers: list[tuple[int, str]] = []
    async with world.client(who.secret) as http:
        asked = [await http.post(f"/v1/onboarding/{step}", json=body) for step, body in calls]

        async def confirm(step: str, body: dict[str, Any], token: str) -> None:
            said = await http.post(f"/v1/onboarding/{step}", json=body, headers={"X-Confirm-Token": token})
            answers.append((said.status_code, said.json().get("code", "")))

        async with anyio.create_task_group() as group:
            for (step, body), first in zip(calls, asked, strict=True):
                group.start_soon(confirm, step, body, first.json()["confirm_token"])
    assert sorted(answers)[0] == (200, "")
    assert sorted(answers)[1] in ((400, "confirm_token_invalid"), (409, "connection_changed"))
    kept = await world.store.read(find_former_token, organisation=who.organisation, now=world.clock.now())
    assert kept is not None
    assert world.pipeline.deps.keyring.open(kept.sealed, org_id=who.organisation, field=OWN_TOKEN_FIELD) == SERVICE_TOKEN
