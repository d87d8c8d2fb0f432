"""Every text that a buyer reads, on pages and in mails, in each language that is spoken: a language is one file.

A file is named after its language, and holds sections of texts; a text may have `{places}`. Amounts, data, days and moments are written
as the language writes them.
"""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import cast

from operations.vocabulary import COUNTRY_CODES

LANGUAGES_FOLDER = Path(__file__).parent / "texts_languages"
DEFAULT_LANGUAGE = "en"
SHOWN_GIGABYTE_MB = 1000
SHOWN_MEGABYTE_BYTES = 1_000_000


class LanguageTexts:
    """One language. A key is `section.name`."""

    def __init__(self, language: str, words: Mapping[str, str]) -> None:
        self.language, self.words = language, words

    def say(self, key: str, **facts: object) -> str:
        """The text, with these facts in its places."""
        return self.words[key].format(**facts)

    def count(self, key: str, number: int, **facts: object) -> str:
        """A text that differs between one and many: `..._one` and `..._many`."""
        return self.words[f"{key}_one" if number == 1 else f"{key}_many"].format(count=self.whole(number), **facts)

    def whole(self, number: int) -> str:
        return f"{number:,}".replace(",", self.words["format.thousands"])

    def plain_number(self, number: float) -> str:
        """A number that is no sum: the number of an account, or days with a tenth."""
        return f"{number:.1f}".removesuffix(".0").replace(".", self.words["format.decimal"])

    def money(self, amount: int, currency: str) -> str:
        """An amount in minor units; each currency of a shop has hundredths."""
        whole, rest = divmod(amount, 100)
        figure = f"{self.whole(whole)}{self.words['format.decimal']}{rest:02d}"
        symbol = self.words.get(f"currencies.{currency.upper()}", f"{currency.upper()}\u00a0")
        return self.words["format.money"].format(symbol=symbol, amount=figure).strip()

    def data(self, mb: float) -> str:
        """An amount of data, in megabytes of 10^6 bytes."""
        unit, figure = ("MB", round(mb, 1)) if mb < SHOWN_GIGABYTE_MB else ("GB", round(mb / SHOWN_GIGABYTE_MB, 2))
        text = f"{figure:,.2f}".rstrip("0").rstrip(".")
        signs = str.maketrans({",": self.words["format.thousands"], ".": self.words["format.decimal"]})
        return f"{text.translate(signs)}\u00a0{unit}"

    def bytes(self, count: int) -> str:
        """An amount of data, in bytes."""
        return self.data(count / SHOWN_MEGABYTE_BYTES)

    def days(self, count: int) -> str:
        """How long something is good for."""
        return self.count("format.days", count)

    def day(self, moment: float | str) -> str:
        """The day of Unix seconds or an RFC 3339 moment."""
        when = datetime_to_show(moment)
        months = self.words["format.months"].split()
        return self.words["format.day"].format(day=when.day, month=months[when.month - 1], year=when.year)

    def moment(self, moment: float | str) -> str:
        when = datetime_to_show(moment)
        return self.words["format.moment"].format(day=self.day(moment), time=f"{when:%H:%M}")

    def country(self, code: str) -> str:
        """The name of the country with this code (ISO 3166-1 alpha-2); `code` itself where there is no such country."""
        return self.words.get(f"countries.{code}") or country_names(self.language).get(code, code)


def datetime_to_show(value: float | str) -> datetime:
    """The moment of `value`: Unix seconds, or RFC 3339 text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(int(value), UTC)


@cache
def country_names(language: str) -> Mapping[str, str]:
    """The name of each country in a language, by its code, as CLDR has it."""
    from babel import Locale

    territories = cast(Mapping[str, str], Locale.parse(language).territories)
    return {code: territories[code] for code in COUNTRY_CODES}


@cache
def spoken_languages() -> Sequence[str]:
    """The languages that have a file, sorted by name after English, which everybody else is shown."""
    found = sorted(file.stem for file in LANGUAGES_FOLDER.glob("*.toml"))
    return sorted(found, key=lambda language: language != DEFAULT_LANGUAGE)


def texts_in(language: str) -> LanguageTexts:
    """The texts of `language`, or of English where there is no file of it."""
    return read_language_file(language if language in spoken_languages() else DEFAULT_LANGUAGE)


@cache
def read_language_file(language: str) -> LanguageTexts:
    with (LANGUAGES_FOLDER / f"{language}.toml").open("rb") as file:
        sections: Mapping[str, Mapping[str, str]] = tomllib.load(file)
    return LanguageTexts(language, {f"{section}.{name}": text for section, names in sections.items() for name, text in names.items()})
