"""The gate before JSON-RPC: who calls is settled here, and a request without a good credential gets no further."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import orjson

from operations.deps import Deps
from registry.caller import Caller
from registry.credential import another_key, misplaced, own_pages
from registry.errors import BadRequest, Unauthorized
from registry.pipeline import Pipeline
from registry.policy import bearer

WELL_KNOWN = "/.well-known/oauth-protected-resource"
HINT = "Send Authorization: Bearer <API key or session token>; a session token must be issued for this address (its audience)"


def metadata_url(resource: str) -> str:
    """Where the resource's metadata is: the well-known part goes between host and path (RFC 9728 section 3.1)."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"


def metadata(resource: str, authorization_servers: tuple[str, ...], documentation: str, scopes: tuple[str, ...] = ()) -> bytes:
    """RFC 9728 metadata. Without an identity provider there is no authorization server to name, and API keys alone work."""
    body: dict[str, object] = {
        "resource": resource,
        "bearer_methods_supported": ["header"],
        "resource_name": "Connectivity",
        "resource_documentation": documentation,
    }
    if authorization_servers:
        body["authorization_servers"] = list(authorization_servers)
    if scopes:
        body["scopes_supported"] = list(scopes)
    return orjson.dumps(body)


def credential(headers: list[tuple[bytes, bytes]], hint: str = HINT) -> str:
    """The bearer credential of a request."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) > 1:
        raise BadRequest("authorization: the header was sent twice", hint="Send it once")
    scheme, _, secret = values[0].decode("latin-1").partition(" ") if values else ("", "", "")
    # Choice: another scheme counts as nothing presented (RFC 6750 3.1), so the challenge tells which scheme to use.
    if scheme.lower() != "bearer":
        seen = misplaced(headers, b"") or "this address needs one"  # the query was read before, and has none
        raise Unauthorized(f"No credential: {seen}", presented=False, hint=hint)
    if not secret.strip():
        raise Unauthorized("The credential is empty", presented=True, hint=hint)
    return secret.strip()


async def authenticate(pipeline: Pipeline[Deps], headers: list[tuple[bytes, bytes]]) -> Caller:
    """The caller of a request, by the pipeline's own rules; the surface makes the audience of session tokens count."""
    site = pipeline.site
    hint = f"{HINT}. {another_key(site)}" if own_pages(site) else HINT
    return await bearer(credential(headers, hint), "mcp", pipeline.directory, pipeline.sessions, site, pipeline.clock.now())


def challenge(refusal: Unauthorized, resource: str) -> Mapping[str, str]:
    """The refusal's headers, with the way to the metadata (RFC 9728 section 5.1)."""
    return {**refusal.headers, "WWW-Authenticate": f'{refusal.headers["WWW-Authenticate"]}, resource_metadata="{metadata_url(resource)}"'}
