"""What strangers see of a sheet: each kind in its own form, and nothing else, whatever is in it."""

import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.intelligence.reports.page import ReportContent, report_html
from operations.intelligence.reports.redaction import redact_html, redact_json, redact_sheet, redact_text
from operations.intelligence.reports.sheet import Sheet
from operations.intelligence.shared_reports import short_json_number
from tests.length import examples
from tests.reports.paper import Paper
from tests.reports.sheets import SHEET_ICCID, chart, sheet, sheet_table

MARK = "[redacted]"
PASSES = {
    "number": [0, -3, 12.5, 99_999_999_999_999, "12"],
    "money": [0.1, 412.25],
    "bytes": [1, 10**13],
    "percent": [12.5],
    "days": [3],
    "day": ["2027-01-15"],
    "country": ["NO", "XK", "GB"],
    "network": ["242-01", "310-410"],
    "word": ["Silent for 14 days", "Active", "1.5 GB (EU)", "2027-01-15"],
}
FAILS: dict[str, list[Any]] = {
    "number": [True, "12 lines", "123456789012345", 242_011_234_567_890, float("inf"), [1], {}],
    "money": ["\u20ac5", ""],
    "bytes": [10**31, "1e99", True],
    "percent": ["12%"],
    "days": ["three"],
    "day": ["2027-13-01", "15.01.2027", "2027-01-15T00:00:00Z", 20270115],
    "country": ["Norway", "no", "QQ", SHEET_ICCID],
    "network": ["24201", "242-01-7", "Telco Alpha", "\u0662\u0664\u0662-01"],
    "word": [SHEET_ICCID, "Kr\u00f8yer", "a@b", "x" * 61, "a\nb", "47900123456", "\u202eok"],
}
SHOWN = [pytest.param(kind, value, id=f"{kind}-{value}") for kind, values in PASSES.items() for value in values]
HIDDEN = [pytest.param(kind, value, id=f"{kind}-{number}") for kind, values in FAILS.items() for number, value in enumerate(values)]


def only(kind: str, value: Any) -> tuple[Any, list[str]]:
    """One value after redaction, and the faults."""
    found = redact_sheet(sheet(figures=[{"label": "It", "kind": kind, "value": value}]))
    return found.sheet["figures"][0]["value"], list(found.faults)


@pytest.mark.parametrize(("kind", "value"), SHOWN)
def test_a_value_that_looks_like_its_kind_passes(kind: str, value: Any) -> None:
    assert only(kind, value) == (value, [])


@pytest.mark.parametrize(("kind", "value"), HIDDEN)
def test_a_value_that_does_not_is_left_out_and_is_a_fault(kind: str, value: Any) -> None:
    assert only(kind, value) == (MARK, [kind])


def test_nothing_is_nothing_whatever_its_kind() -> None:
    assert [only(kind, None) for kind in (*PASSES, "line", "text", "new")] == [(None, [])] * (len(PASSES) + 3)


def test_what_somebody_else_wrote_and_what_nobody_knows_is_left_out_without_a_fault() -> None:
    assert [only(kind, "12") for kind in ("text", "new", "")] == [(MARK, [])] * 3


def test_a_line_has_one_number_throughout_a_report() -> None:
    made = sheet(
        figures=[{"label": "First", "kind": "line", "value": SHEET_ICCID}],
        charts=[chart(places_kind="line", places=["894", SHEET_ICCID], series=[{"label": "Data", "values": [1, 2]}])],
        tables=[sheet_table([("Line", "line")], ["895"], ["894"], [SHEET_ICCID])],
    )
    found = redact_sheet(made).sheet
    assert found["figures"][0]["value"] == "Line 1"
    assert found["charts"][0]["places"] == ["Line 2", "Line 1"]
    assert found["tables"][0]["rows"] == [["Line 3"], ["Line 2"], ["Line 1"]]


def test_names_of_rows_and_of_a_charts_parts_are_numbered_and_other_texts_go() -> None:
    made = sheet(
        charts=[chart(series_kind="text", series=[{"label": "Telco Alpha", "values": []}])],
        tables=[
            sheet_table([("Operator", "text"), ("Note", "text"), ("Lines", "number")], ["Telco Beta", "ring", 3], ["Telco Alpha", "", 2])
        ],
    )
    found = redact_sheet(made).sheet
    assert found["charts"][0]["series"][0]["label"] == "Name 1"
    assert found["tables"][0]["rows"] == [["Name 2", 3], ["Name 1", 2]]
    assert found["tables"][0]["note"] == "Left out here: Note."


def test_a_title_that_holds_what_ours_never_do_is_left_out() -> None:
    for text in (f"Lines of {SHEET_ICCID}", "Kr\u00f8yer AS", "x" * 1001, "a\x00b", "\u202eABC"):
        found = redact_sheet(sheet(title=text, headline=text, tables=[sheet_table([(text, "number")], [1], note=text)]))
        assert (found.sheet["title"], found.sheet["headline"]) == (MARK, MARK)
        assert (found.sheet["tables"][0]["columns"][0]["label"], found.sheet["tables"][0]["note"]) == (MARK, MARK)
        assert list(found.faults) == ["title or label"] * 4


def test_a_row_that_is_too_short_or_too_long_shows_no_more_than_its_columns() -> None:
    found = redact_sheet(sheet(tables=[sheet_table([("A", "number"), ("B", "number")], [1], [1, 2, SHEET_ICCID])]))
    assert found.sheet["tables"][0]["rows"] == [[1, None], [1, 2]]


