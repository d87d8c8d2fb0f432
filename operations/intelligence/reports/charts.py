"""Charts as pictures: upright bars along days, lying bars for countries, words and lines, lines along time, and sparklines."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from operations.intelligence.reports.drawing import (
    CHART_COLOURS,
    CHART_HEIGHT,
    PLOT_HEIGHT,
    PLOT_TOP,
    AxisScale,
    ChartDrawing,
    ChartPlot,
    DrawnDot,
    DrawnMark,
    DrawnPath,
    DrawnRect,
    DrawnText,
    LatestValue,
    axis_labels,
    axis_scale,
    axis_ticks,
    cut_label,
    drawable_number,
    span_scale,
    svg_percent,
    svg_pixels,
)
from operations.intelligence.reports.sheet import Chart
from operations.intelligence.reports.values import format_place, format_value

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
    """Upright bars, one place beside the other."""
    piles = [bar_parts([row[at] for row in plot.rows], stacked=plot.stacked) for at in range(len(plot.names))]
    scale = axis_scale(bar_ends(piles), whole=plot.whole)
    room = 1 / len(plot.names)
    rects = [column_rect(plot, scale, at, part, room) for at, parts in enumerate(piles) for part in parts]
    texts = axis_labels([room * (at + 0.5) for at in range(len(plot.names))], plot.names)
    return ChartDrawing("columns", CHART_HEIGHT, axis_ticks(plot, scale), rects, texts=texts, legend=plot.legend)


def column_rect(plot: ChartPlot, scale: AxisScale, at: int, part: BarPart, room: float) -> DrawnRect:
    """One of them."""
    wide = room * COLUMN_FILL / (1 if plot.stacked else len(plot.rows))
    left = room * (at + (1 - COLUMN_FILL) / 2) + (0 if plot.stacked else wide * part.row)
    foot, top = (PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(end)) for end in (part.low, part.high))
    colour, title = part.row % CHART_COLOURS, plot.describe(part.row, at)
    return DrawnRect(svg_percent(left), svg_pixels(top), svg_percent(wide), svg_pixels(max(0.0, foot - top)), colour, title)


def bar_chart(plot: ChartPlot) -> ChartDrawing:
    """Lying bars, each under its name. Only the first of them; the table has all."""
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
    """One of them."""
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
    """What stands over a bar: its name, and its value."""
    yield DrawnText("0%", svg_pixels(top - 8), "start", cut_label(plot.names[at]))
    yield DrawnText("100%", svg_pixels(top - 8), "end", bar_total(plot, at), True)


def bar_total(plot: ChartPlot, at: int) -> str:
    """The value, or what the parts of a pile add up to; several bars of one place have theirs in the table."""
    values = [value for row in plot.rows if (value := row[at]) is not None]
    if len(plot.rows) > 1 and not plot.stacked:
        return ""
    return format_value(plot.chart["kind"], drawable_number(sum(values)) if values else None)


def bar_parts(values: Sequence[float | None], *, stacked: bool) -> list[BarPart]:
    """Each value from nothing, or from the end of the one before; losses go down."""
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
    """All numbers that have to have room."""
    return [end for parts in piles for part in parts for end in (part.low, part.high)]


SPARK_TOP, SPARK_HEIGHT = 6, 44
PATH_WIDTH = 1000.0
"""The width that paths are drawn in; the page stretches it."""

DrawnPoint: TypeAlias = tuple[float, float]


def line_chart(plot: ChartPlot) -> ChartDrawing:
    """Values along time, with numbers beside them. Where one is missing the line is broken."""
    scale = axis_scale(plot.values, whole=plot.whole)
    runs = [line_runs(row, scale, PLOT_TOP, PLOT_HEIGHT) for row in plot.rows]
    ground = PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(0))
    areas = [DrawnPath(area_under(run, ground), 0, True) for run in runs[0] if len(run) > 1] if len(runs) == 1 else []
    texts = axis_labels([point_across(at, len(plot.names)) / PATH_WIDTH for at in range(len(plot.names))], plot.names)
    paths = [*areas, *line_paths(runs)]
    return ChartDrawing("line", CHART_HEIGHT, axis_ticks(plot, scale), paths=paths, dots=line_dots(runs), texts=texts, legend=plot.legend)


def sparkline_chart(plot: ChartPlot) -> ChartDrawing:
    """Only how it went, from the lowest to the highest, and where it stands."""
    scale = span_scale(plot.values)
    runs = [line_runs(row, scale, SPARK_TOP, SPARK_HEIGHT) for row in plot.rows]
    height = SPARK_HEIGHT + 2 * SPARK_TOP
    return ChartDrawing("sparkline", height, paths=line_paths(runs), dots=line_dots(runs), legend=plot.legend, latest=latest_value(plot))


def latest_value(plot: ChartPlot) -> LatestValue | None:
    """The last value of a single line."""
    if len(plot.rows) != 1:
        return None
    at, value = next((at, value) for at, value in reversed(list(enumerate(plot.rows[0]))) if value is not None)
    return LatestValue(format_value(plot.chart["kind"], value), plot.names[at])


def line_runs(row: Sequence[float | None], scale: AxisScale, top: float, height: float) -> list[list[DrawnPoint]]:
    """The points of a series that follow each other without a gap."""
    runs: list[list[DrawnPoint]] = [[]]
    for at, value in enumerate(row):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((point_across(at, len(row)), top + height * (1 - scale.at(value))))
    return [run for run in runs if run]


def line_paths(series: Sequence[Sequence[Sequence[DrawnPoint]]]) -> list[DrawnPath]:
    """The lines."""
    return [
        DrawnPath(path_through(run), colour % CHART_COLOURS, False) for colour, runs in enumerate(series) for run in runs if len(run) > 1
    ]


def line_dots(series: Sequence[Sequence[Sequence[DrawnPoint]]]) -> list[DrawnDot]:
    """What stands alone, and where each line ends."""
    found: list[DrawnDot] = []
    for colour, runs in enumerate(series):
        lone = [run[0] for run in runs if len(run) == 1] + ([runs[-1][-1]] if runs else [])
        found += [DrawnDot(svg_percent(x / PATH_WIDTH), svg_pixels(y), colour % CHART_COLOURS) for x, y in dict.fromkeys(lone)]
    return found


def point_across(at: int, count: int) -> float:
    """Where along the way a point is."""
    return PATH_WIDTH / 2 if count == 1 else PATH_WIDTH * at / (count - 1)


def path_through(run: Sequence[DrawnPoint]) -> str:
    """A path through the points."""
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in run)


def area_under(run: Sequence[DrawnPoint], ground: float) -> str:
    """The ground under them."""
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
