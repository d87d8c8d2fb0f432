"""The committed files: docs/reference and docs/openapi.json."""

from pathlib import Path

from registry.catalogue import Catalogue
from registry.ports import Site
from transports.openapi.page import openapi_bytes
from transports.reference.entry import build_reference
from transports.reference.markdown import NOTICE, pages

BASE_URL = "http://127.0.0.1:8000"  # where `serve` listens unless told otherwise: committed files name no deployment
SITE = Site(
    base_url=BASE_URL,
    upgrade_url=f"{BASE_URL}/auth/upgrade",
    connect_url=f"{BASE_URL}/auth/onboarding",
    docs_url=f"{BASE_URL}/docs",
    mcp_url=f"{BASE_URL}/mcp",
    sign_in_url=f"{BASE_URL}/auth/sign-in",
)


def reference_files(catalogue: Catalogue, site: Site = SITE) -> dict[str, str]:
    """The Markdown pages by file name."""
    return pages(build_reference(catalogue, site))


def write_reference(catalogue: Catalogue, directory: Path, site: Site = SITE) -> list[Path]:
    """Write the pages; a page of ours that the catalogue no longer gives is removed."""
    made = reference_files(catalogue, site)
    directory.mkdir(parents=True, exist_ok=True)
    for path in sorted(directory.glob("*.md")):
        if path.name not in made and path.read_text().startswith(NOTICE):
            path.unlink()
    for name, text in made.items():
        (directory / name).write_text(text)
    return [directory / name for name in made]


def write_openapi(catalogue: Catalogue, path: Path, site: Site = SITE) -> None:
    """Write the document that later versions are compared with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(openapi_bytes(catalogue, site, pretty=True))
