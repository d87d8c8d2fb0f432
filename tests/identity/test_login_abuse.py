"""What somebody tries who wants a login that is not theirs, or more of one than they were given."""

import asyncio
import hmac
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import sqlalchemy as sa

from operations.people.consents import consent_question, deny_consent, grant_consent
from operations.people.signing_keys import sign_token, signing_keys_at, signing_private_key
from operations.secret_tokens import secret_digest
from registry.caller import Tier
from registry.errors import BadRequest, NotFound
from storage.engine.sql import Command, Connection
from storage.oauth_clients import OauthClientTable
from storage.sealing import SERVICE_OWNER, signing_key_field
from tests.clients.identity.provider import b64, signed_token
from tests.databases import NO_POSTGRES, migrated_postgres
from tests.identity.house import CALLBACK, STATE, VERIFIER, IdentityHouse, challenge_of, open_identity_house, redirect_parameters
from tests.world import BASE, NOON, SITE
from transports.oauth import registration
from transports.oauth.programs import GRANT_TYPES

CLIENT = OauthClientTable.table
REWRITE = Command(sa.update(CLIENT).where(CLIENT.c.id == sa.bindparam("named")).values(metadata_json=sa.bindparam("kept")))
OWN_COMPUTER = "http://127.0.0.1:49152/callback"
NONE = b'{"alg":"none","typ":"at+jwt"}'
ISSUER = f"{SITE.base_url}/auth"


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


