"""What api.md says of all operator operations together."""

import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Tier
from storage.accounts import list_organisations
from tests.contract.stage import House

pytestmark = pytest.mark.anyio
SHARED = {"400", "401", "409", "429", "502"}


@pytest.mark.rule("7.12")
async def test_every_operator_operation_documents_the_answers_they_share(house: House) -> None:
    async with house.world.client() as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    for operation in CATALOGUE.operations.values():
        if operation.upstream:
            responses = paths[operation.path][operation.method.lower()]["responses"]
            assert set(responses) >= SHARED | {str(operation.status)}, (operation.id, sorted(responses))
            assert ("402" in responses) >= (not operation.read_only), operation.id  # every tier may read
            assert ("202" in responses) == operation.confirm, operation.id


@pytest.mark.rule("5.3.2")
async def test_a_call_of_an_unconnected_organisation_makes_no_other(house: House) -> None:
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


@pytest.mark.rule("9.4")
async def test_only_paths_of_buyers_and_of_health_are_without_the_prefix(house: House) -> None:
    async with house.world.client() as http:
        paths = set((await http.get("/openapi.json")).json()["paths"])
    declared = {operation.path for operation in CATALOGUE.operations.values()}
    assert paths >= declared
    bare = {path for path in declared if not path.startswith("/v1/")}
    assert bare == {path for path in declared if path.startswith("/api/")} | {"/health"}
    assert {path.split("/")[2] for path in bare - {"/health"}} == {"hosted", "orders", "templates"}
