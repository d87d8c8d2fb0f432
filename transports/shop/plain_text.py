"""Texts of others as a page shows them: without characters that hide, or that turn the text around them (security.md, abuse case 34)."""

import re
import unicodedata

LONGEST = 200
SPACE = re.compile("[ \t\n\r\f\v]+")  # not the one that breaks no line
JOINERS = frozenset("\u200c\u200d")  # written languages and pictures need them
BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol that look like a space
ODD = re.compile(f"[{''.join(sorted(BLANK))}]|  ")


def plain(text: str, longest: int = LONGEST) -> str:
    """One line of what can be seen."""
    if text.isprintable() and ODD.search(text) is None:  # nearly every text: a page of many plans has a megabyte of them
        return cut(text.strip(), longest)
    kept = "".join(" " if blank(character) else character for character in text if not hidden(character))
    return cut(SPACE.sub(" ", kept).strip(), longest)


def cut(line: str, longest: int) -> str:
    """Not longer than that, and it shows."""
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def blank(character: str) -> bool:
    """Whether it is a space, or as good as one."""
    return character in BLANK or unicodedata.category(character) in ("Cc", "Zl", "Zp")


def hidden(character: str) -> bool:
    """Formats (bidi and zero-width marks among them), surrogates, private use, unassigned."""
    return unicodedata.category(character) in ("Cf", "Cs", "Co", "Cn") and character not in JOINERS
