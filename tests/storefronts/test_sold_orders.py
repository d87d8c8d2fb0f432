"""get_sold_order at both doors, and for keys that were narrowed."""

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from tests.contract.orders import numbered
from tests.contract.stage import ServiceHouse

SOLD = CATALOGUE.operations["get_sold_order"]


async def test_an_agent_sees_the_order_of_its_shop_as_http_shows_it(house: ServiceHouse) -> None:
    who = await house.world.caller(Tier.PRO, mode="managed", account=8101)
    given = await numbered(house.world, who)
    member = await house.world.caller(organisation=who.organisation, role=Role.MEMBER)
    async with house.world.client(member.secret) as http:
        said = await http.get(f"/v1/storefronts/orders/{given['number']}")
    tool = await house.mcp(SOLD, member.secret, given)
    assert (said.status_code, tool.body) == (200, said.json())
    assert (tool.body["status"], tool.body["object"]) == ("ready", "storefront.sold_order")
    assert "K2" not in said.text and "ada@example.com" not in said.text


async def test_a_key_of_some_lines_sees_no_order_and_a_key_of_the_toolset_does(house: ServiceHouse) -> None:
    who = await house.world.caller(Tier.PRO, mode="managed", account=8101)
    given = await numbered(house.world, who)
    narrow = (Restrictions(iccids=("8988303000000912345",)), Restrictions(account_ids=(8101,)), Restrictions(tags=("trucks",)))
    for restrictions in (*narrow, Restrictions(toolsets=("fleet",))):
        _, secret = await house.world.key(who.person, who.organisation, restrictions=restrictions)
        tool = await house.mcp(SOLD, secret, given)
        assert tool.body["code"] == "credential_restricted", restrictions
    _, secret = await house.world.key(who.person, who.organisation, restrictions=Restrictions(toolsets=("storefronts",), read_only=True))
    assert (await house.mcp(SOLD, secret, given)).body["id"] == given["number"]


async def test_what_is_no_number_of_an_order_is_refused_by_name(house: ServiceHouse) -> None:
    who = await house.world.caller(Tier.FREE)
    async with house.world.client(who.secret) as http:
        for number, status in (("o" * 65, 400), ("ord_7m2q9k4xb1zdp0rt5v8w3y6h2n", 404), ("tuc_x", 404), ("plans", 404)):
            said = await http.get(f"/v1/storefronts/orders/{number}")
            assert (said.status_code, said.json()["param"]) == (status, "number")
