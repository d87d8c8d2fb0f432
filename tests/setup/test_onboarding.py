"""GET /v1/onboarding and its steps org, plan and complete."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from operations.vocabulary import COUNTRY_CODES
from registry.caller import Restrictions, Role, Tier
from simulators.network.faults import NetworkFault
from tests.contract.stage import ServiceHouse
from tests.setup.newcomer import BEGINNING, newcomer, settle_in
from tests.stage import without_request_id

FJORD: dict[str, Any] = {"name": "Fjord Mobile", "website": "https://fjord.example", "country": "NO", "operator_type": "mvno"}
TEMPLATE = 55010


def steps(state: dict[str, Any]) -> dict[str, str]:
    return {step["step"]: step["status"] for step in state["steps"]}


@pytest.mark.rule("4.9.20")
async def test_whoever_is_not_connected_yet_sees_what_is_to_do(house: ServiceHouse) -> None:
    new = await newcomer(house, Tier.FREE, Role.MEMBER)
    assert {**await new.state(), "organization": {}} == BEGINNING
    assert (await new.state())["organization"] == {
        "id": new.who.organisation,
        "name": "Reseller",
        "website": None,
        "country": None,
        "operator_type": None,
    }
    assert (await new.tool("get_onboarding_state")).body == await new.state()
    assert (new.asked(), await house.charged(new.who.organisation)) == ([], 0)


@pytest.mark.rule("4.9.21")
async def test_saving_the_operator_renames_the_organisation_everywhere(house: ServiceHouse) -> None:
    new = await newcomer(house, Tier.FREE, Role.MEMBER)
    state = await new.done("org", **FJORD)
    assert (state["organization"], steps(state)["org"], state["current_step"]) == ({"id": new.who.organisation, **FJORD}, "done", "ocs")
    refused = await new.ask("plan", {"template_id": TEMPLATE})
    assert refused.json()["active_org"] == {"id": new.who.organisation, "name": "Fjord Mobile"}
    bare = {name: value for name, value in FJORD.items() if name != "website"}
    said = await new.tool("onboarding_save_org", {**bare, "name": " Fjord Mobil ", "operator_type": "iot"})
    assert said.body["organization"] == {
        **FJORD,
        "id": new.who.organisation,
        "name": "Fjord Mobil",
        "website": None,
        "operator_type": "iot",
    }
    assert new.asked() == []


@pytest.mark.cases
@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("name", "  ", 'name: got "  "; must hold more than space'),
        ("name", "a\u202eb", 'name: got "a?b"; must be one line without control characters and without marks that change'),
        ("country", "UK", 'country: got "UK"; no country has this code; the United Kingdom is GB'),
        ("country", "ZZ", 'country: got "ZZ"; no country has this code'),
        ("website", "https://ada:s3cret@fjord.example", "website: an address of a website holds no user name and no password"),
        ("website", "https://s3cret@fjord.example", "website: an address of a website holds no user name and no password"),
        ("website", "https:///path", "website: must be an address such as https://fjord.example"),
        ("website", "https://fjord.example:99999", "website: must be an address such as https://fjord.example"),
        ("website", "https://[::1", "website: must be an address such as https://fjord.example"),
        ("website", "https://fjord.example/\u200b", "website: must be an address such as https://fjord.example"),
    ],
)
async def test_details_that_cannot_be_are_refused_and_change_nothing(house: ServiceHouse, field: str, value: str, text: str) -> None:
    new = await newcomer(house)
    before = await new.state()
    said = await new.ask("org", {**FJORD, field: value})
    assert (said.status_code, said.json()["param"]) == (400, field)
    assert text in said.json()["error"] and "s3cret" not in said.text
    assert await new.state() == before
    assert await house.charged(new.who.organisation) == 0


def test_there_are_249_countries_and_kosovo() -> None:
    assert len(COUNTRY_CODES) == 250 and "XK" in COUNTRY_CODES and all(len(code) == 2 for code in COUNTRY_CODES)


@pytest.mark.rule("4.9.28")
async def test_a_plan_is_a_template_that_the_account_can_use(house: ServiceHouse) -> None:
    new = await newcomer(house, Tier.FREE, mode="managed", account=8101)
    state = await new.done("plan", template_id=TEMPLATE, display_name="Nordic starter")
    assert state["plan"] == {"template_id": TEMPLATE, "display_name": "Nordic starter"}
    assert (steps(state)["plan"], state["current_step"]) == ("done", "org")
    assert (await new.done("plan", template_id=TEMPLATE + 1))["plan"] == {"template_id": TEMPLATE + 1, "display_name": None}
    assert sandbox_world(new)[TEMPLATE].reseller_id == 7001
    foreign = next(each.id for each in sandbox_world(new).values() if each.reseller_id != 7001)
    before = await new.state()
    for unknown in (foreign, 99_999_999):
        said = await new.ask("plan", {"template_id": unknown})
        assert (said.status_code, said.json()["code"], said.json()["param"]) == (404, "not_found", "template_id")
    new.sandbox.faults.add(NetworkFault("listPrepaidPackageTemplate", code=14, times=None))
    said = await new.ask("plan", {"template_id": TEMPLATE + 2}, **{"Idempotency-Key": "again"})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 14)
    assert await new.state() == before
    new.sandbox.faults.clear()
    assert (await new.ask("plan", {"template_id": TEMPLATE + 2}, **{"Idempotency-Key": "again"})).status_code == 200  # the key was free
    assert set(new.asked()) == {"listPrepaidPackageTemplate", "getResellerInfo"}


def sandbox_world(new: Any) -> dict[int, Any]:
    return new.sandbox.world.templates


async def test_a_plan_waits_for_a_connection_and_can_be_skipped(house: ServiceHouse) -> None:
    new = await newcomer(house)
    said = await new.ask("plan", {"template_id": TEMPLATE})
    body = said.json()
    assert (said.status_code, body["code"], body["connect_url"]) == (409, "org_not_connected", "https://reseller.test/connect")
    assert body["hint"] == snapshot("Connect first: onboarding_start_managed_account; onboarding_skip_plan goes on without a plan")
    assert (await new.tool("onboarding_save_plan", {"template_id": TEMPLATE})).body["error_code"] == "org_not_connected"
    state = await new.done("plan/skip")
    assert (steps(state)["plan"], state["plan"]) == ("skipped", None)


@pytest.mark.rule("4.9.29")
async def test_skipping_forgets_a_saved_plan_and_saving_undoes_skipping(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    await new.done("plan", template_id=TEMPLATE)
    state = await new.done("plan/skip")
    assert (steps(state)["plan"], state["plan"]) == ("skipped", None)
    assert await new.done("plan/skip") == state
    state = await new.done("plan", template_id=TEMPLATE)
    assert (steps(state)["plan"], state["plan"]) == ("done", {"template_id": TEMPLATE, "display_name": None})


@pytest.mark.rule("4.9.32")
async def test_completing_names_what_is_missing(house: ServiceHouse) -> None:
    new = await newcomer(house)
    before = await new.state()
    said = await new.ask("complete")
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "Step org is missing: the operator's details are not saved",
            "code": "onboarding_incomplete",
            "hint": "Call onboarding_save_org, then complete again",
        }
    )
    await new.done("org", **FJORD)
    said = await new.ask("complete")
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "Step ocs is missing: there is no connection, and no managed account was asked for",
            "code": "onboarding_incomplete",
            "hint": "Call onboarding_start_managed_account or onboarding_connect_ocs_token, then complete again",
        }
    )
    assert (await new.tool("onboarding_complete")).body["code"] == "onboarding_incomplete"
    assert (await new.state())["completed"] is before["completed"] is False
    settle_in(house, ocs_token="")
    await new.done("managed-account")
    state = await new.done("complete")
    assert (state["completed"], state["current_step"], steps(state)) == (
        True,
        None,
        {"org": "done", "ocs": "pending", "plan": "todo", "test_esim": "todo", "complete": "done"},
    )


@pytest.mark.rule("4.9.32")
async def test_completing_again_changes_nothing(house: ServiceHouse) -> None:
    new = await newcomer(house, mode="managed", account=8101)
    await new.done("org", **FJORD)
    state = await new.done("complete")
    house.world.clock.advance(60)
    assert await new.done("complete") == state
    assert (await new.tool("onboarding_complete")).body == state
    assert new.asked() == []


async def test_the_steps_need_an_organisation_and_a_credential_that_may_write(house: ServiceHouse) -> None:
    world = house.world
    new = await newcomer(house)
    person = await world.person()
    _, alone = await world.key(person, None)
    _, reading = await world.key(new.who.person, new.who.organisation, restrictions=Restrictions(read_only=True))
    posts = [o for o in CATALOGUE.operations.values() if o.path.startswith("/v1/onboarding/")]
    assert len(posts) == 8
    for operation in posts:
        given = dict(operation.examples[0].input)
        said = await house.http(operation, alone, given)
        assert (said.status, said.body["code"]) == (409, "organization_required")
        said = await house.http(operation, reading, given)
        assert (said.status, said.body["code"]) == (403, "credential_restricted")
    async with world.client(reading) as http:
        assert (await http.get("/v1/onboarding")).json() == await new.state()
    async with world.client(alone) as http:
        assert (await http.get("/v1/onboarding")).status_code == 409
    assert new.asked() == []


async def test_an_organisation_sees_only_its_own_onboarding(house: ServiceHouse) -> None:
    new = await newcomer(house)
    other = await new.another()
    before = await other.state()
    await new.done("org", **FJORD)
    await new.done("plan/skip")
    await new.done("test-esim")
    assert await other.state() == before
