"""A post office over each database."""

from pathlib import Path

import pytest

from tests.databases import migrated_sqlite
from tests.deliveries.post_office import open_post_office
from tests.deliveries.transaction import Opened, on_postgresql, on_sqlite
from tests.stage import opened as opened_stage
from tests.stage import opened_on_both

on_both = opened_on_both(open_post_office)
office = opened_stage(open_post_office)


@pytest.fixture
def opened(tmp_path: Path, database_url: str | None) -> Opened:
    """Opens a transaction over an empty database; nothing of it is kept."""
    if database_url is not None:
        return lambda: on_postgresql(database_url)
    path = migrated_sqlite(tmp_path).removeprefix("sqlite:///")
    return lambda: on_sqlite(path)
