"""The token endpoint (RFC 6749) and the revocation endpoint (RFC 7009)."""

import base64
import hashlib
from functools import partial
from typing import cast

import orjson
from mcp.shared.auth import OAuthToken

from clients.identity.session_tokens import TokenRefused, TokenVerifier, grant_of_token
from operations.deps import Deps
from operations.people.consents import GRANT_SECONDS, CodeBinding
from operations.people.organisation_events import log_ended_keys
from operations.people.session_tokens import ACCESS_TOKEN_SECONDS, new_access_token
from operations.secret_tokens import new_secret_token, secret_digest
from storage.access_grants import AccessGrant, find_grant, revoke_grant
from storage.oauth_tokens import end_reused_code, find_authorization_code, find_refresh_token, use_authorization_code, use_refresh_token
from transports.oauth.messages import OauthError, OauthParameters
from transports.oauth.programs import Program, identify_program

NEEDED_PARAMETERS = {"authorization_code": ("code", "code_verifier"), "refresh_token": ("refresh_token",)}


async def exchange_token(deps: Deps, parameters: OauthParameters, authorization: str) -> OAuthToken:
    """The tokens for a code or for a refresh token. `authorization`: the header, empty without one. OauthError: every refusal."""
    grant_type = parameters.get("grant_type", "")
    if grant_type not in NEEDED_PARAMETERS:
        raise OauthError("unsupported_grant_type" if grant_type else "invalid_request", "grant_type: authorization_code or refresh_token")
    missing = [name for name in NEEDED_PARAMETERS[grant_type] if name not in parameters]
    if missing:
        raise OauthError("invalid_request", f"{missing[0]}: missing")
    program = await identify_program(deps, parameters, authorization)
    if grant_type not in program.grant_types:
        raise OauthError("unsupported_grant_type", f"Unsupported grant type (supported grant types are {program.grant_types})")
    exchange = exchange_code if grant_type == "authorization_code" else exchange_refresh_token
    return await exchange(deps, program, parameters, deps.clock.now())


async def exchange_code(deps: Deps, program: Program, parameters: OauthParameters, now: float) -> OAuthToken:
    """The tokens for an authorization code; a code that comes a second time ends what its first use began. `now`: Unix seconds."""
    store, digest, log = deps.store, secret_digest(parameters["code"]), partial(log_ended_keys, deps.ids)
    found = await store.read(find_authorization_code, digest=digest)
    if found is None or found.client_id != program.client_id:
        raise OauthError("invalid_grant", "authorization code does not exist")
    if found.used_at is not None:
        await store.write(end_reused_code, digest=digest, client=program.client_id, now=now, log=log)
        raise OauthError("invalid_grant", "authorization code does not exist")
    bound = cast(CodeBinding, orjson.loads(found.details))
    if code_challenge(parameters["code_verifier"]) != bound["challenge"]:
        raise OauthError("invalid_grant", "incorrect code_verifier")
    presented = parameters.get("redirect_uri")
    if presented != bound["redirect_uri"] and (presented is not None or bound["explicit"]):
        raise OauthError("invalid_grant", "redirect_uri: must be the one of the authorization request")
    await check_resource(deps, found.grant_id, parameters, now)
    refresh = new_secret_token(deps.ids, "rt_") if bound["renewable"] else None
    successor = None if refresh is None else secret_digest(refresh)
    used = await store.write(
        use_authorization_code, digest=digest, client=program.client_id, refresh=successor, until=now + GRANT_SECONDS, now=now, log=log
    )
    if used is None:
        raise OauthError("invalid_grant", "The code is unknown, expired, used, or another program's")
    return await new_tokens(deps, used, refresh, now)


def code_challenge(verifier: str) -> str:
    """The challenge of a verifier by the method S256 (RFC 7636)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


async def exchange_refresh_token(deps: Deps, program: Program, parameters: OauthParameters, now: float) -> OAuthToken:
    """The tokens for a refresh token, which is replaced by a new one. `now`: Unix seconds."""
    store, digest = deps.store, secret_digest(parameters["refresh_token"])
    found = await store.read(find_refresh_token, digest=digest, now=now)
    if found is None or found.client_id != program.client_id:
        raise OauthError("invalid_grant", "refresh token does not exist")
    granted = found.scopes.split()
    scopes = parameters["scope"].split(" ") if "scope" in parameters else granted
    for scope in scopes:
        if scope not in granted:
            raise OauthError("invalid_scope", f"cannot request scope `{scope}` not provided by refresh token")
    # Choice: scopes belong to the grant, so a refresh that asks for fewer is refused rather than given more than it asked for.
    if set(scopes) != set(granted):
        raise OauthError("invalid_scope", "A refresh keeps the scopes of its grant; leave scope out, or ask the person for a new grant")
    await check_resource(deps, found.grant_id, parameters, now)
    successor = new_secret_token(deps.ids, "rt_")
    used = await store.write(
        use_refresh_token,
        digest=digest,
        client=program.client_id,
        successor=secret_digest(successor),
        now=now,
        log=partial(log_ended_keys, deps.ids),
    )
    if used is None:
        raise OauthError("invalid_grant", "The refresh token is unknown, expired, used, or another program's")
    return await new_tokens(deps, used, successor, now)


async def check_resource(deps: Deps, grant_id: str, parameters: OauthParameters, now: float) -> None:
    """Refuse a request that names another resource than its grant is for."""
    grant = await deps.store.read(find_grant, grant=grant_id, now=now)
    if grant is not None and parameters.get("resource") not in (None, grant[0].resource):
        raise OauthError("invalid_target", f"resource: the grant is for {grant[0].resource}")


async def new_tokens(deps: Deps, grant: AccessGrant, refresh: str | None, now: float) -> OAuthToken:
    """A new access token of `grant`, with the refresh token that goes with it."""
    token, _ = await new_access_token(deps, grant, audience=grant.resource, seconds=ACCESS_TOKEN_SECONDS, now=now)
    return OAuthToken(access_token=token, expires_in=ACCESS_TOKEN_SECONDS, scope=grant.scopes, refresh_token=refresh)


class AnyAudience:
    """Accepts tokens for every audience: the holder of a token may end it."""

    def accepts(self, claims: object) -> bool:
        return True


async def revoke_oauth_token(deps: Deps, verifier: TokenVerifier, parameters: OauthParameters, authorization: str) -> None:
    """Ends the grant of a token of the program that asks; one that is unknown, ended or another program's is passed over in silence.

    `token_type_hint` is not needed: both kinds are looked for. OauthError: no token, or the program did not prove who it is.
    """
    if "token" not in parameters:
        raise OauthError("invalid_request", "token: missing")
    program, token, now = await identify_program(deps, parameters, authorization), parameters["token"], deps.clock.now()
    owner, grant = await owner_of_access_token(deps, verifier, token, now)
    if not grant:
        found = await deps.store.read(find_refresh_token, digest=secret_digest(token), now=now)
        owner, grant = (found.client_id, found.grant_id) if found is not None else ("", "")
    if grant and owner == program.client_id:
        await deps.store.write(revoke_grant, grant=grant, now=now, log=partial(log_ended_keys, deps.ids))


async def owner_of_access_token(deps: Deps, verifier: TokenVerifier, token: str, now: float) -> tuple[str, str]:
    """The client id and the grant id of an access token; two empty texts where it is none, or its grant has ended."""
    try:
        await verifier.verify(token, AnyAudience())
    except TokenRefused:
        return "", ""
    grant = grant_of_token(token)
    found = await deps.store.read(find_grant, grant=grant, now=now) if grant else None
    return ("", "") if found is None else (found[0].client_id, found[0].id)
