"""Session tokens of an external identity provider, as the pipeline's Sessions port."""

from clients.http import Outbound
from clients.identity.audience import HttpAudience, McpAudience
from clients.identity.jwks import JwksCache, fetch_over
from clients.identity.refusal import TokenRefused
from clients.identity.tokens import Verifier
from registry.call import Surface
from registry.clock import Clock
from registry.errors import Unauthorized
from registry.ports import Claims
from transports.settings import Settings


class ProviderSessions:
    """Verifies tokens; at the MCP door they must have been made for the MCP resource."""

    def __init__(self, verifier: Verifier, http: HttpAudience, mcp: McpAudience) -> None:
        self._verifier, self._http, self._mcp = verifier, http, mcp

    async def verify(self, token: str, surface: Surface) -> Claims:
        """The claims, when the token is good at this door."""
        try:
            claims = await self._verifier.verify(token, self._mcp if surface == "mcp" else self._http)
        except TokenRefused as refused:
            raise Unauthorized(refused.reason, presented=True, code=refused.code) from None
        return Claims(claims.subject, claims.organisation)


def provider_sessions(settings: Settings, outbound: Outbound, clock: Clock, mcp_resource: str) -> ProviderSessions | None:
    """The configured identity provider; None when there is none."""
    if not settings.auth_issuer:
        return None
    keys = JwksCache(fetch_over(outbound, settings.auth_jwks_url), clock.monotonic)
    audience = HttpAudience(settings.auth_audience or None, frozenset(settings.auth_azp))
    return ProviderSessions(Verifier(settings.auth_issuer, keys, clock.now), audience, McpAudience(mcp_resource))