async def claims_of(house: IdentityHouse, **changes: Any) -> dict[str, Any]:
    """The claims of a real login, with changes; None takes one away."""
    _, tokens = await house.login()
    real = jwt.decode(tokens["access_token"], options={"verify_signature": False})
    return {name: value for name, value in {**real, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    "aud",
    [
        None,
        SITE.mcp_url + "/",
        SITE.mcp_url + "/x",
        SITE.base_url,
        SITE.base_url + "/",
        "https://other.test/mcp",
        SITE.mcp_url.upper(),
        [],
        7,
    ],
    ids=str,
)
async def test_the_mcp_door_takes_no_token_of_another_resource(house: IdentityHouse, aud: object) -> None:
    token = await sign_token(house.deps, await claims_of(house, aud=aud), NOON)
    assert (await house.mcp(token)).status_code == 401


@pytest.mark.parametrize(
    "aud", [None, SITE.base_url + "/", SITE.base_url + "/v1", SITE.mcp_url, "https://reseller.test.evil.test"], ids=str
)
async def test_the_http_door_takes_no_token_of_another_resource(house: IdentityHouse, aud: object) -> None:
    token = await sign_token(house.deps, await claims_of(house, aud=aud), NOON)
    assert (await house.http(token)).status_code == 401


@pytest.mark.parametrize(
    "changes", [{"sid": None}, {"sid": ""}, {"sid": 7}, {"sid": "gnt_forged"}, {"sid": "' or 1=1 --"}, {"iss": ISSUER + "/"}], ids=str
)
async def test_a_token_of_our_own_key_without_a_real_login_is_refused(house: IdentityHouse, changes: dict[str, object]) -> None:
    token = await sign_token(house.deps, await claims_of(house, **changes), NOON)
    assert (await house.mcp(token)).status_code == 401


async def test_what_a_token_says_it_may_do_counts_for_nothing_beside_its_login(house: IdentityHouse) -> None:
    other = await house.world.caller(Tier.ENTERPRISE)
    forged = await claims_of(house, aud=SITE.base_url, org_id=other.organisation, scope="admin")
    said = (await house.http(await sign_token(house.deps, forged, NOON))).json()
    assert (said["principal"], said["organisation"]) == (house.person, house.organisation)


async def test_a_token_for_somebody_whom_its_login_is_not_of_is_refused(house: IdentityHouse) -> None:
    other = await house.world.caller(Tier.ENTERPRISE)
    for aud, door in ((SITE.base_url, house.http), (SITE.mcp_url, house.mcp)):
        good, forged = [
            await sign_token(house.deps, await claims_of(house, aud=aud, sub=sub), NOON) for sub in (house.person, other.person)
        ]
        assert [(await door(token)).status_code for token in (good, forged)] == [200, 401]


def by_password(claims: dict[str, Any], kid: str, public: bytes) -> str:
    """Signed with HS256, the password being what everybody knows."""
    content = f"{b64(json.dumps({'alg': 'HS256', 'typ': 'at+jwt', 'kid': kid}).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{content}.{b64(hmac.digest(public, content.encode(), 'sha256'))}"


async def test_unsigned_and_strangely_signed_tokens_are_refused(house: IdentityHouse) -> None:
    claims = await claims_of(house)
    [key] = await signing_keys_at(house.deps, NOON)
    ours = signing_private_key(int(house.deps.keyring.open(key.private, org_id=SERVICE_OWNER, field=signing_key_field(key.kid)), 16))
    assert (await house.mcp(signed_token(claims, kid=key.kid, alg="ES256", key=ours, typ="at+jwt"))).status_code == 200
    public = key.public.encode()
    for token in (
        f"{b64(NONE)}.{b64(json.dumps(claims).encode())}.",
        jwt.encode(claims, "", algorithm="none", headers={"kid": key.kid, "typ": "at+jwt"}),
        signed_token(claims, kid=key.kid, alg="ES256", key=ours, typ="at+jwt").rpartition(".")[0] + "." + b64(b"\0" * 64),
        by_password(claims, key.kid, public),
        signed_token(claims, kid=key.kid, alg="ES256", key=signing_private_key(12345), typ="at+jwt"),
        signed_token(claims, kid="sig_unknown", alg="ES256", key=ours, typ="at+jwt"),
        signed_token(claims, kid=key.kid, alg="ES256", key=ours, typ="JWT"),
        signed_token(claims, kid=key.kid, alg="ES256", key=ours, typ="at+jwt", crit=["x"]),
        signed_token(claims, kid=key.kid, alg="RS256", typ="at+jwt"),
    ):
        assert (await house.mcp(token)).status_code == 401


async def test_a_removed_member_and_a_smaller_tier_take_effect_with_the_next_request(house: IdentityHouse) -> None:
    _, tokens = await house.login(resource=SITE.base_url)
    token = tokens["access_token"]
    assert (await house.http(token, "/v1/mine")).json()["organisation"] == house.organisation
    await house.world.leave(house.person, house.organisation)
    assert (await house.http(token, "/v1/mine")).status_code == 409
    client_id, tokens = await house.login_of_new_member()
    assert "put_note" in await house.tools(tokens["access_token"])
    await house.world.move_to(Tier.FREE, house.organisation)
    assert "put_note" not in await house.tools(tokens["access_token"])
    await house.revoke(client_id, tokens["refresh_token"])
    assert (await house.mcp(tokens["access_token"])).status_code == 401


async def test_a_refresh_token_that_two_have_ends_the_login(house: IdentityHouse) -> None:
    client_id, tokens = await house.login()
    second = (await house.refresh(client_id, tokens["refresh_token"])).json()
    house.world.clock.advance(11)
    assert told(await house.refresh(client_id, tokens["refresh_token"])) == (400, "invalid_grant")
    assert (await house.mcp(second["access_token"])).status_code == 401
    assert told(await house.refresh(client_id, second["refresh_token"])) == (400, "invalid_grant")


async def test_two_threads_that_renew_at_once_get_one_successor_and_keep_the_login(house: IdentityHouse) -> None:
    client_id, tokens = await house.login()
    second = (await house.refresh(client_id, tokens["refresh_token"])).json()
    house.world.clock.advance(9)
    assert told(await house.refresh(client_id, tokens["refresh_token"])) == (400, "invalid_grant")
    assert (await house.mcp(second["access_token"])).status_code == 200
    assert (await house.refresh(client_id, second["refresh_token"])).status_code == 200


async def test_a_code_that_two_have_ends_the_login(house: IdentityHouse) -> None:
    client_id = (await house.program())["client_id"]
    for wait in (0, 70):
        code = (await house.consent(client_id))["code"]
        tokens = (await house.exchange(client_id, code)).json()
        house.world.clock.advance(wait)
        assert told(await house.exchange(client_id, code, code_verifier="w" * 64)) == (400, "invalid_grant")
        assert (await house.mcp(tokens["access_token"])).status_code == 401
        assert told(await house.refresh(client_id, tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "w" * 64},
        {"redirect_uri": CALLBACK + "/"},
        {"redirect_uri": CALLBACK.replace("c", "%63")},
        {"redirect_uri": CALLBACK.upper()},
        {"redirect_uri": None},
        {"code": "ac_" + "x" * 43},
    ],
    ids=str,
)
async def test_a_code_is_of_no_use_without_what_it_is_bound_to(house: IdentityHouse, changes: dict[str, str | None]) -> None:
    client_id = (await house.program())["client_id"]
    code = (await house.consent(client_id))["code"]
    assert told(await house.exchange(client_id, **{"code": code, **changes})) == (400, "invalid_grant")  # pyright: ignore[reportArgumentType]
    assert (await house.exchange(client_id, code)).status_code == 200


