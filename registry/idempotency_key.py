"""The spellings of an idempotency key: bare, or in quotes as a string of a structured field (RFC 9651 section 3.3.3)."""

import re

KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
STRING = re.compile(r'"(?:[ !\x23-\x5b\x5d-\x7e]|\\["\\])*"', re.ASCII)
ESCAPED = re.compile(r'\\(["\\])')
LONGEST = 2 + 2 * 255
"""Characters of the longest spelling: 255, each escaped, in quotes."""


def content(text: str) -> str | None:
    """The text that a well-formed string holds; None when `text` is not one."""
    return ESCAPED.sub(r"\1", text[1:-1]) if text[:1] == '"' and STRING.fullmatch(text) else None


def spellings(text: str) -> tuple[str, ...]:
    """`text` itself, and after it what its quotes hold. The last one is the key: all that have the same last one are the same key.

    Choice: quotes inside quotes come off too. Were they kept, `"a"` would be the key `a` on one day, and on the day after somebody has
    sent `"\\"a\\""`, another one.
    """
    found, inner = [text], content(text)
    while inner is not None:
        found.append(inner)
        inner = content(inner)
    return tuple(found)


def is_key(text: str) -> bool:
    """Whether `text` is a key as it is, or in quotes holds one. What was stored before quotes were read is a key as it is."""
    return KEY.fullmatch(text) is not None or (len(text) <= LONGEST and KEY.fullmatch(spellings(text)[-1]) is not None)
