"""Charts as pictures: upright bars along days, lying bars for countries, words and lines, lines along time, and sparklines.

Horizontal positions are percentages and vertical ones pixels, so that texts keep their size on any screen.
"""

from collections.abc import Iterator, Sequence
from math import ceil, floor, isfinite, log10
from typing import NamedTuple, TypeAlias

from operations.intelligence.reports.redaction import format_place, format_short, format_value
from operations.intelligence.reports.sheet import Chart

AXIS_STEPS = 4
SMALLEST_AXIS_SPAN = 1e-9
AXIS_VALUE_LIMIT = 1e300


class AxisScale(NamedTuple):
    """From the lowest number to the highest."""

    low: float
    high: float
    ticks: Sequence[float]

    def at(self, value: float) -> float:
        """The height of `value` on the scale, 0 to 1."""
        share = value / (self.high - self.low) - self.low / (self.high - self.low)
        return min(1.0, max(0.0, share))


def axis_scale(values: Sequence[float], *, whole: bool) -> AxisScale:
    """A scale of round numbers around all `values`. `whole`: no steps between whole numbers."""
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    low, high = max(low, -AXIS_VALUE_LIMIT), min(high, AXIS_VALUE_LIMIT)
    if high - low < SMALLEST_AXIS_SPAN:
        high = low + 1
    step = axis_step((high - low) / AXIS_STEPS, whole=whole)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return AxisScale(first * step, last * step, [number * step for number in range(first, last + 1)])


def span_scale(values: Sequence[float]) -> AxisScale:
    """A scale from the lowest to the highest value, without numbers."""
    low, high = max(min(values), -AXIS_VALUE_LIMIT), min(max(values), AXIS_VALUE_LIMIT)
    return AxisScale(low, high if high - low >= SMALLEST_AXIS_SPAN else low + 1, ())


def axis_step(rough: float, *, whole: bool) -> float:
    """The next larger of 1, 2, 2.5 and 5 times a power of ten."""
    power = 10.0 ** floor(log10(rough))
    step = next((factor * power for factor in (1, 2, 2.5, 5) if rough <= factor * power * (1 + 1e-9)), 10 * power)
    return max(1.0, float(ceil(step))) if whole and step < 10 else step


def drawable_number(value: float | None) -> float | None:
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
        return self.chart["shape"] == "stacked"

    @property
    def values(self) -> list[float]:
        return [value for row in self.rows for value in row if value is not None]

    @property
    def whole(self) -> bool:
        return self.chart["kind"] in ("number", "days", "bytes") and all(value == int(value) for value in self.values)

    @property
    def legend(self) -> list[str]:
        """What the colours mean, where there are several series."""
        kind = self.chart["series_kind"]
        return [format_value(kind, series["label"]) for series in self.chart["series"]] if len(self.rows) > 1 else []

    def describe(self, row: int, at: int) -> str:
        series = f", {self.legend[row]}" if self.legend else ""
        return f"{self.names[at]}{series}: {format_value(self.chart['kind'], self.rows[row][at])}"


def axis_ticks(plot: ChartPlot, scale: AxisScale) -> list[AxisTick]:
    return [
        AxisTick(svg_pixels(PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(value))), format_short(plot.chart["kind"], value), zero=value == 0)
        for value in scale.ticks
    ]


