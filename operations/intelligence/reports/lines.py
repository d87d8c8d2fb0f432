"""Charts along time: lines, and lines without axes."""

from collections.abc import Sequence
from typing import TypeAlias

from operations.intelligence.reports.axis import Scale, scale_of, span_of
from operations.intelligence.reports.drawing import (
    COLOURS,
    PLOT_HEIGHT,
    PLOT_TOP,
    WHOLE_HEIGHT,
    Dot,
    Drawing,
    Latest,
    Path,
    Plot,
    along,
    percent,
    pixels,
    ticks_of,
)
from operations.intelligence.reports.values import shown

SPARK_TOP, SPARK_HEIGHT = 6, 44
WIDE = 1000.0
"""The width that paths are drawn in; the page stretches it."""

Point: TypeAlias = tuple[float, float]


def lines(plot: Plot) -> Drawing:
    """Values along time, with numbers beside them. Where one is missing the line is broken."""
    scale = scale_of(plot.values, whole=plot.whole)
    runs = [runs_of(row, scale, PLOT_TOP, PLOT_HEIGHT) for row in plot.rows]
    ground = PLOT_TOP + PLOT_HEIGHT * (1 - scale.at(0))
    areas = [Path(area(run, ground), 0, True) for run in runs[0] if len(run) > 1] if len(runs) == 1 else []
    texts = along([across(at, len(plot.names)) / WIDE for at in range(len(plot.names))], plot.names)
    paths = [*areas, *paths_of(runs)]
    return Drawing("line", WHOLE_HEIGHT, ticks_of(plot, scale), paths=paths, dots=dots_of(runs), texts=texts, legend=plot.legend)


def sparkline(plot: Plot) -> Drawing:
    """Only how it went, from the lowest to the highest, and where it stands."""
    scale = span_of(plot.values)
    runs = [runs_of(row, scale, SPARK_TOP, SPARK_HEIGHT) for row in plot.rows]
    height = SPARK_HEIGHT + 2 * SPARK_TOP
    return Drawing("sparkline", height, paths=paths_of(runs), dots=dots_of(runs), legend=plot.legend, latest=latest_of(plot))


def latest_of(plot: Plot) -> Latest | None:
    """The last value of a single line."""
    if len(plot.rows) != 1:
        return None
    at, value = next((at, value) for at, value in reversed(list(enumerate(plot.rows[0]))) if value is not None)
    return Latest(shown(plot.chart["kind"], value), plot.names[at])


def runs_of(row: Sequence[float | None], scale: Scale, top: float, height: float) -> list[list[Point]]:
    """The points of a series that follow each other without a gap."""
    runs: list[list[Point]] = [[]]
    for at, value in enumerate(row):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((across(at, len(row)), top + height * (1 - scale.at(value))))
    return [run for run in runs if run]


def paths_of(series: Sequence[Sequence[Sequence[Point]]]) -> list[Path]:
    """The lines."""
    return [Path(line(run), colour % COLOURS, False) for colour, runs in enumerate(series) for run in runs if len(run) > 1]


def dots_of(series: Sequence[Sequence[Sequence[Point]]]) -> list[Dot]:
    """What stands alone, and where each line ends."""
    found: list[Dot] = []
    for colour, runs in enumerate(series):
        lone = [run[0] for run in runs if len(run) == 1] + ([runs[-1][-1]] if runs else [])
        found += [Dot(percent(x / WIDE), pixels(y), colour % COLOURS) for x, y in dict.fromkeys(lone)]
    return found


def across(at: int, count: int) -> float:
    """Where along the way a point is."""
    return WIDE / 2 if count == 1 else WIDE * at / (count - 1)


def line(run: Sequence[Point]) -> str:
    """A path through the points."""
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in run)


def area(run: Sequence[Point], ground: float) -> str:
    """The ground under them."""
    return f"{line(run)}L{run[-1][0]:.1f},{ground:.1f}L{run[0][0]:.1f},{ground:.1f}Z"
