"""A login from the first request to the last token, as a program sees it."""

import base64
import json

import jwt
import pytest
from mcp.shared.auth import OAuthMetadata

from operations.people.consents import deny_consent
from operations.people.session_tokens import new_console_token
from storage.access_grants import grants_of
from tests.identity.house import CALLBACK, STATE, IdentityHouse, redirect_parameters
from tests.world import NOON, SITE

ISSUER = f"{SITE.base_url}/auth"


async def test_the_metadata_says_all_that_a_program_needs(house: IdentityHouse) -> None:
    answer = await house.get("/.well-known/oauth-authorization-server/auth")
    assert answer.json() == {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "revocation_endpoint": f"{ISSUER}/revoke",
        "jwks_uri": f"{ISSUER}/jwks",
        "scopes_supported": ["read", "write", "admin"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "service_documentation": SITE.docs_url,
    }
    assert str(OAuthMetadata.model_validate_json(answer.content).issuer) == ISSUER
    assert answer.headers["cache-control"] == "public, max-age=3600"


async def test_a_login_that_its_program_never_fetches_ends_with_its_code(house: IdentityHouse) -> None:
    client = (await house.program())["client_id"]
    fetched, left = await house.consent(client), await house.consent(client)
    assert (await house.exchange(client, fetched["code"])).status_code == 200
    house.world.clock.advance(61)
    assert (await house.exchange(client, left["code"])).status_code == 400
    [grant] = await house.world.store.read(grants_of, person=house.person, now=house.world.clock.now())
    assert grant.expires_at == NOON + 180 * 86_400


async def test_a_login_ends_in_a_token_that_acts_as_the_person(house: IdentityHouse) -> None:
    client_id, tokens = await house.login(("read", "write"))
    assert {**tokens, "access_token": "", "refresh_token": ""} == {
        "access_token": "",
        "refresh_token": "",
        "token_type": "Bearer",
        "expires_in": 600,
        "scope": "read write",
    }
    assert tokens["refresh_token"].startswith("rt_") and len(tokens["refresh_token"]) == 46
    assert jwt.get_unverified_header(tokens["access_token"])["typ"] == "at+jwt"
    claims = jwt.decode(tokens["access_token"], options={"verify_signature": False})
    [grant] = await house.world.store.read(grants_of, person=house.person, now=NOON)
    assert claims == {
        "iss": ISSUER,
        "sub": house.person,
        "aud": SITE.mcp_url,
        "iat": int(NOON),
        "exp": int(NOON) + 600,
        "jti": claims["jti"],
        "sid": grant.id,
        "client_id": client_id,
        "scope": "read write",
        "org_id": house.organisation,
    }
    assert await house.tools(tokens["access_token"])


async def test_the_answer_of_the_person_carries_code_state_and_issuer(house: IdentityHouse) -> None:
    client_id = (await house.program())["client_id"]
    said = await house.consent(client_id)
    assert said == {"code": said["code"], "state": STATE, "iss": ISSUER}
    refused = await deny_consent(house.deps, token=await house.request_token(client_id), now=NOON)
    assert refused is not None and refused.startswith(CALLBACK + "?")
    assert redirect_parameters(refused) == {
        "error": "access_denied",
        "error_description": "The person did not allow it",
        "state": STATE,
        "iss": ISSUER,
    }


@pytest.mark.rule("5.1.1")
async def test_a_token_for_the_api_is_asked_for_by_its_address(house: IdentityHouse) -> None:
    _, tokens = await house.login(resource=SITE.base_url)
    assert (await house.http(tokens["access_token"])).json()["principal"] == house.person
    assert (await house.mcp(tokens["access_token"])).status_code == 401


async def test_without_a_resource_the_token_is_for_the_mcp_server_alone(house: IdentityHouse) -> None:
    _, tokens = await house.login(resource=None)
    assert (await house.mcp(tokens["access_token"])).status_code == 200
    assert (await house.http(tokens["access_token"])).status_code == 401


async def test_a_confidential_program_proves_itself_with_its_secret_in_the_form(house: IdentityHouse) -> None:
    program = await house.program(token_endpoint_auth_method="client_secret_post")
    client_id, secret = program["client_id"], program["client_secret"]
    code = (await house.consent(client_id))["code"]
    for refused in (
        await house.exchange(client_id, code),
        await house.exchange(client_id, code, client_secret="nope"),
        await house.exchange(client_id, code, authorization=basic(client_id, secret)),
    ):
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    assert (await house.exchange(client_id, code, client_secret=secret)).status_code == 200


async def test_a_confidential_program_proves_itself_with_its_secret_in_a_header_that_names_it_too(house: IdentityHouse) -> None:
    program = await house.program(token_endpoint_auth_method="client_secret_basic")
    client_id, secret = program["client_id"], program["client_secret"]
    code = (await house.consent(client_id))["code"]
    for refused in (
        await house.exchange(client_id, code, client_secret=secret),
        await house.exchange("", code, authorization=basic(client_id, "nope")),
        await house.exchange("", code, authorization="Basic !"),
    ):
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    assert refused.headers["www-authenticate"] == 'Basic realm="connectivity"'
    assert (await house.exchange("", code, authorization=basic(client_id, secret))).status_code == 200


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


async def test_a_refresh_keeps_the_login_for_30_days_at_a_time_and_180_in_all(house: IdentityHouse) -> None:
    client_id, tokens = await house.login()
    house.world.clock.advance(700)
    assert (await house.mcp(tokens["access_token"])).json()["code"] == "token_expired"
    for _ in range(6):
        house.world.clock.advance(29 * 86_400)
        answer = await house.refresh(client_id, tokens["refresh_token"])
        assert answer.status_code == 200, answer.text
        tokens = answer.json()
        assert (await house.mcp(tokens["access_token"])).status_code == 200
    house.world.clock.advance(6 * 86_400)
    assert (await house.refresh(client_id, tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_refresh_token_that_nobody_uses_for_30_days_is_dead(house: IdentityHouse) -> None:
    client_id, tokens = await house.login()
    house.world.clock.advance(30 * 86_400)
    assert (await house.refresh(client_id, tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_code_lives_for_60_seconds(house: IdentityHouse) -> None:
    client_id = (await house.program())["client_id"]
    said = await house.consent(client_id)
    house.world.clock.advance(60)
    assert (await house.exchange(client_id, said["code"])).json()["error"] == "invalid_grant"
    said = await house.consent(client_id)
    house.world.clock.advance(59.9)
    assert (await house.exchange(client_id, said["code"])).status_code == 200


async def test_either_token_ends_the_whole_login(house: IdentityHouse) -> None:
    for name in ("access_token", "refresh_token"):
        client_id, tokens = await house.login()
        assert (await house.mcp(tokens["access_token"])).status_code == 200
        stranger = (await house.program())["client_id"]
        assert (await house.revoke(stranger, tokens[name])).status_code == 200
        assert (await house.mcp(tokens["access_token"])).status_code == 200
        ended = await house.revoke(client_id, tokens[name], token_type_hint="whatever")
        assert (ended.status_code, ended.content) == (200, b"")
        assert (await house.mcp(tokens["access_token"])).status_code == 401
        assert (await house.refresh(client_id, tokens["refresh_token"])).json()["error"] == "invalid_grant"
        assert (await house.revoke(client_id, tokens[name])).status_code == 200


async def test_a_console_token_opens_both_doors_for_an_hour(house: IdentityHouse) -> None:
    token, expires_at = await new_console_token(house.deps, person=house.person, organisation=house.organisation, now=NOON)
    assert expires_at == int(NOON) + 3600
    assert (await house.http(token)).json()["organisation"] == house.organisation
    assert (await house.mcp(token)).status_code == 200
    house.world.clock.advance(3606)
    assert (await house.http(token)).status_code == 401


async def test_a_registration_is_told_back_as_it_is_kept(house: IdentityHouse) -> None:
    answer = await house.register(redirect_uris=["http://127.0.0.1:3000"], logo_uri="https://program.test/l.png", contacts=["a@b.test"])
    body = answer.json()
    assert body == {
        "client_id": body["client_id"],
        "client_id_issued_at": int(NOON),
        "client_name": "A program",
        "redirect_uris": ["http://127.0.0.1:3000"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "read write admin",
        "application_type": "native",
    }
    assert body["client_id"].startswith("cli_")
    assert answer.headers["cache-control"] == "no-store"
    secret = await house.program(token_endpoint_auth_method=None)
    assert secret["client_secret"].startswith("cs_") and secret["client_secret_expires_at"] == 0


async def test_a_program_on_this_machine_may_listen_on_any_port(house: IdentityHouse) -> None:
    for host in ("127.0.0.1", "[::1]", "localhost"):
        client_id = (await house.program(redirect_uris=[f"http://{host}:1234/cb?x=1"]))["client_id"]
        said = await house.ask(client_id, redirect_uri=f"http://{host}:50999/cb?x=1")
        assert said.status_code == 302, said.text
        where = await house.allow(redirect_parameters(said.headers["location"])["request"])
        assert where.startswith(f"http://{host}:50999/cb?x=1&code=")
        for other in (f"http://{host}:50999/other", f"https://{host}:50999/cb?x=1", f"http://{host}.evil.test/cb?x=1"):
            assert (await house.ask(client_id, redirect_uri=other)).status_code == 400


async def test_every_answer_but_the_public_documents_is_stored_by_nobody(house: IdentityHouse) -> None:
    client_id, tokens = await house.login()
    for answer in (
        await house.ask(client_id),
        await house.ask("cli_unknown"),
        await house.refresh(client_id, tokens["refresh_token"]),
        await house.refresh(client_id, "rt_nope"),
        await house.revoke(client_id, "nope"),
    ):
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert (await house.get("/auth/token")).status_code == 405
    assert json.loads((await house.get("/auth/jwks")).content)["keys"]
