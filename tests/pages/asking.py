"""A program that asks to act for somebody, as the protocol keeps its request."""

from collections.abc import Sequence

from operations.people.consents import AuthorizationRequest, keep_authorization_request
from tests.pages.site import Site

REDIRECT = "https://app.example:8443/callback?keep=1"


async def consent_token(
    site: Site,
    *,
    name: str = "Chart maker",
    redirect: str = REDIRECT,
    scopes: Sequence[str] = ("read", "write", "admin"),
    client: str = "clt_1",
    vouched: bool = False,
) -> str:
    """The token that the browser brings to the consent page."""
    request: AuthorizationRequest = {
        "client_id": client,
        "client_name": name,
        "client_uri": None,
        "redirect_uri": redirect,
        "explicit": True,
        "scopes": list(scopes),
        "resource": site.service.site.mcp_url,
        "state": "st-1",
        "challenge": "c" * 43,
        "vouched": vouched,
        "renewable": True,
    }
    return await keep_authorization_request(site.service.pipeline.deps, request, now=site.clock.now())
