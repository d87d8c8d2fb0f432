"""The texts of shops and of mails: each language has all of them, none is left over, and figures look as the language writes them."""

import re
import string
from pathlib import Path

import pytest

from operations.languages import spoken_languages, texts_in
from transports.http.asgi import Headers
from transports.web.shop.request import preferred_language

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "transports/web/shop"
USERS = [
    *PAGES.glob("*.py"),
    *PAGES.rglob("*.html"),
    ROOT / "operations/ledger/orders.py",
    ROOT / "operations/languages.py",
    ROOT / "operations/ledger/event_letters.py",
    ROOT / "operations/intelligence/reports/report_mails.py",
]
COUNTED = re.compile(r"_(one|many)$")


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_english_and_german_are_spoken_and_english_is_for_everybody_else() -> None:
    assert spoken_languages()[0] == "en" and "de" in spoken_languages()
    assert texts_in("xx").language == "en"


@pytest.mark.parametrize("language", spoken_languages())
def test_a_language_has_every_text_with_the_same_places(language: str) -> None:
    english, other = texts_in("en").words, texts_in(language).words
    assert list(other) == list(english), "in the same order, too, so that two files can be read side by side"
    assert {key for key in english if places(english[key]) != places(other[key])} == set()
    assert {key for key, text in other.items() if not text.strip() and key != "format.thousands"} == set()


def test_no_text_is_translated_by_itself() -> None:
    english, german = texts_in("en").words, texts_in("de").words
    same = {key for key in english if english[key] == german[key] and not key.startswith(("countries.", "currencies.", "format."))}
    assert same == {"page.problem"}


def test_every_text_is_used_and_every_text_that_is_used_is_there() -> None:
    code = "\n".join(path.read_text() for path in USERS)
    named = set(re.findall(r"[\"']([a-z_]+\.(?!html)[a-z_0-9]+)[\"']", code))
    built = {f"refused.{word}{end}" for word in re.findall(r"\"(sold_out|gone|not_now|payment|top_up)\"", code) for end in ("", "_title")}
    built |= {
        f"mail.{name}_{part}"
        for name in re.findall(r"mail_buyer\(connection, deps, row, shop, \"(\w+)\"", code)
        for part in ("subject", "text")
    }
    words = texts_in("en").words
    pairs = {COUNTED.sub("", key) for key in words if f"{COUNTED.sub('', key)}_one" in words}
    known = {
        bare if (bare := COUNTED.sub("", key)) in pairs else key
        for key in words
        if not key.startswith(("countries.", "currencies.", "happened."))
    }
    assert known - named - built == set()
    assert {key for key in named | built if key.split(".")[0] in {one.split(".")[0] for one in known}} - known == set()


def test_figures_are_written_as_the_language_writes_them() -> None:
    english, german = texts_in("en"), texts_in("de")
    assert [english.money(123456, code) for code in ("USD", "EUR", "GBP", "CHF")] == [
        "$1,234.56",
        "€1,234.56",
        "£1,234.56",
        "CHF\u00a01,234.56",
    ]
    assert [german.money(5, code) for code in ("EUR", "CHF")] == ["0,05\u00a0€", "0,05\u00a0CHF"]
    assert [english.data(mb) for mb in (1, 500, 1000, 1500, 50_000, 1_234_500)] == [
        "1\u00a0MB",
        "500\u00a0MB",
        "1\u00a0GB",
        "1.5\u00a0GB",
        "50\u00a0GB",
        "1,234.5\u00a0GB",
    ]
    assert (german.data(1500), german.bytes(1_073_741_824), english.bytes(0)) == ("1,5\u00a0GB", "1,07\u00a0GB", "0\u00a0MB")
    assert (english.days(1), english.days(30), german.days(1), german.days(1000)) == ("1 day", "30 days", "1 Tag", "1.000 Tage")
    assert english.moment("2027-01-15T12:00:00Z") == "15 January 2027, 12:00 UTC"
    assert german.day(1_800_014_400.0) == "15. Januar 2027"
    assert (german.country("NO"), german.country("ZZ")) == ("Norwegen", "ZZ")


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("DE-ch", "de"),
        ("en;q=0.5, de;q=0.7", "de"),
        ("en-GB,en;q=0.9,de;q=0.8", "en"),
        ("fr,de;q=0.4", "de"),
        ("fr;q=1,*;q=0.5", "en"),
        ("*;q=0.5,en;q=0", "de"),
        ("de;q=0", "en"),
        ("de;q=0,en;q=0", "en"),
        ("de;q=2", "en"),
        ("de-CH;q=0.3,en;q=0.5,de;q=0.9", "de"),
        ("dehqd, \xff\xfe;;q==, de", "de"),
        ("x," * 5000 + "de", "en"),
    ],
)
def test_the_language_is_what_the_reader_wants_most(asked: str, language: str) -> None:
    headers: Headers = [(b"accept-language", asked.encode("latin-1"))]
    assert preferred_language(headers, ["en", "de"]) == language
