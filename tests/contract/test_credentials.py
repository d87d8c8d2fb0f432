"""401 without a credential, the public list excepted: asserted both ways."""

import pytest

from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth
from tests.contract.stage import OPERATIONS, SHOP_KEY, ServiceHouse, key_for
from tests.draw import drawn
from tests.network_facts import INTERNAL

# Rules 5.1: of the public routes these are operations that are declared; /openapi.json is a page.
SHOPS = {"get_hosted_storefront", "get_hosted_storefront_plan_readiness", "list_storefront_templates"}
PUBLIC = {"get_intelligence_share", "health_check", "signup_start", "signup_verify", *SHOPS}
CLOSED = [pytest.param(o, id=o.id) for o in OPERATIONS if o.id not in PUBLIC]
TOOLS = [pytest.param(o, id=o.id) for o in OPERATIONS if o.tool]


def test_exactly_the_public_list_is_declared_public() -> None:
    assert {o.id for o in OPERATIONS if o.auth is Auth.PUBLIC} == PUBLIC
    assert {o.id for o in OPERATIONS if o.auth is Auth.BRIDGE} == {"receive_bridge4ip_webhook"}
    assert {o.id for o in OPERATIONS if o.auth is Auth.SIGNATURE} == {"operator_billing_payments_webhook"}
    assert {o.id for o in OPERATIONS if o.auth is Auth.STOREFRONT} == {"list_storefront_buyer_orders", "rollback_storefront_order"}
    assert {o.id for o in OPERATIONS if o.auth is Auth.STOREFRONT_OPEN} == {
        "get_storefront_order",
        "cancel_storefront_order",
        "cancel_top_up_checkout",
        "get_storefront_order_top_up_options",
        "get_storefront_order_usage",
    }


@pytest.mark.rule("5.1.4")
@pytest.mark.rule("7.3")
@pytest.mark.parametrize("operation", drawn(CLOSED, __file__))
async def test_an_operation_answers_401_without_a_good_credential(house: ServiceHouse, operation: AnyOperation) -> None:
    given = dict(operation.examples[0].input)
    stranger = await house.world.caller(Tier.ENTERPRISE)
    bad = ["", " ", "ak_" + "0" * 46, "not-a-key", "forged.a.b", INTERNAL + "x", SHOP_KEY + "x"]
    bad += [SHOP_KEY] if operation.auth not in (Auth.STOREFRONT, Auth.STOREFRONT_OPEN) else [INTERNAL]
    bad.append(INTERNAL if operation.auth is Auth.BEARER else stranger.secret)
    missing = await house.http(operation, None, given, key=key_for(operation))
    assert missing.status == 401 and set(missing.body) == {"error", "code", "request_id", "hint"}
    async with house.world.client() as client:
        client.headers["authorization"] = "Bearer"
        assert (await client.request(operation.method, path_of(operation))).status_code == 401
        answer = await client.request(operation.method, path_of(operation) + "?access_token=" + stranger.secret)
        assert answer.status_code == 401
    for secret in bad:
        said = await house.http(operation, secret, given, key=key_for(operation))
        assert (said.status, said.body["code"]) == (401, "unauthorized"), secret


@pytest.mark.rule("5.1.5")
@pytest.mark.parametrize("operation", [pytest.param(o, id=o.id) for o in OPERATIONS if o.id in PUBLIC])
async def test_a_public_operation_answers_everybody(house: ServiceHouse, operation: AnyOperation) -> None:
    for secret in (None, "", "nonsense"):
        stage = await house.stage(operation)
        given = stage.fitted(operation, operation.examples[0].input)
        assert (await house.http(operation, secret, given)).status == operation.status


@pytest.mark.parametrize("operation", drawn(TOOLS, __file__))
async def test_a_tool_answers_401_before_json_rpc(house: ServiceHouse, operation: AnyOperation) -> None:
    for secret in (None, "", "ak_" + "0" * 46, INTERNAL):
        said = await house.mcp(operation, secret, dict(operation.examples[0].input))
        assert (said.status, said.body["code"]) == (401, "unauthorized")


@pytest.mark.rule("9.3")
async def test_the_machine_readable_description_is_public_and_names_every_operation(house: ServiceHouse) -> None:
    async with house.world.client() as client:
        answer = await client.get("/openapi.json")
    document = answer.json()
    found = {entry["operationId"]: (method.upper(), path) for path, item in document["paths"].items() for method, entry in item.items()}
    declared = {o.id: (o.method, o.path) for o in OPERATIONS}
    assert {id: found[id] for id in declared} == declared
    assert set(found) - set(declared) <= {"get_openapi", "openapi", "openapi_json"}


def path_of(operation: AnyOperation) -> str:
    path = operation.path
    for name, value in operation.examples[0].input.items():
        path = path.replace("{" + name + "}", str(value))
    return path
