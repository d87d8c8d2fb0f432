"""A live payment account: who is let into its pages, and who may put another one in its place."""

from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from storage.access_grants import AccessGrant, insert_grant
from storage.connect_accounts import find_connect_account, write_connect_status
from tests.billing_connect.asking import BILLING_PATH, brought, call_connect, consented, let_go, onboarded, own_account, restricted
from tests.contract.stage import ServiceHouse
from tests.world import Credentials

PATHS = ("/v1/invoices/payments/connect/begin", f"{BILLING_PATH}/connect/begin")
LINK, OAUTH = f"{BILLING_PATH}/connect/dashboard-link", f"{BILLING_PATH}/connect/oauth"


class Organisation:
    """An organisation with an admin and everybody who may not touch what is live."""

    def __init__(self, house: ServiceHouse, admin: Credentials) -> None:
        self.house, self.admin = house, admin

    async def login(self, scopes: str) -> str:
        world, now = self.house.world, self.house.world.clock.now()
        grant = AccessGrant(
            world.ids.new("gnt_"), self.admin.person, self.admin.organisation, "client", "A program", scopes, "", now, now + 3600
        )
        await world.store.write(insert_grant, grant)
        return f"login.{grant.person_id}.{grant.id}"

    async def session(self, role: Role) -> str:
        world, subject = self.house.world, self.house.world.ids.new("sub_")
        await world.join(await world.person(subject=subject), self.admin.organisation, role)
        return f"session.{subject}.{self.admin.organisation}"

    async def strangers(self) -> dict[str, str]:
        """Credentials of people who may not, and the code of the refusal."""
        world = self.house.world
        member = await world.caller(organisation=self.admin.organisation, role=Role.MEMBER)
        _, narrow = await world.key(self.admin.person, self.admin.organisation, restrictions=Restrictions(no_admin=True))
        refused = {member.secret: "role_required", narrow: "credential_restricted"}
        return refused | {await self.login("read write"): "credential_restricted", await self.session(Role.MEMBER): "role_required"}

    async def account(self) -> str | None:
        found = await self.house.world.store.read(find_connect_account, organisation=self.admin.organisation)
        return found and found.account


async def organisation(house: ServiceHouse, tier: Tier = Tier.PRO) -> Organisation:
    return Organisation(house, await house.world.caller(tier))


async def state_of(house: ServiceHouse, secret: str) -> str:
    """The state of a consent that somebody begins."""
    status, body = await call_connect(house, secret, "POST", f"{OAUTH}/begin", {})
    assert status == 200, body
    return body["state"]


async def test_the_pages_where_the_bank_account_is_changed_are_for_admins(house: ServiceHouse) -> None:
    own = await organisation(house)
    await onboarded(house, own.admin)
    for secret, code in (await own.strangers()).items():
        assert (await call_connect(house, secret, "POST", LINK, {}))[1]["code"] == code
        if not secret.startswith("ak_"):
            said = [await call_connect(house, secret, "POST", path, {}) for path in PATHS]
            assert [(status, body["code"]) for status, body in said] == [(403, code)] * 2
    assert (await call_connect(house, own.admin.secret, "POST", LINK, {}))[0] == 200
    for secret in (await own.login("read write admin"), await own.session(Role.ADMIN)):
        assert [(await call_connect(house, secret, "POST", path, {}))[0] for path in PATHS] == [200, 200]
    tool = CATALOGUE.operations["operator_billing_connect_dashboard_link"]
    member = await house.world.caller(organisation=own.admin.organisation, role=Role.MEMBER)
    assert (await house.mcp(tool, member.secret, {})).body["code"] == "role_required"


async def test_the_first_account_is_begun_and_finished_by_any_member_on_any_tier(house: ServiceHouse) -> None:
    own = await organisation(house, Tier.FREE)
    member = await own.session(Role.MEMBER)
    begun = [(await call_connect(house, member, "POST", path, {"country": "NO"}))[0] for path in PATHS]
    assert begun == [200, 200] and await own.account() is not None
    paying = await organisation(house)
    member = await own.house.world.caller(organisation=paying.admin.organisation, role=Role.MEMBER)
    account = await own_account(house)
    given = {"code": await consented(house, account), "state": await state_of(house, member.secret)}
    assert (await call_connect(house, member.secret, "POST", f"{OAUTH}/complete", given))[0] == 200
    assert await paying.account() == account


async def test_an_account_that_was_paid_and_is_out_of_reach_is_replaced_by_an_admin_who_confirms_it(house: ServiceHouse) -> None:
    own = await organisation(house)
    first = await brought(house, own.admin)
    house.world.clock.advance(60)
    await let_go(house, first)
    for secret, code in (await own.strangers()).items():
        given: dict[str, Any] = {
            "code": await consented(house, await own_account(house)),
            "state": await state_of(house, secret),
        }
        said = [(f"{OAUTH}/complete", given), *((path, {"country": "NO"}) for path in PATHS if not secret.startswith("ak_"))]
        for path, body in said:
            answer = await call_connect(house, secret, "POST", path, body, sure=True)
            assert (answer[0], answer[1].get("code")) == (403, code), path
    assert await own.account() == first
    account = await own_account(house)
    given = {"code": await consented(house, account), "state": await state_of(house, own.admin.secret)}
    status, asked = await call_connect(house, own.admin.secret, "POST", f"{OAUTH}/complete", given)
    assert (status, first in asked["message"], await own.account()) == (202, True, first)
    assert (await call_connect(house, own.admin.secret, "POST", f"{OAUTH}/complete", given, sure=True))[0] == 200
    assert await own.account() == account


