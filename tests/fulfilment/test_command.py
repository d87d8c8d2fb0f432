"""`reseller storefront settle` as a person uses it."""

from pathlib import Path

from tests.cli.reseller import refused
from tests.databases import migrated_sqlite

WORDS = ("storefront", "settle")


def test_the_command_line_takes_one_word_and_says_what_is_wrong(tmp_path: Path) -> None:
    both = refused(*WORDS, "ord_1", "--refund", "--added", cwd=tmp_path)
    none = refused(*WORDS, "ord_1", cwd=tmp_path)
    migrated_sqlite(tmp_path)
    unknown = refused(*WORDS, "ord_none", "--refund", "--by", "ann", "--data", tmp_path, cwd=tmp_path)
    assert [code for code, _ in (both, none, unknown)] == [2, 2, 1]
    assert "exactly one of --refund and --added" in both[1] and "There is no such order or top-up" in unknown[1]
