"""Every command of the page on keys."""

import json
from pathlib import Path

import pytest

from tests.databases import migrated_sqlite
from tests.docs.blocks import blocks
from tests.docs.reader import done

PAGE = "keys.md"


@pytest.mark.long
def test_every_command_of_the_page_does_what_it_says(place: Path) -> None:
    """On a database of its own: commands without `--org` act for the only organisation, and other pages make more of them."""
    data = place / "keys"
    data.mkdir()
    migrated_sqlite(data)
    alone = {"SERVICE_DATA": str(data)}
    done(place, 'reseller org create "Fjord Mobile" --email ada@fjord.example', **alone)
    make, look, identity = [block.text for block in blocks("sh", document=PAGE)]
    assert done(place, make, **alone).startswith("ak_")
    told = done(place, look, **alone)
    assert "booking agent" in told and "40.00 EUR a day" in told and "In a UTC day at most" in told
    assert json.loads(done(place, identity, **alone))["scopes"]
