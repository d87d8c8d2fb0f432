"""Countries in the order of their names, for people who do not know their two letters."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from operations.languages import LanguageTexts


def countries_by_name(codes: Iterable[str], texts: LanguageTexts) -> Sequence[tuple[str, str]]:
    """Code and name of each country, in the order of the names in the language of `texts`."""
    return sorted(((code, texts.country(code)) for code in codes), key=lambda each: name_sort_key(each[1]))


@lru_cache(maxsize=1024)
def name_sort_key(name: str) -> str:
    """Names in the order of their letters, marks left out."""
    return "".join(c for c in unicodedata.normalize("NFKD", name).casefold() if not unicodedata.combining(c))
