"""Session tokens of the built-in identity provider: short-lived, and good for what their grant says at the moment of each call."""

from collections.abc import Iterable, Sequence

from operations.deps import Deps
from operations.people.signing_keys import sign_token
from registry.ports import Site
from storage.access_grants import GRANT_PREFIX, AccessGrant, grant_to_member

LOGIN_SCOPES = ("read", "write", "admin")
"""What a login may be granted, the least first. `write` and `admin` include `read`: who may change a thing sees it in the answer."""
ACCESS_TOKEN_SECONDS = 600
CONSOLE_TOKEN_SECONDS = 3600
CONSOLE_CLIENT = "console"
_CONSOLE_CLIENT_NAME = "The console of this service"


def with_included_scopes(scopes: Iterable[str]) -> list[str]:
    """`scopes` with those that they include, in the order of LOGIN_SCOPES."""
    granted = set(scopes)
    return [scope for scope in LOGIN_SCOPES if scope in granted or (scope == "read" and granted)]


def token_issuer(site: Site) -> str:
    """The name of the built-in identity provider: `iss`, character for character."""
    return f"{site.base_url}/auth"


def token_resources(site: Site) -> tuple[str, str]:
    """The addresses that tokens are made for: the MCP server's and the API's."""
    return site.mcp_url, site.base_url


async def new_access_token(deps: Deps, grant: AccessGrant, *, audience: str | Sequence[str], seconds: int, now: float) -> tuple[str, int]:
    """A token of a grant, and its Unix expiry. Only `sid` decides what it may do; the rest is there for whoever reads it."""
    expires_at = int(now) + seconds
    claims: dict[str, object] = {
        "iss": token_issuer(deps.site),
        "sub": grant.person_id,
        "aud": audience if isinstance(audience, str) else list(audience),
        "iat": int(now),
        "exp": expires_at,
        "jti": deps.ids.new("jti_"),
        "sid": grant.id,
        "client_id": grant.client_id,
        "scope": grant.scopes,
    }
    if grant.organisation_id is not None:
        claims["org_id"] = grant.organisation_id
    return await sign_token(deps, claims, now), expires_at


async def new_console_token(deps: Deps, *, person: str, organisation: str | None, now: float) -> tuple[str, int]:
    """A token for the API and the MCP server, for somebody who is signed in at our own pages.

    Choice: each is a grant of its own that ends with it after an hour, so that it is listed and can be ended like any other.
    """
    grant = AccessGrant(
        id=deps.ids.new(GRANT_PREFIX),
        person_id=person,
        organisation_id=organisation,
        client_id=CONSOLE_CLIENT,
        client_name=_CONSOLE_CLIENT_NAME,
        scopes=" ".join(LOGIN_SCOPES),
        resource=deps.site.base_url,
        created=now,
        expires_at=int(now) + CONSOLE_TOKEN_SECONDS,
    )
    await deps.store.write(grant_to_member, grant=grant)
    return await new_access_token(deps, grant, audience=(deps.site.base_url, deps.site.mcp_url), seconds=CONSOLE_TOKEN_SECONDS, now=now)
