"""Events of an organisation's keys, members, connection and fleet: each is told once, whoever does it, and shows no secret."""

import ast
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from operations.event_types.catalogue import EVENT_TYPES
from operations.people.organisation_events import end_simulated_connections
from registry.caller import Role, Tier
from storage.access_grants import AccessGrant, grants_of, insert_grant
from storage.api_keys import insert_key
from storage.fleet_line_news import GAP_SECONDS
from storage.upstream_connections import assign_account
from tests.cli.reseller import printed
from tests.contract.stage import ServiceHouse, open_service_house
from tests.databases import migrated_sqlite
from tests.events.event_rows import Data, declared_data, logged_events
from tests.fleet.stage import ReadModelStage, open_read_model_stage
from tests.identity.house import IdentityHouse, open_identity_house
from tests.pages.site import Site, open_site
from tests.setup.newcomer import OTHER_TOKEN, SERVICE_TOKEN, newcomer, settle_in
from tests.setup.signing_up import ADA, asking, begun, open_office, verify
from tests.stage import opened
from tests.world import World

house = opened(open_service_house, faultless=True)
identity = opened(open_identity_house)
site = opened(open_site)
office = opened(open_office)
stage = opened(open_read_model_stage)

KEYS, MEMBERS = "/v1/api-keys", "/v1/members"
CREATED, REVOKED, ADDED = "organisation.key_created", "organisation.key_revoked", "organisation.member_added"
CONNECTED, DISCONNECTED = "organisation.upstream_connected", "organisation.upstream_disconnected"
SYNCED = "organisation.fleet_synced"