@pytest.mark.parametrize("path", PATHS)
async def test_a_new_account_takes_the_place_of_one_that_was_paid_after_a_question(house: ServiceHouse, path: str) -> None:
    own = await organisation(house)
    first = await onboarded(house, own.admin)
    house.world.clock.advance(60)
    await let_go(house, first)
    admin = await own.session(Role.ADMIN)
    status, asked = await call_connect(house, admin, "POST", path, {"country": "NO"})
    assert (status, first in asked["message"], await own.account()) == (202, True, first)
    status, begun = await call_connect(house, admin, "POST", path, {"country": "NO"}, sure=True)
    assert (status, begun["account_id"] != first) == (200, True)


async def test_an_account_that_was_live_and_is_restricted_is_led_to_its_pages_by_admins_alone(house: ServiceHouse) -> None:
    own = await organisation(house)
    first = await onboarded(house, own.admin)
    await restricted(house, own.admin, first)
    for secret, code in (await own.strangers()).items():
        if not secret.startswith("ak_"):
            said = [await call_connect(house, secret, "POST", path, {}) for path in PATHS]
            assert [(status, body["code"]) for status, body in said] == [(403, code)] * 2
    for path in PATHS:
        status, body = await call_connect(house, await own.session(Role.ADMIN), "POST", path, {})
        assert (status, body["account_id"], body["status"]) == (200, first, "pending")


@pytest.mark.parametrize("path", PATHS)
async def test_an_account_that_was_live_restricted_and_let_go_gives_way_to_a_new_one_after_a_question(
    house: ServiceHouse, path: str
) -> None:
    own = await organisation(house)
    first = await onboarded(house, own.admin)
    await restricted(house, own.admin, first)
    await let_go(house, first)
    member = await own.session(Role.MEMBER)
    assert (await call_connect(house, member, "POST", path, {"country": "NO"}, sure=True))[1]["code"] == "role_required"
    admin = await own.session(Role.ADMIN)
    status, asked = await call_connect(house, admin, "POST", path, {"country": "NO"})
    assert (status, first in asked["message"], await own.account()) == (202, True, first)
    status, begun = await call_connect(house, admin, "POST", path, {"country": "NO"}, sure=True)
    assert (status, begun["account_id"] != first, await own.account()) == (200, True, begun["account_id"])


async def test_an_account_that_was_live_and_is_restricted_is_replaced_by_no_other(house: ServiceHouse) -> None:
    own = await organisation(house)
    first = await onboarded(house, own.admin)
    await restricted(house, own.admin, first)
    account = await own_account(house)
    member = await house.world.caller(organisation=own.admin.organisation, role=Role.MEMBER)
    for secret in (member.secret, own.admin.secret):
        given = {"code": await consented(house, account), "state": await state_of(house, secret)}
        status, body = await call_connect(house, secret, "POST", f"{OAUTH}/complete", given, sure=True)
        assert (status, body["code"], await own.account()) == (409, "payments_already_connected", first)
    await let_go(house, first)
    given = {"code": await consented(house, account), "state": await state_of(house, member.secret)}
    assert (await call_connect(house, member.secret, "POST", f"{OAUTH}/complete", given, sure=True))[1]["code"] == "role_required"
    given = {"code": await consented(house, account), "state": await state_of(house, own.admin.secret)}
    assert (await call_connect(house, own.admin.secret, "POST", f"{OAUTH}/complete", given))[0] == 202
    assert (await call_connect(house, own.admin.secret, "POST", f"{OAUTH}/complete", given, sure=True))[0] == 200
    assert await own.account() == account


async def test_an_older_word_that_an_account_was_live_protects_it_too(house: ServiceHouse) -> None:
    own = await organisation(house)
    first, now = await onboarded(house, own.admin, finished=False), house.world.clock.now()
    for status, as_of in (("pending", now + 20), ("active", now + 10)):  # the processor's words may come in any order
        await house.world.store.write(write_connect_status, account=first, status=status, as_of=as_of, now=now)
    assert (await call_connect(house, await own.session(Role.MEMBER), "POST", PATHS[0], {}))[1]["code"] == "role_required"
    status, body = await call_connect(house, await own.session(Role.ADMIN), "POST", PATHS[0], {})
    assert (status, body["account_id"], body["status"]) == (200, first, "pending")


async def test_the_audit_log_tells_of_each_account(house: ServiceHouse) -> None:
    own = await organisation(house, Tier.ENTERPRISE)
    first = await onboarded(house, own.admin)
    house.world.clock.advance(60)
    await let_go(house, first)
    account = await own_account(house)
    given = {"code": await consented(house, account), "state": await state_of(house, own.admin.secret)}
    await call_connect(house, own.admin.secret, "POST", f"{OAUTH}/complete", given, sure=True)
    _, listed = await call_connect(house, own.admin.secret, "GET", "/v1/audit-log")
    changes = [row["change"] for row in listed["data"] if row["change"] is not None]
    assert changes == [f"payment account {first} -> {account}", f"payment account none -> {first}"]
