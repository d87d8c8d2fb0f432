"""The token endpoint (RFC 6749) and the revocation endpoint (RFC 7009)."""

from typing import cast

import orjson
from mcp.server.auth.handlers.revoke import RevocationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, TokenError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from starlette.responses import Response

from clients.identity.session_tokens import TokenRefused, TokenVerifier, grant_of_token
from operations.deps import Deps
from operations.people.consents import GRANT_SECONDS, CodeBinding
from operations.people.session_tokens import ACCESS_TOKEN_SECONDS, new_access_token
from operations.secret_tokens import new_secret_token, secret_digest
from storage.access_grants import AccessGrant, find_grant, revoke_grant
from storage.oauth_tokens import end_reused_code, find_authorization_code, find_refresh_token, use_authorization_code, use_refresh_token
from transports.oauth.messages import OauthError, OauthParameters
from transports.oauth.programs import Program, ProgramProvider, identify_program
from transports.oauth.sdk import form_request

NEEDED_PARAMETERS = {"authorization_code": ("code", "code_verifier"), "refresh_token": ("refresh_token",)}
NEVER = float("inf")
"""The SDK compares expiry with the system's clock; the statements of our store compare with the service's."""
NO_CODE = TokenError("invalid_grant", "The code is unknown, expired, used, or another program's")
NO_REFRESH = TokenError("invalid_grant", "The refresh token is unknown, expired, used, or another program's")


class TokenProvider(ProgramProvider):
    """What the SDK's handler asks about one token request."""

    def __init__(self, deps: Deps, program: Program, parameters: OauthParameters) -> None:
        super().__init__(program)
        self._deps, self._client_id = deps, program.client_id
        self._redirect_uri, self._resource = parameters.get("redirect_uri"), parameters.get("resource")
        self._now = deps.clock.now()

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> AuthorizationCode | None:
        digest = secret_digest(authorization_code)
        found = await self._deps.store.read(find_authorization_code, digest=digest)
        if found is None or found.client_id != self._client_id:
            return None
        if found.used_at is not None:
            await self._deps.store.write(end_reused_code, digest=digest, client=self._client_id, now=self._now)
            return None
        bound = cast(CodeBinding, orjson.loads(found.details))
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
        store, digest = self._deps.store, secret_digest(authorization_code.code)
        found = await store.read(find_authorization_code, digest=digest)
        if found is None:
            raise NO_CODE
        bound = cast(CodeBinding, orjson.loads(found.details))
        grant = await store.read(find_grant, grant=found.grant_id, now=self._now)
        self._check(bound, None if grant is None else grant[0])
        refresh = new_secret_token(self._deps.ids, "rt_") if bound["renewable"] else None
        successor = None if refresh is None else secret_digest(refresh)
        used = await store.write(
            use_authorization_code, digest=digest, client=self._client_id, refresh=successor, until=self._now + GRANT_SECONDS, now=self._now
        )
        if used is None:
            raise NO_CODE
        return await self._tokens(used, refresh)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await self._deps.store.read(find_refresh_token, digest=secret_digest(refresh_token), now=self._now)
        if found is None or found.client_id != self._client_id:
            return None
        return RefreshToken(token=refresh_token, client_id=found.client_id, scopes=found.scopes.split())

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        # Choice: scopes belong to the grant, so a refresh that asks for fewer is refused rather than given more than it asked for.
        if set(scopes) != set(refresh_token.scopes):
            raise TokenError("invalid_scope", "A refresh keeps the scopes of its grant; leave scope out, or ask the person for a new grant")
        store, digest = self._deps.store, secret_digest(refresh_token.token)
        found = await store.read(find_refresh_token, digest=digest, now=self._now)
        grant = None if found is None else await store.read(find_grant, grant=found.grant_id, now=self._now)
        self._check_resource(None if grant is None else grant[0])
        successor = new_secret_token(self._deps.ids, "rt_")
        used = await store.write(
            use_refresh_token, digest=digest, client=self._client_id, successor=secret_digest(successor), now=self._now
        )
        if used is None:
            raise NO_REFRESH
        return await self._tokens(used, successor)

    def _check(self, bound: CodeBinding, grant: AccessGrant | None) -> None:
        """What the code is bound to, as texts: the SDK compares what its URL type makes of them, and calls it invalid_request."""
        presented = self._redirect_uri
        if presented != bound["redirect_uri"] and (presented is not None or bound["explicit"]):
            raise TokenError("invalid_grant", "redirect_uri: must be the one of the authorization request")
        self._check_resource(grant)

    def _check_resource(self, grant: AccessGrant | None) -> None:
        if grant is not None and self._resource not in (None, grant.resource):
            raise TokenError("invalid_target", f"resource: the grant is for {grant.resource}")

    async def _tokens(self, grant: AccessGrant, refresh: str | None) -> OAuthToken:
        token, _ = await new_access_token(self._deps, grant, audience=grant.resource, seconds=ACCESS_TOKEN_SECONDS, now=self._now)
        return OAuthToken(access_token=token, expires_in=ACCESS_TOKEN_SECONDS, scope=grant.scopes, refresh_token=refresh)


