"""A picture of a chart: what stands where. Across is told in percent and down in pixels, so that texts keep their size on any screen."""

from collections.abc import Sequence
from typing import NamedTuple

from operations.intelligence.reports.axis import Scale
from operations.intelligence.reports.values import short, shown
from operations.intelligence.sheet import Chart

PLOT_TOP, PLOT_HEIGHT, PLOT_FOOT = 10, 190, 26
WHOLE_HEIGHT = PLOT_TOP + PLOT_HEIGHT + PLOT_FOOT
COLOURS = 6
LABELS = 5
SHORT_NAME = 8
LONGEST_LABEL = 34


class Rect(NamedTuple):
    """A bar; `x` and `width` in percent."""

    x: str
    y: str
    width: str
    height: str
    colour: int
    told: str


class Text(NamedTuple):
    """`x` in percent."""

    x: str
    y: str
    anchor: str
    text: str
    strong: bool = False


class Path(NamedTuple):
    """A line, or the ground under it."""

    d: str
    colour: int
    filled: bool


class Dot(NamedTuple):
    """One value that stands alone, or the last of a line."""

    x: str
    y: str
    colour: int


class Tick(NamedTuple):
    """A line across with its number."""

    y: str
    text: str
    zero: bool


class Mark(NamedTuple):
    """A short upright line, from one height to another."""

    x: str
    y: str
    foot: str


class Latest(NamedTuple):
    """The last value of a line, and when it was."""

    value: str
    name: str


class Drawing(NamedTuple):
    """A picture. `legend` names the colours, where there are several; `left_out` places are in the table only."""

    shape: str
    height: int
    ticks: Sequence[Tick] = ()
    rects: Sequence[Rect] = ()
    paths: Sequence[Path] = ()
    dots: Sequence[Dot] = ()
    texts: Sequence[Text] = ()
    tracks: Sequence[Rect] = ()
    marks: Sequence[Mark] = ()
    latest: Latest | None = None
    legend: Sequence[str] = ()
    left_out: int = 0


class Plot(NamedTuple):
    """A chart's numbers, made drawable: a row of values for each series, as long as there are places."""

    chart: Chart
    names: Sequence[str]
    rows: Sequence[Sequence[float | None]]

    @property
    def stacked(self) -> bool:
        """The series of a place add up."""
        return self.chart["shape"] == "stacked"

    @property
    def values(self) -> list[float]:
        """All that there is to draw."""
        return [value for row in self.rows for value in row if value is not None]

    @property
    def whole(self) -> bool:
        """Only whole things are counted."""
        return self.chart["kind"] in ("number", "days", "bytes") and all(value == int(value) for value in self.values)

    @property
    def legend(self) -> list[str]:
        """What the colours mean, where there are several."""
        kind = self.chart["series_kind"]
        return [shown(kind, series["label"]) for series in self.chart["series"]] if len(self.rows) > 1 else []

    def told(self, row: int, at: int) -> str:
        """A bar in words."""
        series = f", {self.legend[row]}" if self.legend else ""
        return f"{self.names[at]}{series}: {shown(self.chart['kind'], self.rows[row][at])}"


def ticks_of(plot: Plot, scale: Scale) -> list[Tick]:
    """The lines across."""
    return [
        Tick(pixels(PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(value))), short(plot.chart["kind"], value), zero=value == 0)
        for value in scale.ticks
    ]


def along(places: Sequence[float], names: Sequence[str]) -> list[Text]:
    """A few of the names under the plot, evenly chosen, so that none stands on another."""
    count = LABELS if max(map(len, names)) <= SHORT_NAME else LABELS - 2
    step = max(1, -(-len(names) // count))
    y = pixels(WHOLE_HEIGHT - 7)
    chosen = range(0, len(names), step)
    return [Text(percent(places[at]), y, anchor(places[at]), cut(names[at], 16)) for at in chosen]


def anchor(x: float) -> str:
    """A name at the right edge stays inside; at the left one there is room beside the numbers."""
    return "end" if x > 0.98 else "middle"


def percent(share: float) -> str:
    """As SVG writes it."""
    return f"{share * 100:.2f}%"


def pixels(value: float) -> str:
    """As SVG writes it."""
    return f"{value:.1f}"


def cut(text: str, longest: int = LONGEST_LABEL) -> str:
    """What has room."""
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"
