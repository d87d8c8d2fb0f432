"""The committed document, written to where a test wants it."""

from functools import cache
from pathlib import Path

from registry.catalogue import Catalogue
from registry.ports import Site
from transports.openapi.page import openapi_bytes

COMMITTED_BASE_URL = "http://127.0.0.1:8000"  # where `serve` listens unless told otherwise: committed files name no deployment
COMMITTED_SITE = Site(
    base_url=COMMITTED_BASE_URL,
    upgrade_url=f"{COMMITTED_BASE_URL}/auth/upgrade",
    connect_url=f"{COMMITTED_BASE_URL}/auth/onboarding",
    docs_url=f"{COMMITTED_BASE_URL}/docs",
    mcp_url=f"{COMMITTED_BASE_URL}/mcp",
    sign_in_url=f"{COMMITTED_BASE_URL}/auth/sign-in",
)


def write_openapi(catalogue: Catalogue, path: Path, site: Site = COMMITTED_SITE) -> None:
    """Write the document that later versions are compared with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_document(catalogue, site))


@cache
def _document(catalogue: Catalogue, site: Site) -> bytes:
    """The document is built once for all the judges of a run."""
    return openapi_bytes(catalogue, site, pretty=True)
