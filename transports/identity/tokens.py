"""The token endpoint: codes and refresh tokens become access tokens."""

from typing import cast

import orjson
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import AuthorizationCode, RefreshToken, TokenError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from starlette.responses import Response

from operations.deps import Deps
from operations.services.people.consents import GRANT_SECONDS, Bound
from operations.services.people.session_tokens import ACCESS_SECONDS, access_token
from operations.services.secret_token import digest_of, new_token
from storage.people.authorizations import end_reused_code, find_code, use_code
from storage.people.grants import Grant, find_grant
from storage.people.refresh_tokens import find_refresh_token, use_refresh_token
from transports.identity.back_channel import Known, identified
from transports.identity.oauth_error import OauthError
from transports.identity.parameters import Parameters
from transports.identity.programs import Program
from transports.identity.sdk import posted_form

NEEDED = {"authorization_code": ("code", "code_verifier"), "refresh_token": ("refresh_token",)}
NEVER = float("inf")
"""The SDK compares expiry with the system's clock; the statements of our store compare with the service's."""
NO_CODE = TokenError("invalid_grant", "The code is unknown, expired, used, or another program's")
NO_REFRESH = TokenError("invalid_grant", "The refresh token is unknown, expired, used, or another program's")


class Exchanging(Known):
    """What the SDK's handler asks about one token request."""

    def __init__(self, deps: Deps, program: Program, parameters: Parameters) -> None:
        super().__init__(program)
        self._deps, self._client_id = deps, program.client_id
        self._redirect_uri, self._resource = parameters.get("redirect_uri"), parameters.get("resource")
        self._now = deps.clock.now()

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> AuthorizationCode | None:
        digest = digest_of(authorization_code)
        found = await self._deps.store.read(find_code, digest=digest)
        if found is None or found.client_id != self._client_id:
            return None
        if found.used_at is not None:
            await self._deps.store.write(end_reused_code, digest=digest, client=self._client_id, now=self._now)
            return None
        bound = cast(Bound, orjson.loads(found.details))
        return AuthorizationCode(
            code=authorization_code,
            scopes=[],
            expires_at=NEVER,
            client_id=found.client_id,
            code_challenge=bound["challenge"],
            redirect_uri=AnyUrl("about:blank"),
            redirect_uri_provided_explicitly=False,
        )

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode) -> OAuthToken:
        store, digest = self._deps.store, digest_of(authorization_code.code)
        found = await store.read(find_code, digest=digest)
        if found is None:
            raise NO_CODE
        bound = cast(Bound, orjson.loads(found.details))
        grant = await store.read(find_grant, grant=found.grant_id, now=self._now)
        self._check(bound, None if grant is None else grant[0])
        refresh = new_token(self._deps.ids, "rt_") if bound["renewable"] else None
        successor = None if refresh is None else digest_of(refresh)
        used = await store.write(
            use_code, digest=digest, client=self._client_id, refresh=successor, until=self._now + GRANT_SECONDS, now=self._now
        )
        if used is None:
            raise NO_CODE
        return await self._tokens(used, refresh)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await self._deps.store.read(find_refresh_token, digest=digest_of(refresh_token), now=self._now)
        if found is None or found.client_id != self._client_id:
            return None
        return RefreshToken(token=refresh_token, client_id=found.client_id, scopes=found.scopes.split())

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        # Choice: scopes belong to the grant, so a refresh that asks for fewer is refused rather than given more than it asked for.
        if set(scopes) != set(refresh_token.scopes):
            raise TokenError("invalid_scope", "A refresh keeps the scopes of its grant; leave scope out, or ask the person for a new grant")
        store, digest = self._deps.store, digest_of(refresh_token.token)
        found = await store.read(find_refresh_token, digest=digest, now=self._now)
        grant = None if found is None else await store.read(find_grant, grant=found.grant_id, now=self._now)
        self._check_resource(None if grant is None else grant[0])
        successor = new_token(self._deps.ids, "rt_")
        used = await store.write(use_refresh_token, digest=digest, client=self._client_id, successor=digest_of(successor), now=self._now)
        if used is None:
            raise NO_REFRESH
        return await self._tokens(used, successor)

    def _check(self, bound: Bound, grant: Grant | None) -> None:
        """What the code is bound to, as texts: the SDK compares what its URL type makes of them, and calls it invalid_request."""
        presented = self._redirect_uri
        if presented != bound["redirect_uri"] and (presented is not None or bound["explicit"]):
            raise TokenError("invalid_grant", "redirect_uri: must be the one of the authorization request")
        self._check_resource(grant)

    def _check_resource(self, grant: Grant | None) -> None:
        if grant is not None and self._resource not in (None, grant.resource):
            raise TokenError("invalid_target", f"resource: the grant is for {grant.resource}")

    async def _tokens(self, grant: Grant, refresh: str | None) -> OAuthToken:
        token, _ = await access_token(self._deps, grant, audience=grant.resource, seconds=ACCESS_SECONDS, now=self._now)
        return OAuthToken(access_token=token, expires_in=ACCESS_SECONDS, scope=grant.scopes, refresh_token=refresh)


async def exchange(deps: Deps, parameters: Parameters, authorization: str) -> Response:
    """One token request."""
    grant_type = parameters.get("grant_type", "")
    if grant_type not in NEEDED:
        raise OauthError("unsupported_grant_type" if grant_type else "invalid_request", "grant_type: authorization_code or refresh_token")
    missing = [name for name in NEEDED[grant_type] if name not in parameters]
    if missing:
        raise OauthError("invalid_request", f"{missing[0]}: missing")
    program, parameters = await identified(deps, parameters, authorization)
    asked = Exchanging(deps, program, parameters)
    # The redirect URI is ours to compare: the handler is told that there was none.
    handed = {name: value for name, value in parameters.items() if name != "redirect_uri"}
    return await TokenHandler(asked, ClientAuthenticator(asked)).handle(posted_form(handed, authorization))
