"""Masking by pattern: the second layer behind every log line and every echoed input (security.md 3.18)."""

import re
from collections.abc import Iterable

Patterns = tuple[tuple[re.Pattern[str], str], ...]
SECRETS: Patterns = (
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
LINES: Patterns = (
    (re.compile(r"\b(89\d{4})\d{8,12}(\d{4})\b"), r"\1***\2"),
    (re.compile(r"(?<![\w.])\d{15}(?![\w.])"), "***imsi***"),
    (re.compile(r"(?<![\w+])\+[1-9]\d{6,14}\b"), "+***"),
)
ADDRESSES: Patterns = ((re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"), "***@***"),)
PATTERNS = (*SECRETS, *LINES, *ADDRESSES)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without anything that looks like a secret or a person, and without the given secrets."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return substituted(text, PATTERNS)


def substituted(text: str, patterns: Patterns) -> str:
    """The text with what the patterns find replaced, one after the other."""
    for pattern, shown in patterns:
        text = pattern.sub(shown, text)
    return text