def axis_labels(places: Sequence[float], names: Sequence[str]) -> list[DrawnText]:
    """Some of `names` under the plot, evenly chosen, so that none overlaps another."""
    count = AXIS_LABEL_COUNT if max(map(len, names)) <= SHORT_LABEL_LENGTH else AXIS_LABEL_COUNT - 2
    step = max(1, -(-len(names) // count))
    y = svg_pixels(CHART_HEIGHT - 7)
    # At the right edge a name is anchored by its end, so that it stays inside.
    anchors = ["end" if place > 0.98 else "middle" for place in places]
    return [DrawnText(svg_percent(places[at]), y, anchors[at], cut_label(names[at], 16)) for at in range(0, len(names), step)]


def svg_percent(share: float) -> str:
    return f"{share * 100:.2f}%"


def svg_pixels(value: float) -> str:
    return f"{value:.1f}"


def cut_label(text: str, longest: int = LABEL_LENGTH_LIMIT) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"


BAR_LIMIT = 8
BAR_HEAD, BAR_THICKNESS, BAR_GAP = 22, 11, 15
COLUMN_FILL = 0.76
"""How much of its room an upright bar takes."""


class BarPart(NamedTuple):
    """From where to where a value goes."""

    row: int
    low: float
    high: float


def column_chart(plot: ChartPlot) -> ChartDrawing:
    """Upright bars, place by place."""
    piles = [bar_parts([row[at] for row in plot.rows], stacked=plot.stacked) for at in range(len(plot.names))]
    scale = axis_scale(bar_ends(piles), whole=plot.whole)
    room = 1 / len(plot.names)
    rects = [column_rect(plot, scale, at, part, room) for at, parts in enumerate(piles) for part in parts]
    texts = axis_labels([room * (at + 0.5) for at in range(len(plot.names))], plot.names)
    return ChartDrawing("columns", CHART_HEIGHT, axis_ticks(plot, scale), rects, texts=texts, legend=plot.legend)


def column_rect(plot: ChartPlot, scale: AxisScale, at: int, part: BarPart, room: float) -> DrawnRect:
    wide = room * COLUMN_FILL / (1 if plot.stacked else len(plot.rows))
    left = room * (at + (1 - COLUMN_FILL) / 2) + (0 if plot.stacked else wide * part.row)
    foot, top = (PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(end)) for end in (part.low, part.high))
    colour, title = part.row % CHART_COLOURS, plot.describe(part.row, at)
    return DrawnRect(svg_percent(left), svg_pixels(top), svg_percent(wide), svg_pixels(max(0.0, foot - top)), colour, title)


def bar_chart(plot: ChartPlot) -> ChartDrawing:
    """Lying bars, each under its name. Only the first ones are drawn; the table has all."""
    count = min(len(plot.names), BAR_LIMIT)
    piles = [bar_parts([row[at] for row in plot.rows], stacked=plot.stacked) for at in range(count)]
    scale = span_scale([0.0, *bar_ends(piles)])
    thick = BAR_THICKNESS * (1 if plot.stacked else len(plot.rows))
    every = BAR_HEAD + thick + BAR_GAP
    tops = [every * at + BAR_HEAD for at in range(count)]
    zero = svg_percent(scale.at(0))
    return ChartDrawing(
        "bars",
        every * count - BAR_GAP + 2,
        rects=[bar_rect(plot, scale, at, part, tops[at]) for at, parts in enumerate(piles) for part in parts],
        texts=[text for at in range(count) for text in bar_captions(plot, at, tops[at])],
        tracks=[DrawnRect("0%", svg_pixels(top), "100%", svg_pixels(thick), 0, "") for top in tops],
        marks=[DrawnMark(zero, svg_pixels(top - 2), svg_pixels(top + thick + 2)) for top in tops] if scale.low < 0 else [],
        legend=plot.legend,
        left_out=len(plot.names) - count,
    )


def bar_rect(plot: ChartPlot, scale: AxisScale, at: int, part: BarPart, top: float) -> DrawnRect:
    low, high = scale.at(part.low), scale.at(part.high)
    y = top if plot.stacked else top + BAR_THICKNESS * part.row
    return DrawnRect(
        svg_percent(low),
        svg_pixels(y),
        svg_percent(high - low),
        svg_pixels(BAR_THICKNESS),
        part.row % CHART_COLOURS,
        plot.describe(part.row, at),
    )


def bar_captions(plot: ChartPlot, at: int, top: float) -> Iterator[DrawnText]:
    """The texts above a bar: its name and its value."""
    yield DrawnText("0%", svg_pixels(top - 8), "start", cut_label(plot.names[at]))
    yield DrawnText("100%", svg_pixels(top - 8), "end", bar_total(plot, at), True)


def bar_total(plot: ChartPlot, at: int) -> str:
    """The value, or the sum of a stacked bar; several bars at one place have their values in the table."""
    values = [value for row in plot.rows if (value := row[at]) is not None]
    if len(plot.rows) > 1 and not plot.stacked:
        return ""
    return format_value(plot.chart["kind"], drawable_number(sum(values)) if values else None)


def bar_parts(values: Sequence[float | None], *, stacked: bool) -> list[BarPart]:
    """Start and end of each part: from 0, or from the end of the part before; negative values go down."""
    up = down = 0.0
    found: list[BarPart] = []
    for row, value in enumerate(values):
        if value is None:
            continue
        if value >= 0:
            found.append(BarPart(row, up, up + value))
            up += value if stacked else 0
        else:
            found.append(BarPart(row, down + value, down))
            down += value if stacked else 0
    return found


def bar_ends(piles: Sequence[Sequence[BarPart]]) -> list[float]:
    return [end for parts in piles for part in parts for end in (part.low, part.high)]


SPARK_TOP, SPARK_HEIGHT = 6, 44
PATH_WIDTH = 1000.0
"""The width that paths are drawn in; the page stretches it."""

DrawnPoint: TypeAlias = tuple[float, float]


def line_chart(plot: ChartPlot) -> ChartDrawing:
    """Values along time, with a scale. The line is broken where a value is missing."""
    scale = axis_scale(plot.values, whole=plot.whole)
    runs = [line_runs(row, scale, PLOT_TOP, PLOT_HEIGHT) for row in plot.rows]
    ground = PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(0))
    areas = [DrawnPath(area_under(run, ground), 0, True) for run in runs[0] if len(run) > 1] if len(runs) == 1 else []
    texts = axis_labels([point_across(at, len(plot.names)) / PATH_WIDTH for at in range(len(plot.names))], plot.names)
    paths = [*areas, *line_paths(runs)]
    return ChartDrawing("line", CHART_HEIGHT, axis_ticks(plot, scale), paths=paths, dots=line_dots(runs), texts=texts, legend=plot.legend)


