"""Where the metadata is, also for a service that lives under a path."""

from tests.world import SITE
from transports.mcp.door import resource_metadata
from transports.oauth.door import server_metadata
from transports.oauth.messages import protocol_paths, server_metadata_paths


def test_the_well_known_part_goes_between_host_and_path_of_the_issuer() -> None:
    assert server_metadata_paths(SITE.base_url) == {"/.well-known/oauth-authorization-server/auth"}
    assert server_metadata_paths("https://esim.example/svc") == {
        "/.well-known/oauth-authorization-server/svc/auth",
        "/.well-known/oauth-authorization-server/auth",
    }
    assert protocol_paths(SITE.base_url) == {
        "/.well-known/oauth-authorization-server/auth",
        "/auth/jwks",
        "/auth/authorize",
        "/auth/token",
        "/auth/register",
        "/auth/revoke",
    }
    assert b'"jwks_uri":"https://reseller.test/auth/jwks"' in server_metadata(SITE)


def test_scopes_are_told_where_we_know_them() -> None:
    assert b'"scopes_supported":["read","write","admin"]' in resource_metadata(
        SITE.mcp_url, ("https://reseller.test/auth",), SITE.docs_url, ("read", "write", "admin")
    )
    assert b"scopes_supported" not in resource_metadata(SITE.mcp_url, ("https://id.example",), SITE.docs_url)
