"""Cards about the fleet: written by a model from measured figures and held to them, or made of the figures alone."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.assistant.figures import Gathered, Json, Kind, Measured, MeasuredFigure, members

MOST_CARDS = 6
LONGEST_TITLE, LONGEST_TEXT = 80, 400
NUMBER = re.compile(r"[0-9]+(?:[.,'\u00a0\u202f][0-9]+)*")
SPACED = re.compile(r"(?<=[0-9])[ \u2009](?=[0-9]{3}(?![0-9]))")
# Figures that are spelled out cannot be held to what was measured. Choice: English words only; `one` is mostly a pronoun.
SPELLED = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?"
    r"|thousands?|millions?|billions?|dozens?|half|third|quarter|twice|double[sd]?|triple[sd]?)\b",
    re.IGNORECASE,
)
ELSEWHERE = re.compile(r"://|www\.|@|[<>`]")
INSTRUCTION = """\
You write short cards for a reseller of mobile data about their fleet, from the measured figures in the user's message and nothing else.
Answer with one JSON object: {"cards": [{"title", "text", "kind", "figures"}]}, at most 6 cards, no other text.
title: at most 80 characters. text: one or two sentences, at most 400 characters, what the figures mean and what to look at.
kind: one of the kinds in the message. figures: the names of the figures that the card is about.
Write every number with digits and exactly as it was measured: no sums, percentages or roundings of your own, no links, no markup."""


class Card(TypedDict):
    """One thing to know."""

    title: Annotated[str, Field(description="At most 80 characters")]
    text: Annotated[str, Field(description="One or two sentences")]
    kind: Annotated[Kind, Field(description="What it is about: health, fleet, stock, balance or note")]
    figures: Annotated[list[MeasuredFigure], Field(description="The measured figures behind it")]


def measured_cards(gathered: Gathered) -> list[Card]:
    """The figures as they are. Where there are none, a card says so."""
    cards: list[Card] = [
        {"title": each.title, "text": sentence(each.figures), "kind": each.kind, "figures": each.figures}
        for each in gathered.measured
        if each.figures
    ]
    if gathered.refused or not cards:
        cards.append(missing(gathered))
    return cards


def sentence(figures: Sequence[MeasuredFigure]) -> str:
    """The figures in a row."""
    parts = [f"{figure['name'].replace('_', ' ')}: {plain(figure['value'])} {figure['unit']}".rstrip() for figure in figures[:8]]
    return "; ".join(parts) + "."


def missing(gathered: Gathered) -> Card:
    """What could not be measured, and why, in words of ours."""
    why = ", ".join(f"{operation} ({code})" for operation, code in gathered.refused.items())
    title = "Some figures are missing" if gathered.measured else "No figures"
    text = f"These operations did not answer: {why}. Call them to see what is wrong." if why else "There is nothing to measure."
    return {"title": title, "text": text, "kind": "note", "figures": []}


def question(gathered: Gathered) -> str:
    """What the model is given."""
    shown = [{"kind": each.kind, "title": each.title, "figures": each.figures} for each in gathered.measured]
    return orjson.dumps({"kinds": sorted({each.kind for each in gathered.measured}), "measured": shown}).decode()


def written_cards(text: str, measured: Sequence[Measured]) -> list[Card] | None:
    """The model's cards, if they are cards and every number in them was measured; else none of them."""
    try:
        found = cast(object, orjson.loads(text[text.find("{") : text.rfind("}") + 1]))
    except orjson.JSONDecodeError:
        return None
    given = members(found).get("cards")
    if not isinstance(given, list) or not 1 <= len(cast("list[object]", given)) <= MOST_CARDS:
        return None
    cards = [card(members(each), measured) for each in cast("list[object]", given)]
    whole = [each for each in cards if each is not None]
    return whole if len(whole) == len(cards) else None


def card(given: Json, measured: Sequence[Measured]) -> Card | None:
    """One card, if it is one."""
    title, text, kind, names = (given.get(name) for name in ("title", "text", "kind", "figures"))
    of_kind: dict[str, Kind] = {each.kind: each.kind for each in measured}
    if not (isinstance(title, str) and isinstance(text, str) and isinstance(kind, str) and kind in of_kind and isinstance(names, list)):
        return None
    title, text = title.strip(), text.strip()
    wanted = [name for name in cast("list[object]", names) if isinstance(name, str)]
    figures = [figure for each in measured for figure in each.figures if figure["name"] in wanted]
    fits = 1 <= len(title) <= LONGEST_TITLE and 1 <= len(text) <= LONGEST_TEXT and bool(figures)
    if not fits or not all(holds(part, measured) for part in (title, text)):
        return None
    return Card(title=title, text=text, kind=of_kind[kind], figures=figures)


def holds(text: str, measured: Sequence[Measured]) -> bool:
    """Every number in the text is one that was measured, and the text leads nowhere."""
    if ELSEWHERE.search(text) or SPELLED.search(text) or any(c.isnumeric() and not c.isascii() for c in text):
        return False
    known = {value for each in measured for figure in each.figures for value in values_of(figure)}
    return all(readings(found) & known for found in NUMBER.findall(SPACED.sub("", text)))


def values_of(figure: MeasuredFigure) -> Iterator[Decimal]:
    """A figure's value and its usual roundings, and the numbers in its name."""
    exact = Decimal(str(figure["value"])).normalize()
    yield from (abs(value).normalize() for value in (exact, round(exact, 2), round(exact, 1), round(exact, 0)))
    yield from (Decimal(found).normalize() for found in re.findall(r"[0-9]+", figure["name"]))


def readings(text: str) -> set[Decimal]:
    """What a number may mean: its separators may group thousands, and the last one may begin the decimals."""
    parts = re.split(r"[^0-9]", text)
    grouped = len(parts) > 1 and all(len(part) == 3 for part in parts[1:])
    found = {"".join(parts)} if len(parts) == 1 or grouped else set[str]()
    if len(parts) > 1 and all(len(part) == 3 for part in parts[1:-1]):
        found.add("".join(parts[:-1]) + "." + parts[-1])
    return {value for each in found if (value := decimal(each)) is not None}


def decimal(text: str) -> Decimal | None:
    """The number, if it is one of a sane length."""
    try:
        return Decimal(text).normalize() if len(text) <= 30 else None
    except InvalidOperation:
        return None


def plain(value: float) -> str:
    """A number without a point where it has no decimals."""
    return str(int(value)) if value == int(value) else str(value)
