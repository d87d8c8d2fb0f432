"""The committed document, written to where a test wants it."""

from pathlib import Path

from registry.catalogue import Catalogue
from registry.ports import Site
from transports.openapi.page import openapi_bytes
from transports.reference.files import COMMITTED_SITE


def write_openapi(catalogue: Catalogue, path: Path, site: Site = COMMITTED_SITE) -> None:
    """Write the document that later versions are compared with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(openapi_bytes(catalogue, site, pretty=True))
