"""Texts of others as a page shows them: without characters that hide, or that turn the text around them (security.md, abuse case 34)."""

import re
import unicodedata

LONGEST = 200
SPACE = re.compile("[ \t\n\r\f\v]+")  # not the one that breaks no line
JOINERS = frozenset("\u200c\u200d")  # written languages and pictures need them
BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol that look like a space


def plain(text: str, longest: int = LONGEST) -> str:
    """One line of what can be seen."""
    kept = "".join(" " if blank(character) else character for character in text if not hidden(character))
    line = SPACE.sub(" ", kept).strip()
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def blank(character: str) -> bool:
    """Whether it is a space, or as good as one."""
    return character in BLANK or unicodedata.category(character) in ("Cc", "Zl", "Zp")


def hidden(character: str) -> bool:
    """Formats (bidi and zero-width marks among them), surrogates, private use, unassigned."""
    return unicodedata.category(character) in ("Cf", "Cs", "Co", "Cn") and character not in JOINERS
