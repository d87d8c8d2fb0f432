"""What the authorization server says of itself (RFC 8414), and where it is."""

from urllib.parse import urlsplit

import orjson

from operations.people.session_tokens import LOGIN_SCOPES, token_issuer
from registry.ports import Site

SERVER_METADATA_PATH = "/.well-known/oauth-authorization-server"
ISSUER_PATH = "/auth"
JWKS_PATH, AUTHORIZE_PATH, TOKEN_PATH, REGISTER_PATH, REVOKE_PATH = (
    f"{ISSUER_PATH}/{name}" for name in ("jwks", "authorize", "token", "register", "revoke")
)
CLIENT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]


def server_metadata_paths(base_url: str) -> frozenset[str]:
    """The well-known part goes between host and path of the issuer. A proxy that serves us under a path may or may not take that away."""
    return frozenset({f"{SERVER_METADATA_PATH}{urlsplit(base_url).path}{ISSUER_PATH}", f"{SERVER_METADATA_PATH}{ISSUER_PATH}"})


def protocol_paths(base_url: str) -> frozenset[str]:
    return frozenset({JWKS_PATH, AUTHORIZE_PATH, TOKEN_PATH, REGISTER_PATH, REVOKE_PATH}) | server_metadata_paths(base_url)


def server_metadata(site: Site) -> bytes:
    """The metadata document (RFC 8414). The SDK's model has no `jwks_uri` and rewrites addresses that programs compare whole."""
    base = site.base_url
    return orjson.dumps(
        {
            "issuer": token_issuer(site),
            "authorization_endpoint": base + AUTHORIZE_PATH,
            "token_endpoint": base + TOKEN_PATH,
            "registration_endpoint": base + REGISTER_PATH,
            "revocation_endpoint": base + REVOKE_PATH,
            "jwks_uri": base + JWKS_PATH,
            "scopes_supported": list(LOGIN_SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": CLIENT_AUTH_METHODS,
            "revocation_endpoint_auth_methods_supported": CLIENT_AUTH_METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "service_documentation": site.docs_url,
        }
    )