async def test_another_programs_code_and_refresh_token_are_unknown_and_stay_its_own(house: IdentityHouse) -> None:
    thief, client_id = (await house.program())["client_id"], (await house.program())["client_id"]
    code = (await house.consent(client_id))["code"]
    assert told(await house.exchange(thief, code)) == (400, "invalid_grant")
    tokens = (await house.exchange(client_id, code)).json()
    assert told(await house.refresh(thief, tokens["refresh_token"])) == (400, "invalid_grant")
    assert (await house.refresh(client_id, tokens["refresh_token"])).status_code == 200


async def test_a_token_request_for_another_resource_is_refused_and_uses_nothing_up(house: IdentityHouse) -> None:
    client_id = (await house.program())["client_id"]
    code = (await house.consent(client_id))["code"]
    for resource in (SITE.base_url, SITE.mcp_url + "/", "https://other.test"):
        assert told(await house.exchange(client_id, code, resource=resource)) == (400, "invalid_target")
    tokens = (await house.exchange(client_id, code, resource=SITE.mcp_url)).json()
    assert told(await house.refresh(client_id, tokens["refresh_token"], resource=SITE.base_url)) == (400, "invalid_target")
    assert told(await house.refresh(client_id, tokens["refresh_token"], scope="read write admin more")) == (400, "invalid_scope")
    assert told(await house.refresh(client_id, tokens["refresh_token"], scope="read")) == (400, "invalid_scope")
    assert (await house.refresh(client_id, tokens["refresh_token"], resource=SITE.mcp_url)).status_code == 200


@pytest.mark.cases
@pytest.mark.parametrize(
    "presented",
    [
        "https://program.test.evil.test/callback",
        "https://evil.test/callback",
        "https://program.test@evil.test/callback",
        "https://user@program.test/callback",
        "https://program.test/callback#x",
        "https://program.test/callback?next=https://evil.test",
        "https://program.test/callback/../evil",
        "https://program.test/%63allback",
        "https://program.test/callback%2f..%2fevil",
        "https://program.test/callback/",
        "https://program.test:443/callback",
        "https://PROGRAM.test/callback",
        "http://program.test/callback",
        "https:program.test/callback",
        "https:\\\\program.test\\callback",
        "//program.test/callback",
        "https://program.test/callback\t",
        "javascript:alert(1)",
        "https://program.test",
    ],
)
async def test_the_answer_goes_nowhere_but_to_the_very_address_that_was_registered(house: IdentityHouse, presented: str) -> None:
    client_id = (await house.program())["client_id"]
    for changes in ({}, {"response_type": "token"}, {"scope": "everything"}):
        refused = await house.ask(client_id, redirect_uri=presented, **changes)
        assert told(refused) == (400, "invalid_request")
        assert "location" not in refused.headers


