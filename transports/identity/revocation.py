"""The revocation endpoint (RFC 7009): either token ends the whole grant."""

from typing import cast

from mcp.server.auth.handlers.revoke import RevocationHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import AccessToken, RefreshToken
from mcp.shared.auth import OAuthClientInformationFull
from starlette.responses import Response

from clients.identity.access_token import grant_in
from clients.identity.refusal import TokenRefused
from clients.identity.tokens import Verifier
from operations.deps import Deps
from operations.services.secret_token import digest_of
from storage.people.grants import find_grant, revoke_grant
from storage.people.refresh_tokens import find_refresh_token
from transports.identity.back_channel import Known, identified
from transports.identity.oauth_error import OauthError
from transports.identity.parameters import Parameters
from transports.identity.programs import Program
from transports.identity.sdk import posted_form

HINTS = ("access_token", "refresh_token")


class AnyAudience:
    """Whoever holds a token may end it, whatever it was made for."""

    def accepts(self, claims: object) -> bool:
        """Always."""
        return True


class AccessOf(AccessToken):
    """An access token, and its grant."""

    grant: str


class RefreshOf(RefreshToken):
    """A refresh token, and its grant."""

    grant: str


class Revoking(Known):
    """What the SDK's handler asks about one revocation."""

    def __init__(self, deps: Deps, program: Program, verifier: Verifier) -> None:
        super().__init__(program)
        self._deps, self._verifier = deps, verifier

    async def load_access_token(self, token: str) -> AccessToken | None:
        try:
            await self._verifier.verify(token, AnyAudience())
        except TokenRefused:
            return None
        grant = grant_in(token)
        found = grant and await self._deps.store.read(find_grant, grant=grant, now=self._deps.clock.now())
        return AccessOf(token=token, client_id=found[0].client_id, scopes=[], grant=found[0].id) if found else None

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await self._deps.store.read(find_refresh_token, digest=digest_of(refresh_token), now=self._deps.clock.now())
        return None if found is None else RefreshOf(token=refresh_token, client_id=found.client_id, scopes=[], grant=found.grant_id)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        grant = cast(AccessOf | RefreshOf, token).grant
        await self._deps.store.write(revoke_grant, grant=grant, now=self._deps.clock.now())


async def revoke(deps: Deps, verifier: Verifier, parameters: Parameters, authorization: str) -> Response:
    """One revocation; a token that is unknown, ended or another program's gets the same empty answer."""
    if "token" not in parameters:
        raise OauthError("invalid_request", "token: missing")
    program, parameters = await identified(deps, parameters, authorization)
    # The SDK refuses hints that it does not know, which RFC 7009 wants ignored, and public programs, which send no secret.
    handed = {name: value for name, value in parameters.items() if name != "token_type_hint" or value in HINTS}
    handed.setdefault("client_secret", "")
    asked = Revoking(deps, program, verifier)
    return await RevocationHandler(asked, ClientAuthenticator(asked)).handle(posted_form(handed, authorization))
