"""Who calls, and what their tier, role, organisation and connection let them do."""

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from registry.caller import Role, Tier
from registry.operation import Scope
from registry.policy import scopes_of
from registry.ports import SharedSecrets
from tests.registry import things
from tests.registry.bench import Bench, open_bench
from tests.stage import without_request_id
from tests.world import Credentials

CHALLENGE = 'Bearer realm="connectivity"'


@pytest.mark.rule("5.2.1")
def test_scopes_follow_from_tier_and_role() -> None:
    read, write, admin = Scope.READ | Scope.ANY, Scope.WRITE, Scope.ADMIN
    assert {(tier.value, role.value): scopes_of(tier, role) for tier in Tier for role in Role} == {
        ("free", "admin"): read,
        ("free", "member"): read,
        ("pro", "admin"): read | write,
        ("pro", "member"): read | write,
        ("enterprise", "admin"): read | write | admin,
        ("enterprise", "member"): read | write,
    }


@pytest.mark.rule("5.2.2")
@pytest.mark.rule("2.1.5")
async def test_a_missing_tier_is_402_with_the_lowest_tier_that_has_it(bench: Bench) -> None:
    free = await bench.world.caller(Tier.FREE)
    said = await bench.ask(things.move_thing, free, name="x")
    assert said.status == 402
    assert without_request_id(said.json) == snapshot(
        {
            "error": "This operation needs write access; the tier free of your organisation does not carry it, pro does",
            "code": "upgrade_required",
            "required_tier": "pro",
            "upgrade_url": "https://reseller.test/upgrade",
        }
    )


@pytest.mark.parametrize("tier", [Tier.FREE, Tier.PRO])
async def test_admin_operations_name_the_enterprise_tier(bench: Bench, tier: Tier) -> None:
    said = await bench.ask(things.administer, await bench.world.caller(tier), name="x")
    assert (said.status, said.json["required_tier"]) == (402, "enterprise")
    assert f"the tier {tier}" in str(said.json["error"])


async def test_a_member_of_an_enterprise_organisation_is_told_that_the_role_is_missing(bench: Bench) -> None:
    said = await bench.ask(things.administer, await bench.world.caller(Tier.ENTERPRISE, Role.MEMBER), name="x")
    assert (said.status, said.json["required_tier"]) == (402, "enterprise")
    assert said.json["error"] == snapshot(
        "This operation needs the role admin in your organisation, which you do not have; the tier is right"
    )
    assert (await bench.ask(things.administer, await bench.world.caller(Tier.ENTERPRISE), name="x")).status == 200


async def test_a_changed_tier_or_role_counts_with_the_next_call(bench: Bench) -> None:
    caller = await bench.world.caller(Tier.FREE)
    assert (await bench.ask(things.administer, caller, name="x")).status == 402
    await bench.world.move_to(Tier.ENTERPRISE, caller.organisation)
    assert (await bench.ask(things.administer, caller, name="x")).status == 200
    await bench.world.join(caller.person, caller.organisation, Role.MEMBER)
    assert (await bench.ask(things.administer, caller, name="x")).status == 402


@pytest.mark.rule("5.3.1")
@pytest.mark.rule("2.1.3")
async def test_an_unconnected_organisation_is_told_where_its_caller_is_connected(bench: Bench, pro: Credentials) -> None:
    world = bench.world
    other = await world.organisation(Tier.PRO, name="Connected", mode="own", account=9)
    await world.join(pro.person, other, Role.MEMBER)
    said = await bench.ask(things.ask_upstream, pro, name="x")
    assert said.status == 409
    assert {**said.json, "request_id": ""} == {
        "error": "The organisation Reseller has no connected account; connect it at connect_url or switch organisation",
        "code": "org_not_connected",
        "request_id": "",
        "hint": "Call onboarding_start_managed_account, or onboarding_connect_ocs_token with a token of your own; connect_url leads a "
        "person through it, and whoever runs the service connects with `reseller org connect`",
        "error_code": "org_not_connected",
        "active_org": {"id": pro.organisation, "name": "Reseller"},
        "switch_to": {"id": other, "name": "Connected"},
        "connected_orgs": [{"id": other, "name": "Connected"}],
        "connect_url": "https://reseller.test/connect",
    }


async def test_without_any_connected_organisation_the_way_on_is_to_connect_this_one(bench: Bench, pro: Credentials) -> None:
    said = await bench.ask(things.ask_upstream, pro, name="x")
    assert said.json["switch_to"] == said.json["active_org"] == {"id": pro.organisation, "name": "Reseller"}
    assert said.json["connected_orgs"] == []
    await bench.connect(pro.organisation)
    assert (await bench.ask(things.ask_upstream, pro, name="x")).status == 200


