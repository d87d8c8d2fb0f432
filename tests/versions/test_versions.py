"""Conditional writes over HTTP: what is shown has an ETag, and a change that names an old one changes nothing and says who came before."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from registry.clock import rfc3339_utc
from registry.errors import BadRequest
from registry.limits import Limits
from registry.operation import Auth
from registry.versions import parse_if_match
from storage.people import create_person
from storage.webhook_endpoints import insert_endpoint
from tests.invoices.billing import Billing
from tests.stage import opened_on_both
from tests.storefronts.asking import PLAN_BODY, SHOP_BODY
from tests.world import Credentials, World, open_world

world = opened_on_both(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))
NOTES = "/v1/subscribers/8988303700000100286/notes"
SHOP, ENDPOINT = "/v1/storefronts/{shop}", "/v1/connectivity/webhook_endpoints/{endpoint}"
NOT_VERSIONED = {
    "set_fleet_names": "one switch, whole in every call: nobody's change can be lost in another's",
    "operator_identity_update_session": "each status is left by name, so that of two at once one is refused already",
}
"""PUT and PATCH of our own store that take no condition, and why."""


class Versioned(NamedTuple):
    """An object: where it is read and changed, and two changes of it."""

    path: str
    method: str
    first: Mapping[str, object]
    second: Mapping[str, object]
    reader: str


OBJECTS = (
    Versioned(SHOP, "PATCH", {"name": "A"}, {"name": "B"}, "get_storefront"),
    Versioned(f"{SHOP}/plans/nordic-5gb", "PATCH", {"price_cents": 1}, {"on_sale": False}, "get_storefront_plan"),
    Versioned("/v1/invoices/{invoice}", "PATCH", {"notes": "a"}, {"recipient_name": "B"}, "get_invoice"),
    Versioned("/v1/invoices/config", "PUT", {"invoice_prefix": "A"}, {"currency": "EUR"}, "get_billing_config"),
    Versioned(ENDPOINT, "PATCH", {"description": "a"}, {"types": ["esim.*"]}, "get_webhook_endpoint"),
    Versioned("/v1/connectivity/alerts", "PUT", {"quota": False}, {"stock": False}, "get_alerts"),
    Versioned("/v1/network-default", "PUT", {"mode": "all"}, {"mode": "cheapest_available"}, "get_network_default"),
    Versioned(NOTES, "PUT", {"notes": "a"}, {"notes": ""}, "get_subscriber_notes"),
)


async def furnish(world: World, who: Credentials) -> dict[str, str]:
    """A shop with a plan, a draft and an endpoint of the organisation; their ids."""
    endpoint = {"id": world.ids.new("we_"), "organisation": who.organisation, "url": "https://hooks.example.com/a", "secret": "sealed"}
    await world.store.write(insert_endpoint, **endpoint, now=world.clock.now())
    async with world.client(who.secret) as http:
        shop = (await http.post("/v1/storefronts", json=SHOP_BODY, headers={"Idempotency-Key": "shop"})).json()["id"]
        await http.post(f"/v1/storefronts/{shop}/plans", json=PLAN_BODY)
        invoice = (await Billing(world, who, http).draft())["id"]
    return {"shop": shop, "invoice": invoice, "endpoint": endpoint["id"]}


async def colleague(world: World, who: Credentials, name: str) -> Credentials:
    """Somebody of the same organisation whose name is known."""
    person = world.ids.new("usr_")
    await world.store.write(create_person, id=person, now=world.clock.now(), name=name)
    await world.join(person, who.organisation, Role.ADMIN)
    return Credentials(who.organisation, person, *await world.key(person, who.organisation))


@pytest.mark.long
async def test_a_change_that_names_an_old_version_is_refused_and_says_who_came_before(world: World) -> None:
    who = await world.caller(Tier.PRO)
    ada, named = await colleague(world, who, "Ada Berg"), await furnish(world, who)
    async with world.client(who.secret) as mine, world.client(ada.secret) as hers:
        for each in OBJECTS:
            path = each.path.format(**named)
            shown = await mine.get(path)
            old = shown.headers["etag"]
            assert old[0] == old[-1] == '"' and (await mine.get(path)).headers["etag"] == old, path
            world.clock.advance(60)
            changed = await hers.request(each.method, path, json=each.first, headers={"If-Match": old})
            new = changed.headers["etag"]
            assert (changed.status_code, (await mine.get(path)).headers["etag"]) == (200, new) and new != old, changed.text
            world.clock.advance(60)
            before = (await mine.get(path)).content
            late = await mine.request(each.method, path, json=each.second, headers={"If-Match": old})
            said = late.json()
            assert (late.status_code, said["code"], "etag" in late.headers) == (412, "precondition_failed", False), said
            facts = [said[name] for name in ("changed_by", "changed_by_name", "changed_with", "changed_at")]
            assert facts == [ada.person, "Ada Berg", ada.key_id, rfc3339_utc(world.clock.now() - 60)], (path, said)
            assert "Ada Berg" in said["error"] and each.reader in said["hint"], said
            assert (await mine.get(path)).content == before, path
            fits = f'W/"1", {new}, "other"'
            again = await mine.request(each.method, path, json=each.second, headers={"If-Match": fits})
            assert again.status_code == 200 and again.headers["etag"] != new, again.text
            assert (await mine.request(each.method, path, json=each.first)).status_code == 200  # without a condition, as ever


def test_every_change_of_our_own_store_takes_a_condition() -> None:
    changes = [each for each in CATALOGUE.operations.values() if each.method in ("PUT", "PATCH")]
    ours = {each.id for each in changes if not each.provided and not asks_charging_system(each.raises) and each.auth is not Auth.PUBLIC}
    versioned = {each.id for each in changes if each.versioned is not None}
    assert ours - versioned == set(NOT_VERSIONED)
    for each in CATALOGUE.operations.values():
        if each.versioned is not None:
            named = {each.versioned.reader, *each.versioned.changed_by}
            assert all(CATALOGUE.operations[name] for name in named), each.id


def asks_charging_system(raised: Sequence[type[Exception]]) -> bool:
    return any(each.__name__ == "OcsConflict" for each in raised)


CONDITIONS = st.lists(st.booleans(), min_size=2, max_size=5).filter(any)
"""Changes at once: each names the version that all have read, or none."""
FEW = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.long
@given(conditions=CONDITIONS)
@FEW
async def test_of_changes_at_once_that_name_one_version_one_is_made(world: World, conditions: list[bool]) -> None:
    who = await world.caller(Tier.PRO)
    async with world.client(who.secret) as http:
        await race(http, "/v1/invoices/config", "invoice_prefix", conditions)  # nothing is stored of it yet
        slug = f"shop-{world.ids.new('')[-12:]}"
        shop = (await http.post("/v1/storefronts", json={**SHOP_BODY, "slug": slug}, headers={"Idempotency-Key": slug})).json()["id"]
        invoice = (await Billing(world, who, http).draft())["id"]
        await race(http, f"/v1/storefronts/{shop}", "name", conditions)
        await race(http, f"/v1/invoices/{invoice}", "notes", conditions)
        await race(http, NOTES, "notes", conditions)


async def race(http: httpx.AsyncClient, path: str, field: str, conditions: list[bool]) -> None:
    read = (await http.get(path)).headers["etag"]
    said: dict[int, httpx.Response] = {}

    async def change(number: int) -> None:
        headers = {"If-Match": read} if conditions[number] else {}
        method = "PUT" if path.endswith(("notes", "config")) else "PATCH"
        said[number] = await http.request(method, path, json={field: f"by-{number}"}, headers=headers)

    async with anyio.create_task_group() as group:
        for number in range(len(conditions)):
            group.start_soon(change, number)
    won = [number for number, answer in said.items() if conditions[number] and answer.status_code == 200]
    assert {answer.status_code for answer in said.values()} <= {200, 412}
    assert len(won) == 1 if all(conditions) else len(won) <= 1, [answer.text for answer in said.values()]
    assert all(answer.status_code == 200 for number, answer in said.items() if not conditions[number])
    now = await http.get(path)
    last = next(number for number in said if now.json()[field] == f"by-{number}")
    assert now.headers["etag"] == said[last].headers["etag"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_a_condition_says_is_read_as_the_rules_of_http_have_it(world: World) -> None:
    who = await world.caller(Tier.PRO)
    named = await furnish(world, who)
    path = SHOP.format(**named)
    async with world.client(who.secret) as http:
        tag = (await http.get(path)).headers["etag"]

        async def change(*lines: str) -> httpx.Response:
            return await http.patch(path, json={"name": "Same"}, headers=[(b"If-Match", line.encode("latin-1")) for line in lines])

        assert [(await change(line)).status_code for line in ("*", " * ")] == [200, 200]
        tag = (await http.get(path)).headers["etag"]
        weak = await change(f"W/{tag}")
        assert weak.status_code == 412 and "without W/" in weak.json()["hint"]
        assert [(await change(line)).status_code for line in (tag, f',, "x" ,{tag},', f'"x\xff", {tag}')] == [200, 200, 200]
        assert (await change('"x"', tag)).status_code == 200  # two lines are one list
        for wrong in (tag.strip('"'), "", ",", f"{tag} {tag}", f'"a b", {tag}', f"*, {tag}", f"w/{tag}", f"{tag}x", '"'):
            refused = await change(wrong)
            assert (refused.status_code, refused.json()["param"]) == (400, "If-Match") and "quotes" in refused.json()["hint"], wrong
        # A read is refused as well, and what has no version takes no condition.
        assert (await http.get(path, headers={"If-Match": '"old"'})).status_code == 412
        assert (await http.get("/v1/storefronts", headers={"If-Match": '"old"'})).status_code == 200
        unkept = await http.post("/v1/storefronts", json=SHOP_BODY, headers={"If-Match": tag, "Idempotency-Key": "k"})
        assert (unkept.status_code, unkept.json()["param"]) == (400, "If-Match")
        missing = await http.patch("/v1/storefronts/sf_none", json={"name": "A"}, headers={"If-Match": tag})
        assert missing.status_code == 404
        new = {**PLAN_BODY, "slug": "new"}
        for condition in (tag, "*"):
            none = await http.post(f"{path}/plans", json=new, headers={"If-Match": condition})
            assert none.status_code == 412 and "changed_at" not in none.json()
        assert [plan["slug"] for plan in (await http.get(path)).json()["plans"]] == ["nordic-5gb"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_is_shown_alone_is_what_lists_show(world: World) -> None:
    who, stranger = await world.caller(Tier.PRO), await world.caller(Tier.PRO)
    named = await furnish(world, who)
    shop, endpoint = SHOP.format(**named), ENDPOINT.format(**named)
    async with world.client(who.secret) as http, world.client(stranger.secret) as other:
        await http.patch(endpoint, json={"types": ["esim.*"], "description": "a"})
        listed = (await http.get("/v1/connectivity/webhook_endpoints")).json()["data"]
        assert [(await http.get(endpoint)).json()] == listed and "secret" not in listed[0]
        assert [(await http.get(f"{shop}/plans/nordic-5gb")).json()] == (await http.get(shop)).json()["plans"]
        for path in (endpoint, f"{endpoint}x", f"{shop}/plans/nordic-5gb", f"{shop}/plans/none"):
            asker = other if path in (endpoint, f"{shop}/plans/nordic-5gb") else http
            assert (await asker.get(path)).status_code == 404, path


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_repeated_change_gets_its_first_answer_whatever_came_since(world: World) -> None:
    who = await world.caller(Tier.PRO)
    path = SHOP.format(**await furnish(world, who))
    async with world.client(who.secret) as http:
        tag = (await http.get(path)).headers["etag"]
        headers = {"If-Match": tag, "Idempotency-Key": "one"}
        first = await http.patch(path, json={"name": "First"}, headers=headers)
        second = await http.patch(path, json={"name": "Second"}, headers={"If-Match": first.headers["etag"]})
        again = await http.patch(path, json={"name": "First"}, headers=headers)
        assert (first.status_code, second.status_code, again.status_code, again.content) == (200, 200, 200, first.content)
        assert again.headers["idempotent-replayed"] == "true" and "etag" not in again.headers
        late = {**headers, "Idempotency-Key": "two"}
        assert (await http.patch(path, json={"name": "Third"}, headers=late)).status_code == 412
        late["If-Match"] = second.headers["etag"]  # what was refused has left the key free
        assert (await http.patch(path, json={"name": "Third"}, headers=late)).status_code == 200


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_nobody_is_named_where_several_may_be_meant_or_nobody_called(world: World) -> None:
    who, stranger = await world.caller(Tier.PRO), await world.caller(Tier.PRO)
    ada, named = await colleague(world, who, "Ada Berg"), await furnish(world, who)
    path = SHOP.format(**named)
    async with world.client(who.secret) as mine, world.client(ada.secret) as hers, world.client(stranger.secret) as other:
        tag = (await mine.get(path)).headers["etag"]
        beside = (await mine.post("/v1/storefronts", json={**SHOP_BODY, "slug": "beside"}, headers={"Idempotency-Key": "b"})).json()["id"]
        foreign = (await other.post("/v1/storefronts", json={**SHOP_BODY, "slug": "far"}, headers={"Idempotency-Key": "f"})).json()["id"]
        world.clock.advance(10)
        await hers.patch(path, json={"name": "Hers"})
        await mine.patch(f"/v1/storefronts/{beside}", json={"name": "Beside"})  # in the same second
        await other.patch(f"/v1/storefronts/{foreign}", json={"name": "Far"})
        said = (await mine.patch(path, json={"name": "Mine"}, headers={"If-Match": tag})).json()
        assert said["changed_at"] == rfc3339_utc(world.clock.now()) and "changed_by" not in said
        assert (await other.patch(path, json={"name": "Far"}, headers={"If-Match": tag})).status_code == 404
        world.clock.advance(10)
        await mine.patch(f"/v1/storefronts/{beside}", json={"name": "Later"})  # another shop's last change is not this one's
        said = (await mine.patch(path, json={"name": "Mine"}, headers={"If-Match": tag})).json()
        assert said["changed_at"] == rfc3339_utc(world.clock.now() - 10) and "changed_by" not in said


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_restricted_credential_is_told_of_no_person_and_no_key_but_its_own(world: World) -> None:
    who = await world.caller(Tier.PRO)
    ada = await colleague(world, who, "Ada Berg")
    held = [await world.key(one.person, who.organisation, restrictions=Restrictions(iccids=(NOTES[16:35],))) for one in (who, ada)]
    async with world.client(held[0][1]) as mine, world.client(held[1][1]) as hers, world.client(ada.secret) as unbound:
        old = (await mine.get(NOTES)).headers["etag"]
        world.clock.advance(60)
        await unbound.put(NOTES, json={"notes": "a"})
        said = [(await http.put(NOTES, json={"notes": "b"}, headers={"If-Match": old})).json() for http in (mine, hers, unbound)]
        assert [one["changed_at"] for one in said] == [rfc3339_utc(world.clock.now())] * 3
        assert "changed_by" not in said[0] and "Ada" not in str(said[0]) and ada.person not in str(said[0])
        assert (said[1]["changed_by"], said[1]["changed_with"]) == (ada.person, None) and ada.key_id not in said[1]["error"]
        assert said[2]["changed_with"] == ada.key_id
        assert (await mine.get(NOTES, headers={"If-Match": old})).json().keys() == said[0].keys()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_invoice_that_has_changed_is_not_handed_to_the_processor(world: World) -> None:
    who = await world.caller(Tier.PRO)
    await world.connect_payments(who)
    recipient = {"recipient_name": "Fjord Ferries AS", "recipient_email": "accounts@fjord.example"}
    async with world.client(who.secret) as http:
        path = f"/v1/invoices/{(await Billing(world, who, http).draft())['id']}"
        read = (await http.get(path)).headers["etag"]
        changed = (await http.patch(path, json=recipient, headers={"If-Match": read})).headers["etag"]
        late = await http.patch(path, json={"status": "sent"}, headers={"If-Match": read})
        assert late.status_code == 412 and (await http.get(path)).json()["status"] == "draft"
        sent = await http.patch(path, json={"status": "sent"}, headers={"If-Match": changed})
        assert (sent.status_code, sent.json()["status"]) == (200, "sent")
        assert sent.headers["etag"] == (await http.get(path)).headers["etag"] != changed
        world.clock.advance(5)
        await http.delete(path)
        said = (await http.patch(path, json={"status": "sent"}, headers={"If-Match": changed})).json()
        assert said["code"] in ("precondition_failed", "invoice_not_editable")


@given(st.text(st.characters(codec="latin-1"), max_size=40))
def test_whatever_is_sent_is_a_list_of_tags_or_taught(value: str) -> None:
    try:
        found = parse_if_match(value)
    except BadRequest as refusal:
        assert refusal.hint is not None and refusal.message.isascii()
    else:
        assert found.anything or found.weak or found.tags
        assert all(tag in value and not found.holds(tag.strip('"')) for tag in found.tags)


@pytest.mark.long
async def test_json_of_the_catalogue_names_header_answer_and_refusal(world: World) -> None:
    from transports.openapi.document import build_openapi

    document: Any = build_openapi(CATALOGUE, world.pipeline.site)
    for each in OBJECTS:
        described = document["paths"][CATALOGUE.operations[each.reader].path][each.method.lower()]
        assert {"$ref": "#/components/parameters/IfMatch"} in described["parameters"]
        assert "ETag" in described["responses"]["200"]["headers"] and "412" in described["responses"]