IDENTIFIERS = [
    SHEET_ICCID,
    "8947 0000 0000 0000 0126",
    "242011234567890",
    "89049032123451234512345678901235",
    "+4790012345",
    "+47 900 12 345",
    "0047 90012345",
    "ola.nordmann@fjord.example",
    "ola%40fjord.example",
    "LPA:1$smdp.example$ABC-DEF",
    "1$smdp.example.com$ABC",
    "ak_" + "a" * 46,
    "whsec_" + "a" * 20,
    "\u0662\u0664\u0662\u0660\u0661\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669\u0660",
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19\uff10\uff11\uff12\uff13\uff14",
    "ola\uff20fjord.example",
    "89470000000\u200b000000126",
]
HARMLESS = [
    "3 of 120 lines, \u20ac1,234,567.89, 12.5%",
    "2027-01-14 to 2027-01-15, 2027-01-15T12:00:00Z",
    "242-01 and 310-410",
    "M0.0,12.5L89.1,123.4L178.2,8.9",
    "1e+308",
]


@pytest.mark.parametrize("text", IDENTIFIERS)
def test_the_last_look_finds_it_in_json_and_in_a_page(text: str) -> None:
    assert redact_text(f"a {text} b")[1] >= 1
    for written in (text, text.encode("ascii", "backslashreplace").decode() if text.isascii() else text):
        found = redact_json(orjson.dumps({"a": [f"see {written}."]}))
        assert found.hits >= 1 and text.encode() not in found.content
        assert MARK in orjson.loads(found.content)["a"][0]
    escaped = "".join(f"&#{ord(letter)};" for letter in text)
    for page in (f"<p>see {text}.</p>", f'<p title="{text}">x</p>', f"<p>{escaped}</p>", f'<p title="{escaped}">x</p>'):
        found = redact_html(page.encode())
        assert found.hits >= 1 and MARK.encode() in found.content and text.encode() not in found.content
        Paper(found.content.decode())


@pytest.mark.parametrize("text", HARMLESS)
def test_the_last_look_leaves_what_reports_say(text: str) -> None:
    assert redact_text(text) == (text, 0)


def test_a_number_with_the_digits_of_an_identifier_is_blotted_out_of_json() -> None:
    found = redact_json(b'{"a":242011234567890,"b":[1,2.5,-3e7]}')
    assert (found.content, found.hits) == (b'{"a":"[redacted]","b":[1,2.5,-3e7]}', 1)


HOSTILE = st.one_of(
    st.sampled_from([*IDENTIFIERS, "<script>alert(1)</script>", '" onload="x', "</style>", "{{ 7*7 }}", "\u202e\x00\x1b[31m"]),
    st.text(max_size=40),
    st.integers(),
    st.floats(),
    st.none(),
    st.booleans(),
)
TEXT = st.one_of(st.sampled_from(["Data", "Lines <b>", *IDENTIFIERS]), st.text(max_size=30))
KINDS = st.sampled_from([*PASSES, "line", "text", "secret"])
NUMBERS = st.one_of(st.none(), st.floats(), st.integers(-(10**18), 10**18))
SHAPES = st.sampled_from(["line", "bar", "stacked", "sparkline", "pie"])
FIGURES = st.fixed_dictionaries({"label": TEXT, "kind": KINDS, "value": HOSTILE})
SERIES = st.fixed_dictionaries({"label": TEXT, "values": st.lists(NUMBERS, max_size=5)})
CHARTS = st.fixed_dictionaries(
    {
        "title": TEXT,
        "shape": SHAPES,
        "kind": KINDS,
        "places_kind": KINDS,
        "places": st.lists(TEXT, max_size=5),
        "series_kind": KINDS,
        "series": st.lists(SERIES, max_size=3),
    }
)
COLUMNS = st.lists(st.fixed_dictionaries({"label": TEXT, "kind": KINDS}), max_size=3)
TABLES = st.fixed_dictionaries(
    {
        "title": TEXT,
        "columns": COLUMNS,
        "rows": st.lists(st.lists(HOSTILE, max_size=4), max_size=3),
        "note": st.one_of(st.none(), TEXT),
    }
)
SHEETS = st.fixed_dictionaries(
    {
        "title": TEXT,
        "headline": TEXT,
        "figures": st.lists(FIGURES, max_size=3),
        "charts": st.lists(CHARTS, max_size=2),
        "tables": st.lists(TABLES, max_size=2),
    }
)
SECRET = re.compile(r"\d{15}|[\w.]+@[\w-]+\.\w|\+[1-9]\d{6}|1\$[a-z.]+\$")


@pytest.mark.long
@settings(max_examples=examples(100), deadline=None)
@given(SHEETS)
def test_whatever_a_sheet_holds_nothing_of_it_is_told(made: Any) -> None:
    found: Sheet = redact_sheet(made).sheet
    told = redact_json(orjson.dumps(found, default=short_json_number)).content
    assert SECRET.search(told.decode()) is None
    orjson.loads(told)
    page = redact_html(report_html(ReportContent("Fjord Travel", found, "2027-01-15T12:00:00Z", "Counted.", 3, 3))).content.decode()
    seen = Paper(page)
    assert SECRET.search(seen.text) is None
    assert all(SECRET.search(value) is None for _, attributes in seen.tags for value in attributes.values())
    assert seen.suspicious == []