@pytest.mark.rule("5.1.6")
async def test_a_person_without_an_organisation_may_do_only_what_needs_none(bench: Bench) -> None:
    person = await bench.world.person()
    _, secret = await bench.world.key(person, None)
    said = await bench.ask(things.make_thing, secret, name="x")
    assert (said.status, said.code) == (409, "organization_required")
    assert (await bench.ask(things.act_as_person, secret, name="x")).status == 200
    stranger = "session.unknown-subject.-"
    assert (await bench.ask(things.read_thing, stranger, name="x")).code == "organization_required"
    assert (await bench.ask(things.act_as_person, stranger, key="k", name="x")).status == 200
    assert (await bench.ask(things.act_as_person, secret, key="k", name="x")).json["count"] == 3


async def test_a_session_acts_for_the_organisation_it_names_and_never_silently_for_another(bench: Bench) -> None:
    world = bench.world
    person = await world.person(subject="ada")
    first, second = await world.organisation(Tier.FREE), await world.organisation(Tier.PRO)
    await world.join(person, first)
    await world.join(person, second)
    assert (await bench.ask(things.move_thing, f"session.ada.{second}", name="x")).status == 200
    assert (await bench.ask(things.move_thing, f"session.ada.{first}", name="x")).status == 402
    assert (await bench.ask(things.move_thing, "session.ada.-", name="x")).status == 402
    await world.leave(person, second)
    assert (await bench.ask(things.read_thing, f"session.ada.{second}", name="x")).code == "organization_required"


@pytest.mark.rule("5.1.1")
async def test_session_operations_refuse_api_keys(bench: Bench, pro: Credentials) -> None:
    refused = await bench.ask(things.begin_session_only, pro, name="x")
    assert refused.status == 401 and "session" in str(refused.json["error"])
    person = await bench.world.person(subject="ada")
    await bench.world.join(person, pro.organisation)
    assert (await bench.ask(things.begin_session_only, f"session.ada.{pro.organisation}", name="x")).status == 200


@pytest.mark.rule("7.3")
async def test_a_401_says_invalid_token_only_when_a_credential_came(bench: Bench, pro: Credentials) -> None:
    nothing = await bench.ask(things.make_thing, name="x")
    assert (nothing.status, nothing.headers["WWW-Authenticate"]) == (401, CHALLENGE)
    typo = pro.secret[:-1] + ("0" if pro.secret[-1] != "0" else "1")
    for credential in ("", " ", "ak_", "ak_" + "0" * 46, typo, "nonsense", "forged.ada.-", pro.secret + " "):
        said = await bench.ask(things.make_thing, credential, name="x")
        assert (said.status, said.headers["WWW-Authenticate"]) == (401, CHALLENGE + ', error="invalid_token"'), credential
        assert credential.strip() == "" or credential.strip() not in said.body.decode()


@pytest.mark.rule("5.1.2")
async def test_internal_operations_take_the_internal_secret_only(bench: Bench, pro: Credentials) -> None:
    for credential in (None, "", " ", "storefront-secret", pro.secret, "internal-secret "):
        assert (await bench.ask(things.report_internally, credential, name="x")).status == 401
    assert (await bench.ask(things.report_internally, "internal-secret", name="x")).status == 200
    assert (await bench.ask(things.make_thing, "internal-secret", name="x")).status == 401


@pytest.mark.rule("5.1.3")
@pytest.mark.parametrize("secret", ["", "   "])
async def test_unset_secrets_match_nothing_and_leave_only_the_open_shop_route_open(tmp_path: Path, secret: str) -> None:
    async with open_bench(tmp_path, secrets=SharedSecrets(internal=secret, storefront=secret)) as bench:
        for credential in (None, "", " ", secret):
            assert (await bench.ask(things.report_internally, credential, name="x")).status == 401
            assert (await bench.ask(things.list_shop_orders, credential)).status == 401
            assert (await bench.ask(things.read_shop_order, credential, name="x")).json["name"] == "public x"


@pytest.mark.rule("5.1.3")
async def test_a_set_storefront_secret_is_needed_on_both_shop_routes(bench: Bench, pro: Credentials) -> None:
    for credential in (None, "", "internal-secret", pro.secret):
        assert (await bench.ask(things.list_shop_orders, credential)).status == 401
        assert (await bench.ask(things.read_shop_order, credential, name="x")).status == 401
    assert (await bench.ask(things.list_shop_orders, "storefront-secret")).json["name"] == "storefront"
    assert (await bench.ask(things.read_shop_order, "storefront-secret", name="x")).json["name"] == "storefront x"


async def test_public_operations_look_at_no_credential(bench: Bench) -> None:
    for credential in (None, "", "nonsense"):
        assert (await bench.ask(things.read_publicly, credential)).json["name"] == "public"
