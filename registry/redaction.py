"""What of a text is passed on: masked by pattern in every log line and echoed input (the second layer; docs/security.md), and for a
model without what a person would not see."""

import re
from collections.abc import Iterable
from typing import cast

from registry.characters import HIDDEN_CHARACTER

RedactionPatterns = tuple[tuple[re.Pattern[str], str], ...]
SECRET_PATTERNS: RedactionPatterns = (
    (re.compile(r"ak_[A-Za-z0-9]{8,}"), "ak_***"),
    (re.compile(r"whsec_[A-Za-z0-9+/=_-]{8,}"), "whsec_***"),
    (re.compile(r"\b(rt|ac|ar|cs)_[A-Za-z0-9_-]{43}"), r"\1_***"),
    (re.compile(r"(?i)ord_[0-9a-z]{22,26}"), "ord_***"),  # whoever has an order's token has its eSIM; also behind %2F, and cut short
    (re.compile(r"\b(tuc)_([0-9a-z]{4})[0-9a-z]{22}\b"), r"\1_\2***"),
    (re.compile(r"(?i)bearer\s+[^\s,;\"']+"), "Bearer ***"),
    (re.compile(r"(?i)\b((?:access_)?token|key|secret|code)=[^&\s\"']+"), r"\1=***"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), "jwt ***"),
    (re.compile(r"(?:LPA:)?1\$[A-Za-z0-9.-]+\$[A-Za-z0-9$-]*"), "LPA:1$***"),
    (re.compile(r"\bTEST(?:-[A-Z0-9]{4}){4}\b"), "TEST-***"),
)
LINE_PATTERNS: RedactionPatterns = (
    (re.compile(r"\b(89\d{4})\d{8,12}(\d{4})\b"), r"\1***\2"),
    (re.compile(r"(?<![\w.])\d{15}(?![\w.])"), "***imsi***"),
    (re.compile(r"(?<![\w+])\+[1-9]\d{6,14}\b"), "+***"),
)
MAIL_ADDRESS_PATTERNS: RedactionPatterns = ((re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"), "***@***"),)
REDACTION_PATTERNS = (*SECRET_PATTERNS, *LINE_PATTERNS, *MAIL_ADDRESS_PATTERNS)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without anything that looks like a secret or a person, and without the given secrets."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return redact_patterns(text, REDACTION_PATTERNS)


def redact_patterns(text: str, patterns: RedactionPatterns) -> str:
    """The text with what the patterns find replaced, one after the other."""
    for pattern, shown in patterns:
        text = pattern.sub(shown, text)
    return text


READABLE_CHARACTERS_LIMIT = 2000
"""Characters of one string: a longer one is a way to drown a model's other words, not a name or a note to act on."""


def clean_texts(value: object) -> object:
    """The value with clean strings; upstream and customers' texts are for people, never instructions."""
    if isinstance(value, str):
        return readable_text(value)
    if isinstance(value, dict):
        return {readable_text(name): clean_texts(part) for name, part in cast(dict[str, object], value).items()}
    if isinstance(value, list):
        return [clean_texts(part) for part in cast(list[object], value)]
    return value


def readable_text(text: str) -> str:
    """`text` without invisible characters, cut at 2000 characters. A cut text says so, so that half of it is never written back."""
    text = HIDDEN_CHARACTER.sub("", text)
    return (
        text
        if len(text) <= READABLE_CHARACTERS_LIMIT
        else f"{text[:READABLE_CHARACTERS_LIMIT]}… [{READABLE_CHARACTERS_LIMIT} of {len(text)} characters; HTTP answers all]"
    )
