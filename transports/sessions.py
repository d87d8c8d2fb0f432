"""Session tokens of an identity provider, as the pipeline's Sessions port: a configured one's, or the built-in one's."""

from clients.http import Outbound
from clients.identity.jwks import JwksCache, jwks_fetch
from clients.identity.session_tokens import HttpAudience, McpAudience, TokenRefused, TokenVerifier, grant_of_token
from operations.deps import Deps
from operations.people.session_tokens import token_issuer
from operations.people.signing_keys import signing_key_set
from registry.call import Surface
from registry.errors import Unauthorized
from registry.ports import SessionClaims, Sessions
from transports.settings import Settings


class ProviderSessions:
    """Verifies tokens; at the MCP door they must have been made for the MCP resource."""

    def __init__(self, verifier: TokenVerifier, http: HttpAudience, mcp: McpAudience) -> None:
        self._verifier, self._http, self._mcp = verifier, http, mcp

    async def verify(self, token: str, surface: Surface) -> SessionClaims:
        """The claims, when the token is good at this door."""
        try:
            claims = await self._verifier.verify(token, self._mcp if surface == "mcp" else self._http)
        except TokenRefused as refused:
            raise Unauthorized(refused.reason, presented=True, code=refused.code) from None
        return SessionClaims(claims.subject, claims.organisation, email=claims.email)


class OwnSessions:
    """The same for tokens of the built-in identity provider: each names its grant, and what that may do is read at every call."""

    def __init__(self, provider: ProviderSessions) -> None:
        self._provider = provider

    async def verify(self, token: str, surface: Surface) -> SessionClaims:
        """The claims, when the token is good at this door and names a grant."""
        claims = await self._provider.verify(token, surface)
        grant = grant_of_token(token)
        if grant is None:
            raise Unauthorized("The token is no access token of a login (typ at+jwt, sid)", presented=True)
        return claims._replace(grant=grant)


def sessions_of(settings: Settings, outbound: Outbound, deps: Deps) -> Sessions:
    """The configured identity provider, whose keys are fetched, or the built-in one."""
    if settings.own_identity:
        return own_sessions(deps)
    keys = JwksCache(jwks_fetch(outbound, settings.auth_jwks_url), deps.clock.monotonic)
    audience = HttpAudience(settings.auth_audience or None, frozenset(settings.auth_azp))
    return ProviderSessions(TokenVerifier(settings.auth_issuer, keys, deps.clock.now), audience, McpAudience(deps.site.mcp_url))


def own_sessions(deps: Deps) -> OwnSessions:
    return OwnSessions(ProviderSessions(own_verifier(deps), HttpAudience(deps.site.base_url), McpAudience(deps.site.mcp_url)))


def own_verifier(deps: Deps) -> TokenVerifier:
    """Verifies what our own keys signed. They are read from the store, so a key that another process made a moment ago counts at once."""

    async def fetch() -> bytes:
        return await signing_key_set(deps)

    return TokenVerifier(token_issuer(deps.site), JwksCache(fetch, deps.clock.monotonic, cooldown=0), deps.clock.now)