async def made_key(http: httpx.AsyncClient, name: str = "desk", **more: Any) -> dict[str, Any]:
    answer = await http.post(KEYS, json={"name": name, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def revoked(key: dict[str, Any], made_with: str | None) -> tuple[str, Data]:
    return REVOKED, {"key": key["id"], "prefix": key["secret"][:12], "made_with": made_with}


async def test_a_key_is_told_when_it_is_made_and_when_it_ends_with_the_keys_made_with_it(office: World) -> None:
    who = await office.caller(Tier.PRO)
    async with office.client(who.secret) as http:
        first = await made_key(http, restrictions={"calls_per_day": 100})
    async with office.client(first["secret"]) as http:
        second = await made_key(http)
    async with office.client(who.secret) as http:
        for _ in range(2):
            assert (await http.delete(f"{KEYS}/{first['id']}")).status_code == 200
    told = await logged_events(office.store, who.organisation)
    made = [
        (CREATED, {"key": key["id"], "prefix": key["secret"][:12], "made_by": who.person, "made_with": by, "restricted": True})
        for key, by in ((first, who.key_id), (second, first["id"]))
    ]
    assert told == [*made, revoked(first, who.key_id), revoked(second, first["id"])]
    assert not any(secret in str(told) for secret in (first["secret"], second["secret"]))


async def test_a_repeated_call_that_makes_a_key_is_told_once(office: World) -> None:
    who = await office.caller(Tier.PRO)
    async with office.client(who.secret, **{"Idempotency-Key": "one"}) as http:
        assert (await made_key(http))["id"] == (await made_key(http))["id"]
    assert [kind for kind, _ in await logged_events(office.store, who.organisation)] == [CREATED]


async def test_keys_end_with_the_membership_of_their_maker(office: World) -> None:
    admin = await office.caller(Tier.PRO)
    gone = await office.caller(organisation=admin.organisation, role=Role.MEMBER)
    async with office.client(gone.secret) as http:
        key = await made_key(http)
    async with office.client(admin.secret) as http:
        assert [(await http.delete(f"{MEMBERS}/{gone.person}")).status_code for _ in range(2)] == [200, 404]
    told = await logged_events(office.store, admin.organisation, REVOKED)
    assert sorted(data["key"] for _, data in told) == sorted([gone.key_id, key["id"]])


async def key_of_login(identity: IdentityHouse) -> list[tuple[str, Data]]:
    """A key that the newest login has made; what is told once that has ended."""
    world, now = identity.world, identity.world.clock.now()
    grant = (await world.store.read(grants_of, person=identity.person, now=now))[0].id
    key = {"organisation": identity.organisation, "person": identity.person, "made_with": grant}
    await world.store.write(insert_key, id="key_1", digest=b"1", prefix="ak_1", name="desk", now=now, expires_at=None, **key)
    return [(REVOKED, {"key": "key_1", "prefix": "ak_1", "made_with": grant})]


async def test_keys_end_with_the_login_that_made_them_at_the_token_door(identity: IdentityHouse) -> None:
    client_id, tokens = await identity.login()
    ended = await key_of_login(identity)
    for _ in range(2):
        assert (await identity.revoke(client_id, tokens["refresh_token"])).status_code == 200
    assert await logged_events(identity.world.store, identity.organisation) == ended


async def test_keys_end_with_a_code_that_comes_a_second_time(identity: IdentityHouse) -> None:
    client_id = (await identity.program())["client_id"]
    said = await identity.consent(client_id)
    assert (await identity.exchange(client_id, said["code"])).status_code == 200
    ended = await key_of_login(identity)
    for _ in range(2):
        assert (await identity.exchange(client_id, said["code"])).status_code == 400
    assert await logged_events(identity.world.store, identity.organisation) == ended


async def test_keys_end_with_a_refresh_token_that_comes_again_later(identity: IdentityHouse) -> None:
    client_id, tokens = await identity.login()
    ended = await key_of_login(identity)
    assert (await identity.refresh(client_id, tokens["refresh_token"])).status_code == 200
    identity.world.clock.advance(60)
    for _ in range(2):
        assert (await identity.refresh(client_id, tokens["refresh_token"])).status_code == 400
    assert await logged_events(identity.world.store, identity.organisation) == ended


async def test_an_invitation_that_is_accepted_at_the_page_adds_a_member_once(site: Site) -> None:
    ada = await site.person("ada@fjord.example")
    home = await site.organisation(ada)
    async with site.browser() as hers, site.browser() as his:
        page = (await site.sign_in(hers, "ada@fjord.example", MEMBERS.replace("/v1", "/auth"))).page
        await hers.send(page.form("/auth/members", "invite"), email="bob@fjord.example", role="member")
        form = (await site.sign_in(his, "bob@fjord.example")).page.form("/auth/account", "accept")
        await his.send(form)
        assert (await his.send(form)).status == 404
    [(kind, data)] = await logged_events(site.service.store, home)
    assert (kind, data["role"]) == (ADDED, "member") and data["person"].startswith("usr_") and data["person"] != ada


async def test_access_that_is_ended_at_the_page_ends_the_keys_made_with_it(site: Site) -> None:
    ada = await site.person("ada@fjord.example")
    home, now, store = await site.organisation(ada), site.clock.now(), site.service.store
    grant = AccessGrant("gnt_1", ada, home, "https://charts.example/client", "Chart maker", "read write", "r", now, now + 1e6)
    await store.write(insert_grant, grant)
    await store.write(
        insert_key, id="key_1", digest=b"1", prefix="ak_1", organisation=home, person=ada, name="charts", made_with="gnt_1", now=now
    )
    async with site.browser() as hers:
        form = (await site.sign_in(hers, "ada@fjord.example")).page.form("/auth/account", "revoke", id="gnt_1")
        for _ in range(2):
            await hers.send(form)
    assert await logged_events(store, home) == [(REVOKED, {"key": "key_1", "prefix": "ak_1", "made_with": "gnt_1"})]


async def test_whoever_signs_up_is_a_member_of_the_new_organisation_and_their_address_is_not_told(office: World) -> None:
    async with asking(office) as http:
        token, code = await begun(office, http)
        founded = (await verify(http, token, code)).json()
        assert (await verify(http, token, code)).status_code == 400
    told = await logged_events(office.store, founded["organization_id"])
    [(kind, data)] = told
    assert (kind, data["role"]) == (ADDED, "admin") and ADA not in str(told)


async def test_a_connection_is_told_when_it_begins_and_when_another_one_takes_its_place(house: ServiceHouse) -> None:
    new = await newcomer(house)
    store, organisation = house.world.store, new.who.organisation
    await store.write(assign_account, organisation=organisation, account_id=8102)
    for _ in range(2):
        await new.done("managed-account")
    for _ in range(2):
        await new.done("ocs-connect", token=OTHER_TOKEN)
    told = await logged_events(store, organisation)
    assert told == [
        (CONNECTED, {"mode": "managed", "account_id": 8102, "replaced": False}),
        (CONNECTED, {"mode": "own", "account_id": None, "replaced": True}),
    ]
    assert OTHER_TOKEN not in str(told)


async def test_a_restored_token_is_another_connection(house: ServiceHouse) -> None:
    new = await newcomer(house, token=SERVICE_TOKEN)
    await new.done("ocs-connect", token=OTHER_TOKEN)
    await new.done("ocs-restore")
    assert (await new.agree("ocs-restore")).status_code == 409
    own = (CONNECTED, {"mode": "own", "account_id": None, "replaced": True})
    assert await logged_events(house.world.store, new.who.organisation) == [own, own]


async def test_a_simulated_connection_ends_once_when_there_is_a_real_one(house: ServiceHouse) -> None:
    new = await newcomer(house)
    world = house.world
    settle_in(house, spare_accounts=(8102,))
    await new.done("managed-account")
    for _ in range(2):
        await world.store.write(end_simulated_connections, ids=world.ids, now=world.clock.now())
    assert await logged_events(world.store, new.who.organisation) == [
        (CONNECTED, {"mode": "managed", "account_id": 8102, "replaced": False}),
        (DISCONNECTED, {"mode": "managed", "account_id": 8102}),
    ]


def rows_of(home: Path, organisation: str) -> list[tuple[str, Data]]:
    """What a command has written."""
    with closing(sqlite3.connect(home / "data" / "service.db")) as database:
        rows = database.execute("SELECT type, data FROM event_log WHERE organisation = ? ORDER BY arrival", [organisation]).fetchall()
    return [(kind, declared_data(EVENT_TYPES[kind], orjson.loads(data))) for kind, data in rows]


@pytest.mark.long
def test_the_command_line_tells_of_members_keys_and_connections(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    migrated_sqlite(tmp_path / "data")
    organisation = printed("org", "create", "Acme", "--tier", "pro", "--email", "admin@acme.test", cwd=tmp_path).strip()
    secret = printed("keys", "create", "first", cwd=tmp_path).strip()
    key = printed("keys", "list", cwd=tmp_path).split("\t")[0]
    for _ in range(2):
        printed("keys", "revoke", key, cwd=tmp_path)
        printed("org", "connect", organisation, "--account", "42", "--unchecked", cwd=tmp_path)
    for _ in range(2):
        printed("org", "disconnect", organisation, cwd=tmp_path)
    told = rows_of(tmp_path, organisation)
    assert [(kind, data.get("key") or data.get("role") or data["account_id"]) for kind, data in told] == [
        (ADDED, "admin"),
        (CREATED, key),
        (REVOKED, key),
        (CONNECTED, 42),
        (DISCONNECTED, 42),
    ]
    assert secret not in str(told) and "acme.test" not in str(told)


@pytest.mark.long
async def test_a_fleet_is_told_of_when_it_is_listed_for_the_first_time_and_after_a_gap(stage: ReadModelStage) -> None:
    lines, store, organisation = await stage.count(), stage.world.store, stage.who.organisation
    await stage.sync()
    for _ in range(3):
        stage.clock.advance(301)
        await stage.sync()
    first = (SYNCED, {"lines": lines, "complete": True, "reason": "first"})
    assert await logged_events(store, organisation, SYNCED) == [first]
    stage.clock.advance(GAP_SECONDS + 1)
    for _ in range(2):
        await stage.sync()
        stage.clock.advance(301)
    gap = (SYNCED, {"lines": lines, "complete": True, "reason": "gap"})
    assert await logged_events(store, organisation, SYNCED) == [first, gap]


@pytest.mark.long
async def test_a_fleet_of_another_connection_is_told_of_anew(stage: ReadModelStage) -> None:
    await stage.sync()
    async with stage.world.client(stage.who.secret) as http:
        asked = await http.post("/v1/onboarding/ocs-connect", json={"token": OTHER_TOKEN})
        headers = {"X-Confirm-Token": asked.json()["confirm_token"]}
        assert (await http.post("/v1/onboarding/ocs-connect", json={"token": OTHER_TOKEN}, headers=headers)).status_code == 200
    for _ in range(2):
        await stage.sync()
    told = await logged_events(stage.world.store, stage.who.organisation)
    assert [(kind, data.get("reason")) for kind, data in told] == [(SYNCED, "first"), (CONNECTED, None), (SYNCED, "first")]


LOGGED_BY = {
    "revoke_grant": "log",
    "end_key": "log",
    "end_keys_made_with": "log",
    "end_membership": "log",
    "use_authorization_code": "log",
    "use_refresh_token": "log",
    "end_reused_code": "log",
    "recover_orphans": "log",
    "StoreJournal": "log_lost",
}
"""Functions of the storage that end or lose things, and the argument that tells of it."""


def names_called(call: ast.Call) -> list[str]:
    """The function that is called, and one that is handed over to be called."""
    return [each.id for each in (call.func, *call.args[:1]) if isinstance(each, ast.Name)]


@pytest.mark.parametrize("layer", ["operations", "transports"])
def test_whoever_ends_keys_or_loses_issuances_tells_of_it(layer: str) -> None:
    root = Path(__file__).parents[2] / layer
    texts = (path.read_text() for path in root.rglob("*.py"))
    calls = chain.from_iterable(ast.walk(ast.parse(text)) for text in texts if any(name in text for name in LOGGED_BY))
    found = [(name, call) for call in calls if isinstance(call, ast.Call) for name in names_called(call) if name in LOGGED_BY]
    assert len(found) > 1
    assert [name for name, call in found if LOGGED_BY[name] not in {each.arg for each in call.keywords}] == []


def test_types_of_organisations_are_for_admins() -> None:
    assert all(each.admin for each in EVENT_TYPES.values() if each.family == "organisation")
