"""Which picture a chart is drawn as."""

from operations.services.report_axis import finite
from operations.services.report_bars import bars, columns
from operations.services.report_drawing import Drawing, Plot
from operations.services.report_lines import lines, sparkline
from operations.services.report_values import place
from operations.services.sheet import Chart


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
