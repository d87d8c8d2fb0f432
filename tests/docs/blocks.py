"""The fenced blocks of the documents that people read first."""

import re
from typing import NamedTuple

from tests.harness.processes import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    document: str
    language: str
    text: str


def blocks(*languages: str, document: str | None = None) -> list[Block]:
    found = [Block(path.name, language, text) for path in DOCUMENTS for language, text in FENCE.findall(path.read_text())]
    return [block for block in found if block.language in languages and document in (None, block.document)]


def every_block() -> list[Block]:
    return [Block(path.name, language, text) for path in DOCUMENTS for language, text in FENCE.findall(path.read_text())]
