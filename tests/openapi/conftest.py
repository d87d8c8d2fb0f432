"""The documents as files, for tools that read files."""

from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from tests.openapi.lamps import LAMPS
from tests.openapi.written import write_openapi


@pytest.fixture(params=["service", "lamps"])
def document_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """That of the service, or a small one, whose folder is called so."""
    path = tmp_path / str(request.param) / "openapi.json"
    write_openapi(CATALOGUE if request.param == "service" else LAMPS, path)
    return path
