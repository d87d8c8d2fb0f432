"""One server for the tests of a file, over a database that the commands share with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import migrated_sqlite
from tests.harness.network_cache import copy_networks
from tests.harness.processes import Running, running


@pytest.fixture(scope="package", autouse=True)
def networks() -> None:
    """Commands of this process that simulate a network live through its history once."""
    copy_networks()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Running]:
    with running(place / "data", {"SERVICE_BURST_LIMIT": "false"}) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory to run commands in, after `reseller db upgrade`."""
    (tmp_path / "data").mkdir()
    migrated_sqlite(tmp_path / "data")
    return tmp_path
