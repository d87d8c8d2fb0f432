"""Which picture a chart is drawn as."""

from operations.intelligence.reports.axis import finite
from operations.intelligence.reports.bars import bars, columns
from operations.intelligence.reports.drawing import Drawing, Plot
from operations.intelligence.reports.lines import lines, sparkline
from operations.intelligence.reports.values import place
from operations.intelligence.sheet import Chart


def drawing(chart: Chart) -> Drawing | None:
    """The picture of a chart; none where there is nothing to draw.

    Bars stand along days and lie otherwise: names of countries and words need the width.
    """
    count = len(chart["places"])
    rows = [[finite(value) for value in [*series["values"], *[None] * count][:count]] for series in chart["series"]]
    plot = Plot(chart, [place(chart["places_kind"], text) for text in chart["places"]], rows)
    if not plot.values:
        return None
    if chart["shape"] == "line":
        return lines(plot)
    if chart["shape"] == "sparkline":
        return sparkline(plot)
    return columns(plot) if chart["places_kind"] == "day" else bars(plot)
