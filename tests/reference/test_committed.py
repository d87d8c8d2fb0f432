"""docs/reference is what the catalogue gives."""

from pathlib import Path

from operations.catalogue import CATALOGUE
from tests.openapi.lamps import LAMPS
from tests.openapi.written import COMMITTED_SITE
from transports.reference.files import markdown_reference, write_reference

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_the_committed_pages_are_those_of_the_catalogue() -> None:
    """`reseller reference` writes them anew."""
    committed = {path.name: path.read_text() for path in COMMITTED.glob("*.md")}
    assert committed == markdown_reference(CATALOGUE, COMMITTED_SITE)


def test_a_page_of_a_toolset_that_is_gone_is_removed_and_other_files_stay(tmp_path: Path) -> None:
    write_reference(CATALOGUE, tmp_path, COMMITTED_SITE)
    (tmp_path / "notes.md").write_text("mine")
    written = write_reference(LAMPS, tmp_path, COMMITTED_SITE)
    assert sorted(written) == [tmp_path / "README.md", tmp_path / "lamps.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "lamps.md", "notes.md"]
