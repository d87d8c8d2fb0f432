"""A refusal in the words of a page, for somebody who does not read the API's documents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from registry.errors import Refusal

PROBLEM_WORDS: Mapping[str, tuple[str, str]] = {
    "role_required": ("Only admins of your organisation may do this", "Ask one of them; the page Members names them"),
    "organization_required": ("You belong to no organisation yet", "Sign up to make one, or ask a colleague to invite you"),
    "org_not_connected": ("Your organisation is not connected yet", "Connect it in step 2 of the page Set up"),
    "quota_exceeded": (
        "Your organisation has used up what it may do today",
        "It goes on at midnight UTC; the page Tiers shows larger ones",
    ),
    "upgrade_required": ("The tier or role that you have does not carry this", "The page Tiers shows which one does"),
}
"""Text and hint of refusals whose own words are for programs, by code."""
MORE_PROBLEMS = re.compile(r" \(and [0-9]+ more\)$")
FOR_PROGRAMS = re.compile(r"[a-z]+_[a-z]|/v1/|\b(?:HTTP|GET|POST|PUT|PATCH|DELETE|call)\b|`")
"""What a hint for somebody before a page does not speak of: operations, requests, the command line."""


@dataclass(frozen=True, slots=True)
class PageProblem:
    """`field` is the one at fault, where it is one."""

    status: int
    text: str
    hint: str = ""
    field: str = ""
    code: str = ""


def problem_of(refusal: Refusal) -> PageProblem:
    """A refusal in the words of a page: beside its field, a text need not name it."""
    code, field = refusal.error_code, refusal.param or ""
    if code == "rate_limited":
        return PageProblem(refusal.status, f"Too many tries; try again in {waiting_time(int(refusal.headers['Retry-After']))}", code=code)
    if code in PROBLEM_WORDS:
        return PageProblem(refusal.status, *PROBLEM_WORDS[code], field, code)
    text, more = MORE_PROBLEMS.subn("", refusal.message.removeprefix(f"{field}: ") if field else refusal.message)
    hint = "" if FOR_PROGRAMS.search(refusal.hint or "") else refusal.hint or ""
    if more:
        hint = f"{hint.removesuffix('.')}. Another field is to be mended, too".removeprefix(". ")
    return PageProblem(refusal.status, text[:1].upper() + text[1:], hint, field, code)


def waiting_time(seconds: int) -> str:
    number, unit = (seconds, "second") if seconds < 60 else (-(-seconds // 60), "minute")
    return f"{number} {unit}" + ("s" if number > 1 else "")
