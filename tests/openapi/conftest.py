"""The documents as files, for tools that read files."""

from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from tests.openapi.lamps import LAMPS
from tests.openapi.written import write_openapi


@pytest.fixture(params=["service", "lamps"])
def document_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    write_openapi(CATALOGUE if request.param == "service" else LAMPS, path)
    return path


@pytest.fixture
def service_file(tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    write_openapi(CATALOGUE, path)
    return path