@pytest.mark.cases
@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)//",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "blob:https://program.test/1",
        "about:blank",
        "vbscript:x",
        "ws://program.test/",
        "wss://program.test/",
        "ms-settings:x",
        "cursor://anysphere.cursor-retrieval/oauth/callback",
        "myapp:/cb",
        "my-app+x:/cb",
        "com.:/cb",
        "com..example:/cb",
        "vnd.ms.radio:x",
        "http://program.test/callback",
        "http://127.0.0.1.evil.test/cb",
        "http://127.0.0.1@evil.test/cb",
        "http://localhost.evil.test/",
        "http:127.0.0.1",
        "https://u:p@program.test/",
        "https:///callback",
        "https://program.test/a/../b",
        "https://program.test/a/%2e%2e/b",
        "https://program.test/cb#f",
        "https://program.test/c b",
        "https://program.test\\@evil.test/",
        "https://program.test/\u202e",
        "https://program.test:99999/",
        "/callback",
        "program.test/callback",
        "",
        "https://program.test/" + "x" * 2048,
    ],
)
async def test_an_address_that_runs_or_hides_something_cannot_be_registered(house: IdentityHouse, uri: str) -> None:
    refused = await house.register(redirect_uris=[CALLBACK, uri])
    assert refused.status_code == 400 and refused.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")
    assert not uri or uri not in refused.json()["error_description"]


@pytest.mark.parametrize("uri", ["com.example.app://callback/of?mine=1", "com.example.app:/cb", "https://a.test:8443/x?y=%20z"])
async def test_programs_have_schemes_of_their_own(house: IdentityHouse, uri: str) -> None:
    client_id = (await house.program(redirect_uris=[uri]))["client_id"]
    where = await house.allow(await house.request_token(client_id, redirect_uri=uri))
    assert where.startswith(uri + ("&" if "?" in uri else "?") + "code=")


BROKEN_RULES = pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": VERIFIER}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "read everything"}, "invalid_scope"),
        ({"scope": "READ"}, "invalid_scope"),
        ({"resource": "https://other.test/mcp"}, "invalid_target"),
        ({"resource": SITE.mcp_url + "/"}, "invalid_target"),
        ({"resource": SITE.base_url + "/v1"}, "invalid_target"),
    ],
    ids=str,
)


@pytest.mark.cases
@BROKEN_RULES
@pytest.mark.parametrize("uri", [CALLBACK, "https://localhost:8443/cb"])
async def test_an_error_of_a_program_that_anybody_may_register_leads_nowhere(
    house: IdentityHouse, changes: dict[str, str | None], error: str, uri: str
) -> None:
    client_id = (await house.program(redirect_uris=[uri]))["client_id"]
    refused = await house.ask(client_id, redirect_uri=uri, **changes)
    assert told(refused) == (400, error)
    assert "location" not in refused.headers and uri not in refused.text


@pytest.mark.cases
@BROKEN_RULES
async def test_a_program_on_the_persons_computer_is_told_what_it_did_wrong_with_state_and_issuer(
    house: IdentityHouse, changes: dict[str, str | None], error: str
) -> None:
    client_id = (await house.program(redirect_uris=[OWN_COMPUTER]))["client_id"]
    refused = await house.ask(client_id, redirect_uri=OWN_COMPUTER, **changes)
    assert refused.status_code == 302 and refused.headers["location"].startswith(OWN_COMPUTER + "?")
    said = redirect_parameters(refused.headers["location"])
    assert (said.pop("error"), said.pop("state"), said.pop("iss")) == (error, STATE, ISSUER)
    assert set(said) == {"error_description"} and said["error_description"].isprintable()