def sparkline_chart(plot: ChartPlot) -> ChartDrawing:
    """A line without a scale, from the lowest to the highest value, with the latest value beside it."""
    scale = span_scale(plot.values)
    runs = [line_runs(row, scale, SPARK_TOP, SPARK_HEIGHT) for row in plot.rows]
    height = SPARK_HEIGHT + 2 * SPARK_TOP
    return ChartDrawing("sparkline", height, paths=line_paths(runs), dots=line_dots(runs), legend=plot.legend, latest=latest_value(plot))


def latest_value(plot: ChartPlot) -> LatestValue | None:
    if len(plot.rows) != 1:
        return None
    at, value = next((at, value) for at, value in reversed(list(enumerate(plot.rows[0]))) if value is not None)
    return LatestValue(format_value(plot.chart["kind"], value), plot.names[at])


def line_runs(row: Sequence[float | None], scale: AxisScale, top: float, height: float) -> list[list[DrawnPoint]]:
    """The points of a series, in runs without a gap."""
    runs: list[list[DrawnPoint]] = [[]]
    for at, value in enumerate(row):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((point_across(at, len(row)), top + height * (1 - scale.at(value))))
    return [run for run in runs if run]


def line_paths(series: Sequence[Sequence[Sequence[DrawnPoint]]]) -> list[DrawnPath]:
    return [
        DrawnPath(path_through(run), colour % CHART_COLOURS, False) for colour, runs in enumerate(series) for run in runs if len(run) > 1
    ]


def line_dots(series: Sequence[Sequence[Sequence[DrawnPoint]]]) -> list[DrawnDot]:
    """Single points, and the end of each line."""
    found: list[DrawnDot] = []
    for colour, runs in enumerate(series):
        lone = [run[0] for run in runs if len(run) == 1] + ([runs[-1][-1]] if runs else [])
        found += [DrawnDot(svg_percent(x / PATH_WIDTH), svg_pixels(y), colour % CHART_COLOURS) for x, y in dict.fromkeys(lone)]
    return found


def point_across(at: int, count: int) -> float:
    """The horizontal position of point `at` of `count`."""
    return PATH_WIDTH / 2 if count == 1 else PATH_WIDTH * at / (count - 1)


def path_through(run: Sequence[DrawnPoint]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in run)


def area_under(run: Sequence[DrawnPoint], ground: float) -> str:
    return f"{path_through(run)}L{run[-1][0]:.1f},{ground:.1f}L{run[0][0]:.1f},{ground:.1f}Z"


def draw_chart(chart: Chart) -> ChartDrawing | None:
    """The picture of a chart; none where there is nothing to draw.

    Bars stand along days and lie otherwise: names of countries and words need the width.
    """
    count = len(chart["places"])
    rows = [[drawable_number(value) for value in [*series["values"], *[None] * count][:count]] for series in chart["series"]]
    plot = ChartPlot(chart, [format_place(chart["places_kind"], text) for text in chart["places"]], rows)
    if not plot.values:
        return None
    if chart["shape"] == "line":
        return line_chart(plot)
    if chart["shape"] == "sparkline":
        return sparkline_chart(plot)
    return column_chart(plot) if chart["places_kind"] == "day" else bar_chart(plot)
