"""A chart is drawn by attributes alone, and shows its figures where there is room for all of them."""

import re
from xml.etree import ElementTree

from transports.web.console.charts import ChartPoint, bar_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(points: list[ChartPoint]) -> tuple[list[str], list[float]]:
    """The words that are drawn, and how high the bars are."""
    svg = ElementTree.fromstring(str(bar_chart(points, "Costs & more")).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    assert svg.attrib["aria-label"] == "Costs & more" and "style" not in str(bar_chart(points, "x"))
    bars = [float(bar.attrib["height"]) for bar in svg.iter(f"{SVG}rect")]
    for bar in svg.iter(f"{SVG}rect"):
        assert float(bar.attrib["y"]) >= 0 and bar.findtext(f"{SVG}title")
    return ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")], bars


def test_few_figures_stand_above_their_bars_and_the_highest_leaves_room_for_its_own() -> None:
    words, bars = drawn([ChartPoint("Expired", 90.0, "€90.00"), ChartPoint("Used <up>", 45.0, "€45.00"), ChartPoint("None", 0.0, "€0.00")])
    assert words == ["€90.00", "Expired", "€45.00", "Used <up>", "€0.00", "None"]
    assert bars[0] == 2 * bars[1] > bars[2] == 0
    assert re.search(r'<text class="tick" x="106.7" y="(1[0-9])', str(bar_chart([ChartPoint("A", 1, "1")] * 3, "x")))


def test_figures_that_have_no_room_are_read_and_not_drawn() -> None:
    points = [ChartPoint(str(day), day, f"{day} orders were paid", f"{day} March") for day in range(1, 8)]
    words, bars = drawn(points)
    assert words == [str(day) for day in range(1, 8)] and len(bars) == 7
    assert "<title>3 March: 3 orders were paid</title>" in bar_chart(points, "x")
    assert bar_chart([], "x") == ""
