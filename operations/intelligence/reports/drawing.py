"""A picture of a chart: what stands where, and the scale beside it.

Across is told in percent and down in pixels, so that texts keep their size on any screen.
"""

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

from operations.intelligence.reports.sheet import Chart
from operations.intelligence.reports.values import format_short, format_value

AXIS_STEPS = 4
SMALLEST_AXIS_SPAN = 1e-9
AXIS_VALUE_LIMIT = 1e300


class AxisScale(NamedTuple):
    """From the lowest number to the highest."""

    low: float
    high: float
    ticks: Sequence[float]

    def at(self, value: float) -> float:
        """How far up it is, 0 to 1."""
        share = value / (self.high - self.low) - self.low / (self.high - self.low)
        return min(1.0, max(0.0, share))


def axis_scale(values: Sequence[float], *, whole: bool) -> AxisScale:
    """Round numbers around all of them, nothing among them; `whole`: nothing between whole numbers is counted."""
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    low, high = max(low, -AXIS_VALUE_LIMIT), min(high, AXIS_VALUE_LIMIT)
    if high - low < SMALLEST_AXIS_SPAN:
        high = low + 1
    step = axis_step((high - low) / AXIS_STEPS, whole=whole)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return AxisScale(first * step, last * step, [number * step for number in range(first, last + 1)])


def span_scale(values: Sequence[float]) -> AxisScale:
    """From the lowest to the highest, without numbers beside it."""
    low, high = max(min(values), -AXIS_VALUE_LIMIT), min(max(values), AXIS_VALUE_LIMIT)
    return AxisScale(low, high if high - low >= SMALLEST_AXIS_SPAN else low + 1, ())


def axis_step(rough: float, *, whole: bool) -> float:
    """The next of 1, 2, 2.5 and 5 times a power of ten."""
    power = 10.0 ** floor(log10(rough))
    step = next((factor * power for factor in (1, 2, 2.5, 5) if rough <= factor * power * (1 + 1e-9)), 10 * power)
    return max(1.0, float(ceil(step))) if whole and step < 10 else step


def drawable_number(value: float | None) -> float | None:
    """A number that can be drawn."""
    return None if value is None or not isfinite(value) else float(max(-AXIS_VALUE_LIMIT, min(AXIS_VALUE_LIMIT, value)))


PLOT_TOP, PLOT_HEIGHT, PLOT_FOOT = 10, 190, 26
CHART_HEIGHT = PLOT_TOP + PLOT_HEIGHT + PLOT_FOOT
CHART_COLOURS = 6
AXIS_LABEL_COUNT = 5
SHORT_LABEL_LENGTH = 8
LABEL_LENGTH_LIMIT = 34


class DrawnRect(NamedTuple):
    """A bar; `x` and `width` in percent."""

    x: str
    y: str
    width: str
    height: str
    colour: int
    title: str


class DrawnText(NamedTuple):
    """`x` in percent."""

    x: str
    y: str
    anchor: str
    text: str
    strong: bool = False


class DrawnPath(NamedTuple):
    """A line, or the ground under it."""

    d: str
    colour: int
    filled: bool


class DrawnDot(NamedTuple):
    """One value that stands alone, or the last of a line."""

    x: str
    y: str
    colour: int


class AxisTick(NamedTuple):
    """A line across with its number."""

    y: str
    text: str
    zero: bool


class DrawnMark(NamedTuple):
    """A short upright line, from one height to another."""

    x: str
    y: str
    foot: str


class LatestValue(NamedTuple):
    """The last value of a line, and when it was."""

    value: str
    name: str


class ChartDrawing(NamedTuple):
    """A picture. `legend` names the colours, where there are several; `left_out` places are in the table only."""

    shape: str
    height: int
    ticks: Sequence[AxisTick] = ()
    rects: Sequence[DrawnRect] = ()
    paths: Sequence[DrawnPath] = ()
    dots: Sequence[DrawnDot] = ()
    texts: Sequence[DrawnText] = ()
    tracks: Sequence[DrawnRect] = ()
    marks: Sequence[DrawnMark] = ()
    latest: LatestValue | None = None
    legend: Sequence[str] = ()
    left_out: int = 0


class ChartPlot(NamedTuple):
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
        return [format_value(kind, series["label"]) for series in self.chart["series"]] if len(self.rows) > 1 else []

    def describe(self, row: int, at: int) -> str:
        """A bar in words."""
        series = f", {self.legend[row]}" if self.legend else ""
        return f"{self.names[at]}{series}: {format_value(self.chart['kind'], self.rows[row][at])}"


def axis_ticks(plot: ChartPlot, scale: AxisScale) -> list[AxisTick]:
    """The lines across."""
    return [
        AxisTick(svg_pixels(PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(value))), format_short(plot.chart["kind"], value), zero=value == 0)
        for value in scale.ticks
    ]


def axis_labels(places: Sequence[float], names: Sequence[str]) -> list[DrawnText]:
    """A few of the names under the plot, evenly chosen, so that none stands on another."""
    count = AXIS_LABEL_COUNT if max(map(len, names)) <= SHORT_LABEL_LENGTH else AXIS_LABEL_COUNT - 2
    step = max(1, -(-len(names) // count))
    y = svg_pixels(CHART_HEIGHT - 7)
    chosen = range(0, len(names), step)
    return [DrawnText(svg_percent(places[at]), y, label_anchor(places[at]), cut_label(names[at], 16)) for at in chosen]


def label_anchor(x: float) -> str:
    """A name at the right edge stays inside; at the left one there is room beside the numbers."""
    return "end" if x > 0.98 else "middle"


def svg_percent(share: float) -> str:
    """As SVG writes it."""
    return f"{share * 100:.2f}%"


def svg_pixels(value: float) -> str:
    """As SVG writes it."""
    return f"{value:.1f}"


def cut_label(text: str, longest: int = LABEL_LENGTH_LIMIT) -> str:
    """What has room."""
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"
