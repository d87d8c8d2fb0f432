"""Every command of the page on keys."""

import json
from pathlib import Path

from tests.docs.blocks import blocks
from tests.docs.reader import done
from tests.harness.processes import Running

PAGE = "keys.md"


def test_every_command_of_the_page_does_what_it_says(place: Path, server: Running) -> None:
    del server
    make, look, identity = [block.text for block in blocks("sh", document=PAGE)]
    assert done(place, make).startswith("ak_")
    told = done(place, look)
    assert "booking agent" in told and "40.00 EUR a day" in told and "In a UTC day at most" in told
    assert json.loads(done(place, identity))["scopes"]
