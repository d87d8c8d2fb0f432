"""What every composite answers: when and how it was made, what was looked into, what is missing, and the figures themselves."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Generic, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from registry.policy import stamp

T = TypeVar("T")
UNLISTED = "The charging system's lists did not show every line; those it left out are in no figure."


class Factor(TypedDict):
    """One part of a score."""

    name: Annotated[str, Field(description="What was looked at")]
    value: Annotated[float, Field(description="What was seen, in the unit that `name` says")]
    weight: Annotated[float, Field(description="Points it adds to the score; the weights of a score add up to it")]


class Incomplete(TypedDict):
    """What the figures leave out."""

    lines: Annotated[int, Field(description="Lines that nothing could be read of, or that the time did not suffice for")]
    reasons: Annotated[list[str], Field(description="Why, a sentence each")]


class Finding(TypedDict, Generic[T]):
    """A composite's answer. Figures are estimates of what the charging system and our call records told at `generated_at`."""

    generated_at: Annotated[str, Field(description="RFC 3339, UTC")]
    sampled: Annotated[int, Field(description="Lines that were looked into")]
    of: Annotated[int, Field(description="Lines there are")]
    method: Annotated[str, Field(description="How the figures were made, in a sentence")]
    incomplete: Annotated[Incomplete | None, Field(description="What is missing; null: nothing")]
    data: T


def gaps(*, failed: int = 0, left: int = 0, unlisted: bool = False, others: Sequence[str] = ()) -> Incomplete | None:
    """What is missing: lines that could not be read, that were left for want of time, that no list shows; `others` are sentences."""
    reasons: list[str] = []
    if failed:
        reasons.append(f"The charging system did not answer for {failed} lines.")
    if left:
        reasons.append(f"{left} lines were not looked into: the time was over, or too many reads failed; ask again, what was read is kept.")
    if unlisted:
        reasons.append(UNLISTED)
    reasons += others
    return {"lines": failed + left, "reasons": reasons} if reasons else None


def finding(data: T, *, now: float, sampled: int, of: int, method: str, incomplete: Incomplete | None = None) -> Finding[T]:
    """The answer around the figures."""
    return {"generated_at": stamp(now), "sampled": sampled, "of": of, "method": method, "incomplete": incomplete, "data": data}


def score_of(weights: Mapping[str, tuple[float, float]]) -> tuple[float, list[Factor]]:
    """A score of factors: name to (what was seen, points). Each is rounded first, so that the shown weights add up to the shown score."""
    factors: list[Factor] = [
        {"name": name, "value": round(value, 3), "weight": round(weight, 1)} for name, (value, weight) in weights.items()
    ]
    shown: Sequence[Factor] = [factor for factor in factors if factor["weight"]]
    return round(sum(factor["weight"] for factor in shown), 1), list(shown)
