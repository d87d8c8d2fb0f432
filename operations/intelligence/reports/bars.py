"""Charts of bars: upright ones side by side along time, lying ones under their names for countries, words and lines."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from operations.intelligence.reports.axis import Scale, finite, scale_of, span_of
from operations.intelligence.reports.drawing import (
    COLOURS,
    PLOT_HEIGHT,
    PLOT_TOP,
    WHOLE_HEIGHT,
    Drawing,
    Mark,
    Plot,
    Rect,
    Text,
    along,
    cut,
    percent,
    pixels,
    ticks_of,
)
from operations.intelligence.reports.values import shown

MOST = 8
HEAD, THICK, GAP = 22, 11, 15
FILLED = 0.76
"""How much of its room an upright bar takes."""


class Part(NamedTuple):
    """From where to where a value goes."""

    row: int
    low: float
    high: float


def columns(plot: Plot) -> Drawing:
    """Upright bars, one place beside the other."""
    piles = [pile([row[at] for row in plot.rows], stacked=plot.stacked) for at in range(len(plot.names))]
    scale = scale_of(ends(piles), whole=plot.whole)
    room = 1 / len(plot.names)
    rects = [column(plot, scale, at, part, room) for at, parts in enumerate(piles) for part in parts]
    texts = along([room * (at + 0.5) for at in range(len(plot.names))], plot.names)
    return Drawing("columns", WHOLE_HEIGHT, ticks_of(plot, scale), rects, texts=texts, legend=plot.legend)


def column(plot: Plot, scale: Scale, at: int, part: Part, room: float) -> Rect:
    """One of them."""
    wide = room * FILLED / (1 if plot.stacked else len(plot.rows))
    left = room * (at + (1 - FILLED) / 2) + (0 if plot.stacked else wide * part.row)
    foot, top = (PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(end)) for end in (part.low, part.high))
    colour, told = part.row % COLOURS, plot.told(part.row, at)
    return Rect(percent(left), pixels(top), percent(wide), pixels(max(0.0, foot - top)), colour, told)


def bars(plot: Plot) -> Drawing:
    """Lying bars, each under its name. Only the first of them; the table has all."""
    count = min(len(plot.names), MOST)
    piles = [pile([row[at] for row in plot.rows], stacked=plot.stacked) for at in range(count)]
    scale = span_of([0.0, *ends(piles)])
    thick = THICK * (1 if plot.stacked else len(plot.rows))
    every = HEAD + thick + GAP
    tops = [every * at + HEAD for at in range(count)]
    zero = percent(scale.at(0))
    return Drawing(
        "bars",
        every * count - GAP + 2,
        rects=[bar(plot, scale, at, part, tops[at]) for at, parts in enumerate(piles) for part in parts],
        texts=[text for at in range(count) for text in captions(plot, at, tops[at])],
        tracks=[Rect("0%", pixels(top), "100%", pixels(thick), 0, "") for top in tops],
        marks=[Mark(zero, pixels(top - 2), pixels(top + thick + 2)) for top in tops] if scale.low < 0 else [],
        legend=plot.legend,
        left_out=len(plot.names) - count,
    )


def bar(plot: Plot, scale: Scale, at: int, part: Part, top: float) -> Rect:
    """One of them."""
    low, high = scale.at(part.low), scale.at(part.high)
    y = top if plot.stacked else top + THICK * part.row
    return Rect(percent(low), pixels(y), percent(high - low), pixels(THICK), part.row % COLOURS, plot.told(part.row, at))


def captions(plot: Plot, at: int, top: float) -> Iterator[Text]:
    """What stands over a bar: its name, and its value."""
    yield Text("0%", pixels(top - 8), "start", cut(plot.names[at]))
    yield Text("100%", pixels(top - 8), "end", total(plot, at), True)


def total(plot: Plot, at: int) -> str:
    """The value, or what the parts of a pile add up to; several bars of one place have theirs in the table."""
    values = [value for row in plot.rows if (value := row[at]) is not None]
    if len(plot.rows) > 1 and not plot.stacked:
        return ""
    return shown(plot.chart["kind"], finite(sum(values)) if values else None)


def pile(values: Sequence[float | None], *, stacked: bool) -> list[Part]:
    """Each value from nothing, or from the end of the one before; losses go down."""
    up = down = 0.0
    found: list[Part] = []
    for row, value in enumerate(values):
        if value is None:
            continue
        if value >= 0:
            found.append(Part(row, up, up + value))
            up += value if stacked else 0
        else:
            found.append(Part(row, down + value, down))
            down += value if stacked else 0
    return found


def ends(piles: Sequence[Sequence[Part]]) -> list[float]:
    """All numbers that have to have room."""
    return [end for parts in piles for part in parts for end in (part.low, part.high)]
