"""What the authorization server says of itself (RFC 8414), and where it is."""

from urllib.parse import urlsplit

import orjson

from operations.services.people.session_tokens import SCOPES, issuer_of
from registry.ports import Site

WELL_KNOWN = "/.well-known/oauth-authorization-server"
ISSUER_PATH = "/auth"
JWKS, AUTHORIZE, TOKEN, REGISTER, REVOKE = (f"{ISSUER_PATH}/{name}" for name in ("jwks", "authorize", "token", "register", "revoke"))
CLIENT_AUTHENTICATION = ["none", "client_secret_basic", "client_secret_post"]


def metadata_paths(base_url: str) -> frozenset[str]:
    """The well-known part goes between host and path of the issuer. A proxy that serves us under a path may or may not take that away."""
    return frozenset({f"{WELL_KNOWN}{urlsplit(base_url).path}{ISSUER_PATH}", f"{WELL_KNOWN}{ISSUER_PATH}"})


def protocol_paths(base_url: str) -> frozenset[str]:
    """Every path of the protocol."""
    return frozenset({JWKS, AUTHORIZE, TOKEN, REGISTER, REVOKE}) | metadata_paths(base_url)


def metadata(site: Site) -> bytes:
    """The document. It is ours and not the SDK's, whose model has no `jwks_uri` and rewrites addresses that programs compare whole."""
    base = site.base_url
    return orjson.dumps(
        {
            "issuer": issuer_of(site),
            "authorization_endpoint": base + AUTHORIZE,
            "token_endpoint": base + TOKEN,
            "registration_endpoint": base + REGISTER,
            "revocation_endpoint": base + REVOKE,
            "jwks_uri": base + JWKS,
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
            "revocation_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "service_documentation": site.docs_url,
        }
    )
