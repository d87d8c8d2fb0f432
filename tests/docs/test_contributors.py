"""The guide for contributors names files that there are."""

import re

from tests.harness.processes import ROOT

TEXT = (ROOT / "docs" / "guide-contributors.md").read_text()


def test_every_file_and_folder_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:registry|operations|transports|storage|clients|simulators|tests)/[\w/]*(?:\.\w+)?)`", TEXT)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_doors_that_are_named_all_reach_the_pipeline() -> None:
    doors = re.findall(r"`(\S+\.py)`", TEXT[TEXT.index("The other doors end") : TEXT.index("## Where things are")])
    assert len(doors) == 4
    assert [door for door in doors if not re.search(r"\b(run|answer|called)\b", (ROOT / door).read_text())] == []
