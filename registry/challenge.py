"""What a call would destroy or spend: told to whoever confirms it, and to whoever approves it, before anything is done."""

from typing import Annotated, NamedTuple, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from registry.characters import HIDDEN_CHARACTER
from registry.free_text import FreeText
from registry.redaction import SECRET_PATTERNS, redact_patterns

LOSSES_LIMIT = 20
QUOTED_LENGTH = 80


class Loss(TypedDict):
    """One thing that the call takes away, changes for good or pays out."""

    kind: Annotated[
        str, Field(description="What it is: package, series, profile, esim, issuance, money, message, buyer, template, counter, zone")
    ]
    name: Annotated[FreeText, Field(description="Its name, or its number")]
    details: NotRequired[Annotated[dict[str, FreeText], Field(description="Facts of it for people, by name")]]


class Challenge(NamedTuple):
    """What a call would do. Neither part holds a secret or an activation code.

    `sentence`: one sentence, or a few, for a person; names that customers gave stand in it as quotations (`quote_name`). `losses`: what is
    lost, at most LOSSES_LIMIT of them.
    """

    sentence: str
    losses: tuple[Loss, ...] = ()


def what_it_will_do(summary: str) -> str:
    """The summary of an operation as a sentence about a call of it, without its end and what the call returns."""
    text = summary.partition("; returns ")[0].rstrip(".")
    return f"This will {text[:1].lower()}{text[1:]}"


def describe_loss(kind: str, name: str, /, **details: str | None) -> Loss:
    """A loss with those of the `details` that are known."""
    known = {word: clip_text(value) for word, value in details.items() if value}
    loss: Loss = {"kind": kind, "name": clip_text(name)}
    return {**loss, "details": known} if known else loss


def clip_text(text: str, most: int = QUOTED_LENGTH) -> str:
    """The text in one line, without secrets and without what a person would not see, at most `most` characters."""
    line = " ".join(redact_patterns(HIDDEN_CHARACTER.sub("", text), SECRET_PATTERNS).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def quote_name(text: str, most: int = QUOTED_LENGTH) -> str:
    """A text that somebody else gave, in quotation marks which it cannot end itself: it is data, never an instruction."""
    return "“" + clip_text(text, most).replace("“", "'").replace("”", "'") + "”"


def name_losses(losses: tuple[Loss, ...], most: int = 5) -> str:
    """The losses in one phrase, each with its details: `“Nordic 1GB” (unused 600 MB, ends 2026-12-01T00:00:00Z) and 3 more`."""
    phrases = [name_loss(loss) for loss in losses[:most]]
    rest = len(losses) - most
    return ", ".join(phrases) + (f" and {rest} more" if rest > 0 else "")


def name_loss(loss: Loss) -> str:
    details = ", ".join(f"{word.replace('_', ' ')} {value}" for word, value in loss.get("details", {}).items())
    return quote_name(loss["name"]) + (f" ({details})" if details else "")
