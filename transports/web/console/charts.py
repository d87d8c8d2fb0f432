"""Small charts as SVG: geometry by attributes alone, so that the strict content policy lets them through, and a text for each figure."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

CHART_WIDTH, CHART_HEIGHT, LABEL_HEIGHT = 640, 140, 18
BAR_SHARE = 0.72
LETTER_WIDTH, LINE_HEIGHT, MOST_LINES = 10, 20, 3
"""Of a label on a phone, where the words of a chart are largest."""


class ChartPoint(NamedTuple):
    """One bar: its label below, its value, what that comes to in words, and the whole name where the label is short for it."""

    label: str
    value: float
    figure: str
    name: str = ""

    @property
    def words(self) -> str:
        """What is read for it."""
        return f"{self.name or self.label}: {self.figure}"


def bar_chart(points: Sequence[ChartPoint], title: str) -> Markup:
    """A bar for each point, with `title` for who hears it; nothing where there are no points. Every seventh label is drawn when many.

    The figures stand above their bars where there is room for all of them.
    """
    if not points:
        return Markup("")
    highest = max((point.value for point in points), default=0) or 1
    step = CHART_WIDTH / len(points)
    every = 1 if len(points) <= 12 else -(-len(points) // 8)
    shown = [label_lines(point.label, step * every) if place % every == 0 else list[str]() for place, point in enumerate(points)]
    floor = CHART_HEIGHT - LABEL_HEIGHT - LINE_HEIGHT * (max(map(len, shown)) - 1)
    figures = all(len(point.figure) * LETTER_WIDTH <= step for point in points)
    most, drawn = floor - LINE_HEIGHT if figures else floor, list[str]()
    for place, point in enumerate(points):
        height = max(0.0, point.value) / highest * most
        left, top = place * step + step * (1 - BAR_SHARE) / 2, floor - height
        drawn.append(
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{step * BAR_SHARE:.1f}" height="{height:.1f}" rx="2">'
            f"<title>{escape(point.words)}</title></rect>"
        )
        middle = f'x="{place * step + step / 2:.1f}"'
        if figures:
            drawn.append(f'<text class="tick" {middle} y="{top - 5:.1f}" text-anchor="middle">{escape(point.figure)}</text>')
        lines = enumerate(shown[place])
        words = "".join(f'<tspan {middle} dy="{1.1 * line}em">{escape(text)}</tspan>' for line, text in lines)
        if words:
            drawn.append(f'<text class="tick" {middle} y="{floor + LABEL_HEIGHT - 4}" text-anchor="middle">{words}</text>')
    return Markup(
        f'<svg class="chart" role="img" aria-label="{escape(title)}" viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}">{"".join(drawn)}</svg>'
    )


def label_lines(label: str, width: float) -> list[str]:
    """A label in as many lines as it needs where it has so much `width`, broken between words alone."""
    return textwrap.wrap(label, max(1, int(width / LETTER_WIDTH)), break_long_words=False, break_on_hyphens=False)[:MOST_LINES] or [""]