async def test_a_parameter_that_is_sent_twice_is_two_requests_in_one(house: IdentityHouse) -> None:
    client_id = (await house.program())["client_id"]
    query = f"response_type=code&client_id={client_id}&code_challenge={challenge_of(VERIFIER)}&code_challenge_method=S256&state=a&state=b"
    async with house.world.client() as http:
        assert told(await http.get(f"/auth/authorize?{query}")) == (400, "invalid_request")
        form = {"content-type": "application/x-www-form-urlencoded"}
        for path in ("/auth/token", "/auth/revoke"):
            for body in (b"grant_type=refresh_token&token=a&token=b", b"token=%ff", b"token=%00", b"a=1&" * 50, b"token=" + b"x" * 20_000):
                refused = await http.post(path, content=body, headers=form)
                assert refused.status_code in (400, 413) and refused.json()["error"] == "invalid_request"
            assert told(await http.post(path, json={"token": "a"})) == (400, "invalid_request")
        assert told(await house.post("/auth/token", {"grant_type": "password"})) == (400, "unsupported_grant_type")
        assert told(await house.post("/auth/token", {"grant_type": "refresh_token"})) == (400, "invalid_request")


async def test_a_request_is_answered_once_in_time_for_an_organisation_of_ones_own(house: IdentityHouse) -> None:
    client_id, now = (await house.program())["client_id"], house.world.clock.now()
    token = await house.request_token(client_id, scope="read")
    foreign = await house.world.organisation()
    for organisation, scopes, refusal in (
        (foreign, ("read",), NotFound),
        (house.organisation, ("read", "admin"), BadRequest),
        (house.organisation, (), BadRequest),
    ):
        with pytest.raises(refusal):
            await grant_consent(house.deps, token=token, person=house.person, organisation=organisation, scopes=scopes, now=now)
    assert redirect_parameters(await house.allow(token, ("read",)))["code"]
    for again in (token, "ar_" + "x" * 43):
        with pytest.raises(NotFound):
            await house.allow(again, ("read",))
        assert await consent_question(house.deps, token=again, now=now) is None
        assert await deny_consent(house.deps, token=again, now=now) is None
    late = await house.request_token(client_id)
    house.world.clock.advance(1800)
    with pytest.raises(NotFound):
        await house.allow(late)


async def test_an_address_that_was_registered_under_older_rules_gets_no_answer(house: IdentityHouse) -> None:
    client_id = (await house.program(redirect_uris=[CALLBACK, "com.example.app:/cb"]))["client_id"]
    await house.world.store.write(write_redirects, client=client_id, metadata="cursor://anysphere.cursor-mcp/callback")
    for uri in ("cursor://anysphere.cursor-mcp/callback", None):
        refused = await house.ask(client_id, redirect_uri=uri)
        assert told(refused) == (400, "invalid_request") and "location" not in refused.headers
    assert (await house.ask(client_id, redirect_uri=CALLBACK)).status_code == 400


def write_redirects(connection: Connection, *, client: str, metadata: str) -> None:
    """A registration of before: its one address."""
    kept = {
        "name": "Old",
        "uri": None,
        "redirect_uris": [metadata],
        "grant_types": GRANT_TYPES,
        "authentication": "none",
        "scopes": ["read"],
    }
    connection.run(REWRITE, named=client, kept=json.dumps(kept))


async def test_one_host_does_not_use_up_the_registrations_of_its_network(house: IdentityHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "MOST_UNUSED_PROGRAMS", 6)
    neighbour = await registered(house, "2001:db8::1")
    flood = [await registered(house, "2001:db8::bad") for _ in range(20)]
    later = await registered(house, "2001:db8::2")
    assert [(await house.ask(each)).status_code for each in (neighbour, later, *flood[-4:])] == [302] * 6
    assert {told(await house.ask(each)) for each in flood[:-4]} == {(400, "invalid_client")}
    assert (await house.ask(await registered(house, "2001:db8:0:1::1"))).status_code == 302, "another network"
    assert [(await house.ask(each)).status_code for each in (neighbour, later)] == [302] * 2