async def exchange_token(deps: Deps, parameters: OauthParameters, authorization: str) -> Response:
    """One token request."""
    grant_type = parameters.get("grant_type", "")
    if grant_type not in NEEDED_PARAMETERS:
        raise OauthError("unsupported_grant_type" if grant_type else "invalid_request", "grant_type: authorization_code or refresh_token")
    missing = [name for name in NEEDED_PARAMETERS[grant_type] if name not in parameters]
    if missing:
        raise OauthError("invalid_request", f"{missing[0]}: missing")
    program, parameters = await identify_program(deps, parameters, authorization)
    asked = TokenProvider(deps, program, parameters)
    # The redirect URI is ours to compare: the handler is told that there was none.
    handed = {name: value for name, value in parameters.items() if name != "redirect_uri"}
    return await TokenHandler(asked, ClientAuthenticator(asked)).handle(form_request(handed, authorization))


TOKEN_TYPE_HINTS = ("access_token", "refresh_token")


class AnyAudience:
    """Whoever holds a token may end it, whatever it was made for."""

    def accepts(self, claims: object) -> bool:
        """Always."""
        return True


class GrantedAccessToken(AccessToken):
    """An access token, and its grant."""

    grant: str


class GrantedRefreshToken(RefreshToken):
    """A refresh token, and its grant."""

    grant: str


class RevocationProvider(ProgramProvider):
    """What the SDK's handler asks about one revocation."""

    def __init__(self, deps: Deps, program: Program, verifier: TokenVerifier) -> None:
        super().__init__(program)
        self._deps, self._verifier = deps, verifier

    async def load_access_token(self, token: str) -> AccessToken | None:
        try:
            await self._verifier.verify(token, AnyAudience())
        except TokenRefused:
            return None
        grant = grant_of_token(token)
        found = grant and await self._deps.store.read(find_grant, grant=grant, now=self._deps.clock.now())
        return GrantedAccessToken(token=token, client_id=found[0].client_id, scopes=[], grant=found[0].id) if found else None

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await self._deps.store.read(find_refresh_token, digest=secret_digest(refresh_token), now=self._deps.clock.now())
        return (
            None if found is None else GrantedRefreshToken(token=refresh_token, client_id=found.client_id, scopes=[], grant=found.grant_id)
        )

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        grant = cast(GrantedAccessToken | GrantedRefreshToken, token).grant
        await self._deps.store.write(revoke_grant, grant=grant, now=self._deps.clock.now())


async def revoke_oauth_token(deps: Deps, verifier: TokenVerifier, parameters: OauthParameters, authorization: str) -> Response:
    """One revocation; a token that is unknown, ended or another program's gets the same empty answer."""
    if "token" not in parameters:
        raise OauthError("invalid_request", "token: missing")
    program, parameters = await identify_program(deps, parameters, authorization)
    # The SDK refuses hints that it does not know, which RFC 7009 wants ignored, and public programs, which send no secret.
    handed = {name: value for name, value in parameters.items() if name != "token_type_hint" or value in TOKEN_TYPE_HINTS}
    handed.setdefault("client_secret", "")
    asked = RevocationProvider(deps, program, verifier)
    return await RevocationHandler(asked, ClientAuthenticator(asked)).handle(form_request(handed, authorization))
