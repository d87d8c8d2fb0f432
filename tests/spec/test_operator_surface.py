"""What the rules say of all operator operations together."""

import re
from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Role, Tier
from registry.catalogue import AnyOperation
from registry.schema import output_schema
from storage.organisations import list_organisations
from tests.contract.stage import OPERATIONS, ServiceHouse, is_document, key_for
from tests.spec.ledgers import rules

SHARED = {"400", "401", "409", "429", "502"}
# What is no JSON: a picture, a stream, and what is also a page or a print.
DOCUMENTS = {"get_connectivity_intent_qr", "ai_chat", "get_invoice_document", "get_intelligence_share", "get_change_set", "stream_events"}

# Paths without a version: of buyers, of their shops, and of health.
BARE = {
    "/health",
    "/api/templates",
    "/api/hosted/{slug}",
    "/api/hosted/{slug}/plans/{planId}/readiness",
    "/api/orders",
    "/api/orders/{orderId}",
    "/api/orders/{orderId}/cancel",
    "/api/orders/{orderId}/top-up-checkouts/{sessionId}/cancel",
    "/api/orders/{orderId}/top-up-options",
    "/api/orders/{orderId}/usage",
}
# The rules that say "admin", and the routes that they say it of.
ADMIN = [
    ("4.2.2", "modify_account_balance"),
    ("4.2.21", "reset_subscriber_gz_counter"),
    ("4.2.33", "clean_all_packages"),
    ("4.2.34", "delete_subscriber_package"),
    ("4.2.42", "change_sim_status"),
    ("4.2.43", "send_sms"),
    ("4.3.7", "change_network_profile_of_location_zone"),
    ("4.3.14", "modify_template_core"),
    ("4.3.15", "modify_template_recurring"),
    ("4.3.16", "modify_template_throttling"),
    ("4.5.44", "operator_billing_approve_fraud_review"),
    ("4.5.46", "operator_billing_add_value_list_item"),
    ("4.5.62", "operator_billing_list_fees"),
]


def shapes(operation: AnyOperation) -> list[dict[str, Any]]:
    """Each object that an operation may answer with."""
    schema = output_schema(operation.result).schema
    return schema.get("anyOf", [schema])


@pytest.mark.long
@pytest.mark.rule("2.0.1")
async def test_every_answer_is_json_but_for_the_documents(house: ServiceHouse) -> None:
    async with house.world.client() as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    for operation in OPERATIONS:
        for status, response in paths[operation.path][operation.method.lower()]["responses"].items():
            if status == str(operation.status) and operation.id in DOCUMENTS:
                assert set(response["content"]) - {"application/json"}, operation.id
            elif "content" in response:
                assert set(response["content"]) == {"application/json"}, (operation.id, status)


@pytest.mark.rule("2.0.2")
def test_what_comes_from_the_charging_system_is_under_data() -> None:
    passed_on = [o for o in OPERATIONS if o.upstream and CATALOGUE.toolset_of[o.id] in ("accounts", "subscribers", "network")]
    assert len(passed_on) > 50
    for operation in passed_on:
        assert not is_document(operation)
        assert all("data" in shape["required"] for shape in shapes(operation)), operation.id


@pytest.mark.rule("2.0.3")
def test_a_list_says_that_it_is_one_and_anything_else_of_connectivity_is_the_object_itself() -> None:
    for operation in OPERATIONS:
        if CATALOGUE.toolset_of[operation.id] == "connectivity" and not is_document(operation):
            for shape in shapes(operation):
                listed = shape["properties"].get("object", {}).get("const") == "list"
                assert listed == operation.id.startswith("list_"), operation.id
                assert not listed or (shape["properties"]["data"]["type"], {"object", "data"} <= set(shape["required"])) == ("array", True)


@pytest.mark.rule("7.12")
async def test_every_operator_operation_documents_the_answers_they_share(house: ServiceHouse) -> None:
    async with house.world.client() as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    for operation in CATALOGUE.operations.values():
        if operation.upstream:
            responses = paths[operation.path][operation.method.lower()]["responses"]
            assert set(responses) >= SHARED | {str(operation.status)}, (operation.id, sorted(responses))
            assert ("402" in responses) >= (not operation.read_only), operation.id  # every tier may read
            assert ("202" in responses) == (operation.confirmable or operation.approvable), operation.id


@pytest.mark.rule("5.3.2")
async def test_a_call_of_an_unconnected_organisation_makes_no_other(house: ServiceHouse) -> None:
    world = house.world
    caller = await world.caller(Tier.ENTERPRISE)
    connected = await world.organisation(name="Fjord", mode="managed", account=8101)
    await world.join(caller.person, connected)
    before = await world.store.read(list_organisations)
    async with world.client(caller.secret) as http:
        for path in ("/v1/accounts", "/v1/subscribers", "/v1/reseller", "/v1/package-templates"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["error_code"]) == (409, "org_not_connected")
            assert [each["id"] for each in answer.json()["connected_orgs"]] == [connected]
    assert await world.store.read(list_organisations) == before
    assert world.sandbox.calls == []


@pytest.mark.rule("9.1")
@pytest.mark.rule("9.4")
async def test_only_paths_of_buyers_and_of_health_are_without_the_prefix(house: ServiceHouse) -> None:
    async with house.world.client() as http:
        document = (await http.get("/openapi.json")).json()
    paths = set(document["paths"])
    assert document["info"]["version"] == "1.0.0"
    declared = {operation.path for operation in CATALOGUE.operations.values()}
    assert paths >= declared
    assert {path for path in declared if not path.startswith("/v1/")} == BARE


@pytest.mark.rule("4.2.2", "4.2.21", "4.2.33", "4.2.34", "4.2.42", "4.2.43")
@pytest.mark.rule("4.3.7", "4.3.14", "4.3.15", "4.3.16")
@pytest.mark.rule("4.5.44", "4.5.46", "4.5.62")
async def test_what_is_marked_admin_is_for_admins_of_an_enterprise(house: ServiceHouse) -> None:
    world = house.world
    refused = [await world.caller(Tier.PRO), await world.caller(Tier.ENTERPRISE, role=Role.MEMBER)]
    admin = await world.caller(Tier.ENTERPRISE)
    for rule, id in ADMIN:
        operation = CATALOGUE.operations[id]
        given = dict(operation.examples[0].input)
        for who in refused:
            said = await house.http(operation, who.secret, given, key=key_for(operation))
            assert (said.status, said.body["code"], said.body["required_tier"]) == (402, "upgrade_required", "enterprise"), rule
        said = await house.http(operation, admin.secret, given, key=key_for(operation))
        assert said.status not in (401, 402, 403), (rule, said.body)


def test_every_rule_that_says_admin_is_asked() -> None:
    marked = {rule.id for rule in rules() if rule.section.startswith("4.") and re.search(r"\badmins?\b", rule.words)}
    assert marked == {rule for rule, _ in ADMIN}


@pytest.mark.rule("2.12.1")
@pytest.mark.rule("4.1.17")
@pytest.mark.rule("9.1")
@pytest.mark.rule("9.2")
async def test_health_tells_everybody_version_and_build(house: ServiceHouse) -> None:
    async with house.world.client() as http:
        answer = await http.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "version": "1.0.0", "build_sha": "0123abc"})
