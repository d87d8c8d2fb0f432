"""Answers as a person sees them: every kind of one, and none that cannot be shown."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.call import Reply
from transports.cli.drawing import draw_answer
from transports.cli.render import explain_refusal, plain_json, terminal_json
from transports.cli.terminal import indented_json

NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=80)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4), max_leaves=20
)
ROWS = st.lists(st.dictionaries(st.sampled_from(["id", "object", "name", "[b]"]), JSON, max_size=4), max_size=4)
ANSWERS = JSON | st.fixed_dictionaries({"data": JSON | ROWS}, optional={"object": JSON, "has_more": JSON, "esim": JSON})


@pytest.mark.long
@given(ANSWERS)
def test_every_answer_can_be_drawn(answer: object) -> None:
    assert isinstance(draw_answer(answer), str)


@pytest.mark.long
@given(ANSWERS, st.sampled_from([202, 400, 401, 402, 404, 409, 429, 500, 502]))
def test_every_refusal_can_be_explained(answer: object, status: int) -> None:
    assert explain_refusal(Reply(status, orjson.dumps(answer)), "reseller call x")
    assert explain_refusal(Reply(status, b"<html>"), "reseller call x") == explain_refusal(
        Reply(status, b"", media_type="text/html"), "reseller call x"
    )


@pytest.mark.parametrize(
    "body",
    [b'{"esim": {"qr_code": "%s"}}' % (b"x" * 8000), b'{"id": %s}' % (b"[" * 900 + b"]" * 900), b"[1, 2", b"", b"\xff"],
    ids=["code-too-long", "deep", "cut", "empty", "no-text"],
)
def test_what_cannot_be_drawn_is_the_answer_as_it_came(body: bytes) -> None:
    assert "".join(terminal_json(body).split()) == "".join(body.decode(errors="replace").split())
    assert "".join(plain_json(body).split()) == "".join(body.decode(errors="replace").split())


def test_a_record_is_whole_and_a_line_a_field() -> None:
    record = {"name": "[bold]x", "nested": {"a": [1, None]}, "list": [{"b": "c" * 70}], "none": None}
    shown = [line.rstrip() for line in draw_answer({"object": "thing", "data": record, "has_more": False}).splitlines()]
    assert [line.split()[0] for line in shown if line.startswith(" ") and line[1] != " "] == ["has_more", "name", "nested", "list", "none"]
    assert " name      [bold]x" in shown and ' nested    {"a":[1,null]}' in shown and " none      null" in shown
    assert "c" * 70 in "".join("".join(shown).split())


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"data": None}, " data  null"),
        ({"data": 7, "has_more": True}, " data      7\n has_more  true"),
        ({"data": ["a", {"b": 1}]}, 'a\n{"b":1}'),
        ({"data": []}, " data  []"),
        ([1, "a"], indented_json([1, "a"])),
    ],
    ids=["null", "number", "texts", "empty", "list"],
)
def test_what_is_neither_rows_nor_a_record_is_shown_too(answer: object, shown: str) -> None:
    assert "\n".join(line.rstrip() for line in draw_answer(answer).splitlines()) == shown


def test_a_long_list_in_a_record_is_cut_and_a_long_text_is_not() -> None:
    shown = "".join("".join(draw_answer({"data": {"list": ["ab"] * 900, "text": "x" * 900}}).split()))
    assert "...(--jsonshowsitwhole)" in shown and shown.count('"ab"') < 200 and "x" * 900 in shown
