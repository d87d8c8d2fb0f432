"""Examples can be pasted as they stand."""

import json
import shlex

from operations.catalogue import CATALOGUE
from registry.binding import Binding
from registry.catalogue import AnyOperation
from tests.openapi.lamps import LAMPS
from transports.reference.entries import curl_example, pretty_json, tool_call_example

OPERATIONS = (*CATALOGUE.operations.values(), *LAMPS.operations.values())
EXAMPLES = [(operation, example) for operation in OPERATIONS for example in operation.examples]


def test_every_curl_line_says_what_the_example_says() -> None:
    for operation, example in EXAMPLES:
        words = shlex.split(curl_example(operation, example.input, "http://127.0.0.1:8000").replace("\\\n", ""))
        address = next(word for word in words if word.startswith("http"))
        path, _, query = address.removeprefix("http://127.0.0.1:8000").partition("?")
        body = words[words.index("-d") + 1].encode() if "-d" in words else b""
        binding = Binding(operation)
        given = dict(zip(binding.path_names, path_values(operation, path), strict=True))
        assert json.loads(binding.gather(given, query, body) or b"{}") == dict(example.input), operation.id


def path_values(operation: AnyOperation, path: str) -> list[str]:
    """The texts at the places of the path's fields; a field may share its segment with plain text."""
    values: list[str] = []
    for pattern, text in zip(operation.path.split("/"), path.split("/"), strict=True):
        before, opened, rest = pattern.partition("{")
        if opened:
            values.append(text.removeprefix(before).removesuffix(rest.partition("}")[2]))
    return values


def test_every_tool_call_carries_the_example_and_the_key_it_needs() -> None:
    for operation, example in EXAMPLES:
        shown = tool_call_example(operation, example.input)
        assert (shown is not None) == operation.tool, operation.id
        if shown is not None:
            params = json.loads(shown)["params"]
            assert params["name"] == operation.id
            needs = operation.once is not None and operation.once.required
            needed = {"idempotency_key": "<UNIQUE_KEY>"} if needs else {}
            assert params["arguments"] == dict(example.input) | needed, operation.id


def test_an_apostrophe_survives_the_shell() -> None:
    text = curl_example(LAMPS.operations["create_lamp"], {"watts": 7.5, "note": "it's mine"}, "http://127.0.0.1:8000")
    assert json.loads(shlex.split(text.replace("\\\n", ""))[-1]) == {"watts": 7.5, "note": "it's mine"}


def test_an_array_of_plain_values_stays_on_one_line() -> None:
    value = {"codes": ["DE", "FR"], "none": [], "deep": [["a, b", 1]], "rows": [{"a": 1}]}
    text = pretty_json(value)
    assert '"codes": ["DE", "FR"]' in text
    assert json.loads(text) == value
