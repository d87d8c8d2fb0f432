"""What is wrong with what somebody sent, as the page says it."""

from collections.abc import Mapping
from dataclasses import dataclass

from registry.errors import Refusal


@dataclass(frozen=True, slots=True)
class Problem:
    """`field` is the one at fault, where it is one."""

    status: int
    text: str
    hint: str = ""
    field: str = ""
    code: str = ""


def problem_of(refusal: Refusal) -> Problem:
    """A refusal in the words of a page."""
    return told(refusal.status, refusal.body(""))


def told(status: int, body: Mapping[str, object]) -> Problem:
    """An error body in the words of a page: beside its field, a text need not name it."""
    field, text = str(body.get("param") or ""), str(body.get("error") or body.get("message") or "This did not work")
    if field:
        text = text.removeprefix(f"{field}: ")
    return Problem(status, text[:1].upper() + text[1:], str(body.get("hint") or ""), field, str(body.get("code") or ""))
