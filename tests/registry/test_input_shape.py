"""What an input may cost: refused by its count before pydantic, and read without a step per byte in Python."""

import json
import random
from typing import Any

import orjson
import pytest
from pydantic_core import ValidationError

from operations.catalogue import CATALOGUE
from registry.binding import Binding
from registry.errors import BadRequest
from registry.guard import parse_json, parse_json_slowly
from registry.input_bounds import SPARE_MEMBERS, InputBounds, model_bounds
from registry.operation import OPEN_BODY_LIMIT, Auth
from tests.contract.declared import of_every
from tests.draw import drawn

OPEN_TO_ALL = (Auth.PUBLIC, Auth.STOREFRONT_OPEN)
MOST_ERRORS = 400
"""That pydantic may make of one input: a fraction of a millisecond."""
OPERATIONS = list(CATALOGUE.operations.values())
WITH_BODY = [operation for operation in OPERATIONS if operation.takes_body]


def largest(shape: InputBounds) -> Any:
    """The input with the most members that is handed to pydantic, every one of them wrong."""
    if shape.fields is not None:
        known = {name: largest(inner) for name, inner in shape.fields.items()}
        return known | {f"unknown-{number}": 1.5 for number in range(SPARE_MEMBERS)}
    if shape.items is None:
        return {"a": 1}
    entries = [largest(shape.items)] * (shape.most or 20)
    return entries if shape.array else {f"key-{number}": entry for number, entry in enumerate(entries)}


def refusal(binding: Binding[Any], value: Any) -> BadRequest:
    with pytest.raises(BadRequest) as refused:
        binding.validate(binding.gather(dict.fromkeys(binding.path_names, "8988303000000912345"), "", orjson.dumps(value)))
    return refused.value


@of_every(WITH_BODY)
def test_no_input_makes_pydantic_write_more_than_a_few_errors(operation: Any) -> None:
    binding = Binding(operation)
    bounded = binding.bounded_values(largest(model_bounds(operation.params)))
    operation.params.model_rebuild()
    try:
        operation.params.__pydantic_validator__.validate_json(orjson.dumps(bounded))
    except ValidationError as error:
        assert error.error_count() <= MOST_ERRORS


def test_every_list_of_an_input_says_how_many_it_may_hold() -> None:
    unlimited = [
        f"{operation.id}.{name}"
        for operation in OPERATIONS
        for name, shape in (model_bounds(operation.params).fields or {}).items()
        if shape.array and shape.most is None
    ]
    assert unlimited == []


@of_every(drawn(WITH_BODY, __file__))
def test_thousands_of_unknown_fields_are_refused_by_the_first_before_pydantic_sees_them(operation: Any) -> None:
    binding, fields = Binding(operation), model_bounds(operation.params)
    many = {f"k{number}": 1 for number in range(19_000)}
    if not fields.closed:
        assert binding.bounded_values(many) == {}
        return
    found = refusal(binding, many)
    assert (found.param, found.error_code) == ("k0", "unknown_field")
    assert found.message == "k0: unknown field"


def test_members_without_a_place_are_refused_in_the_words_that_a_few_are_refused_in() -> None:
    batch = Binding(CATALOGUE.operations["ingest_cdr_events"])
    for few, many in (
        ({"events": [{f"k{n}": 1 for n in range(3)}]}, {"events": [{f"k{n}": 1 for n in range(15_000)}]}),
        ({"events": {"a": 1}}, {"events": {f"k{n}": 1 for n in range(15_000)}}),
        ({"events": [[1]]}, {"events": [[1] * 15_000]}),
    ):
        assert refusal(batch, many).body("") == refusal(batch, few).body("")
    intent = Binding(CATALOGUE.operations["create_connectivity_intent"])
    assert refusal(intent, {"plan": [1] * 15_000}).body("") == refusal(intent, {"plan": [1]}).body("")
    too_many = refusal(intent, {"metadata": {f"k{number}": 1 for number in range(15_000)}})
    assert too_many.message == "metadata: got an object; must hold at most 50 entries"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":[' + b"{}," * 690_000 + b"{}]}",
        b'{"a":[' + b'"",' * 690_000 + b"0]}",
        b'{"a":[' + b'"\\\\",' * 300_000 + b"0]}",
        b"[1" * 30_000,
    ],
)
def test_a_body_with_too_many_values_is_counted_and_not_parsed(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orjson, "loads", None)
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(BadRequest, match="more than 20000 values"):
        parse_json(raw)


PIECES = r'{ } [ ] , : " "a" "b" "a": "b":1 1 1.5 -0 true null \ \" \\ \u0000 \ud800 é 9007199254740993 9007199254740991 1e400 1e5 NaN'
LEAVES = r'1 "a" null -5.25 "\"\\" 9007199254740992 1234567890123456 "é" [] {} "[{,:" 1e3 "\\u0000" "\u0000" 0.1234567890123456789'


def text(draw: random.Random, depth: int = 0) -> str:
    kind = draw.random()
    if depth > 4 or kind < 0.4:
        return draw.choice(LEAVES.split(" "))
    space, count = draw.choice(["", " ", "\n"]), draw.randint(0, 4)
    if kind < 0.7:
        return "[" + space + ("," + space).join(text(draw, depth + 1) for _ in range(count)) + "]"
    members = [f'"{draw.choice("abcdefgh")}"{space}:{text(draw, depth + 1)}' for _ in range(count)]
    return "{" + space + ("," + space).join(members) + "}"


def outcome(read: Any, raw: bytes) -> str:
    try:
        return repr(read(raw))
    except BadRequest as refused:
        return refused.error_code


@pytest.mark.long
def test_the_quick_reader_takes_nothing_that_the_slow_one_refuses_or_reads_otherwise() -> None:
    draw = random.Random(3)
    taken = 0
    for number in range(4_000):
        made = text(draw) if number % 2 else "".join(draw.choice(PIECES.split(" ")) for _ in range(draw.randint(1, 8)))
        place = draw.randrange(len(made))
        raw = (made if number % 3 else made[:place] + draw.choice(PIECES.split(" ")) + made[place:]).encode()
        quick = outcome(parse_json, raw)
        assert quick == outcome(parse_json_slowly, raw), raw
        taken += quick != "invalid_json"
    assert taken > 500


def longest(schema: dict[str, Any]) -> Any:
    """The longest text that a field takes, of characters that JSON can write in twelve bytes."""
    kinds = [schema, *schema.get("anyOf", [])]
    most = next(kind["maxLength"] for kind in kinds if "maxLength" in kind)
    return "\N{OTTER}" * most


def test_operations_that_anybody_may_call_take_no_more_than_their_longest_input_needs() -> None:
    for operation in WITH_BODY:
        if operation.auth in OPEN_TO_ALL:
            assert operation.body_limit == OPEN_BODY_LIMIT == 8 * 1024
            fields = {name: field for name, field in operation.params.model_json_schema()["properties"].items() if "Id" not in name}
            body = {name: "a" * len(longest(field)) if name == "email" else longest(field) for name, field in fields.items()}
            assert len(json.dumps(body)) <= operation.body_limit
