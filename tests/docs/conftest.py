"""A checkout to play in, and a service that runs there."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import DOCUMENTS
from tests.harness.processes import ROOT, Running, running

BRIDGE_SECRET = "5f0c1d7be2a94630f1b8c27a90d4e6b35a81c9f2d3e4a5b6"
DOCS_SHOP_KEY = "the-key-of-a-shops-own-server"


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Examples and tests are the real ones, what commands write stays here."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("examples", "ops", "registry", "operations", "storage", "clients", "simulators", "transports"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    for document in DOCUMENTS:
        shutil.copy(document, folder / document.relative_to(ROOT))
    (folder / "token.txt").write_text("sandbox-7002-token\n")
    return folder


@pytest.fixture(scope="package")
def server(place: Path) -> Iterator[Running]:
    """As the tour starts it, with what the pages on webhooks, notifications and shops ask for: one for all pages that need no other.

    Nobody waits for the pace at which a real charging system takes writes.
    """
    settings = {
        "SERVICE_BURST_LIMIT": "false",
        "SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8",
        "SERVICE_BRIDGE_WEBHOOK_SECRET": BRIDGE_SECRET,
        "SERVICE_STOREFRONT_API_KEY": DOCS_SHOP_KEY,
    }
    with running(place / "data", settings) as server:
        yield server