async def test_of_one_address_those_give_way_first_that_no_person_is_asked_about(
    house: IdentityHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many people may be behind one address: who is at the consent page when somebody floods it gets through."""
    monkeypatch.setattr(registration, "MOST_UNUSED_PROGRAMS", 5)
    asking, used = await registered(house, "192.0.2.1"), await registered(house, "192.0.2.1")
    tokens = [await house.request_token(each) for each in (asking, used)]
    await house.allow(tokens[1])
    flood = [await registered(house, "192.0.2.1") for _ in range(30)]
    assert redirect_parameters(await house.allow(tokens[0]))["code"].startswith("ac_")
    assert [(await house.ask(each)).status_code for each in (asking, used, *flood[-4:])] == [302] * 6


async def registered(house: IdentityHouse, address: str) -> str:
    """A program that registers from a network address; the clock moves on, since public requests are counted, too."""
    house.world.clock.advance(2)
    body = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
    transport = httpx.ASGITransport(app=house.world.door, client=(address, 50_000))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as http:
        answer = await http.post("/auth/register", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["client_id"]


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": [f"https://program.test/{n}" for n in range(11)]},
        {"redirect_uris": "https://program.test/"},
        {"client_name": "x" * 17_000},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"grant_types": ["client_credentials"]},
        {"scope": "read root"},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_registration_that_breaks_a_rule_keeps_nothing(house: IdentityHouse, changes: Mapping[str, Any]) -> None:
    refused = await house.register(**changes)
    assert refused.status_code in (400, 413)
    assert refused.json()["error"] in ("invalid_client_metadata", "invalid_redirect_uri", "invalid_request")


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_of_32_who_come_at_once_one_gets_tokens(tmp_path: Path, engine: str) -> None:
    with migrated_postgres() as url:
        if engine == "postgresql" and url is None:
            pytest.skip(NO_POSTGRES)
        async with open_identity_house(tmp_path, url=url if engine == "postgresql" else None) as house:
            client_id, tokens = await house.login()
            renewed = await asyncio.gather(*(house.refresh(client_id, tokens["refresh_token"]) for _ in range(16)))
            assert sorted(answer.status_code for answer in renewed) == [200] + [400] * 15
            [good] = [answer.json() for answer in renewed if answer.status_code == 200]
            assert (await house.mcp(good["access_token"])).status_code == 200
            house.world.clock.advance(60)  # the count of public requests
            code = (await house.consent(client_id))["code"]
            fetched = await asyncio.gather(*(house.exchange(client_id, code) for _ in range(32)))
            assert sorted(answer.status_code for answer in fetched) == [200] + [400] * 31
            token = await house.request_token(client_id)
            allowed = await asyncio.gather(*(house.allow(token) for _ in range(32)), return_exceptions=True)
            assert sum(isinstance(where, str) for where in allowed) == 1


async def test_no_secret_of_a_login_lies_in_the_database_or_a_log_line(house: IdentityHouse, tmp_path: Path) -> None:
    program = await house.program(token_endpoint_auth_method="client_secret_post")
    token = await house.request_token(program["client_id"])
    code = redirect_parameters(await house.allow(token))["code"]
    tokens = (await house.exchange(program["client_id"], code, client_secret=program["client_secret"])).json()
    await house.refresh(program["client_id"], tokens["refresh_token"], client_secret=program["client_secret"])
    waiting = await house.request_token(program["client_id"])
    await house.ask(program["client_id"], scope="nope")
    secrets = [*house.seen, waiting, program["client_secret"], STATE, VERIFIER]
    assert len(secrets) > 8
    with closing(sqlite3.connect(tmp_path / "service.db")) as database:
        dump = "\n".join(database.iterdump()).lower()
    logged = "\n".join(map(str, house.world.lines)).lower()
    for secret in secrets:
        for text in (dump, logged):
            assert secret.lower() not in text
            assert secret.encode().hex() not in text
    assert secret_digest(tokens["refresh_token"]).hex() in dump
