"""Schemathesis against both doors, in process: every check, no failure, no fault of ours. `python3 ./run fuzz` asks more."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contract.stage import OPERATIONS
from tests.draw import drawn
from tests.fuzz.app_under_test import AppUnderTest, whole_service
from tests.fuzz.engine import ALLOWED, FuzzPlan, FuzzVerdict, fuzz
from tests.fuzz.tools_under_test import TOOLS, ToolsUnderTest

EXAMPLES = 2
"""Of every operation, beside the documented ones; `python3 ./run fuzz calls` asks 200, and everything of everything that is forbidden."""
SHARES = 2
"""So many tests: each is done in a fraction of the time that one test may take on a busy machine."""
TOLD = {"description", "title", "examples", "example", "default"}
"""What a schema says to people."""
Schema = Mapping[str, Any]


def resolved(schema: Schema) -> Schema:
    while "$ref" in schema:
        found: Any = whole_service()
        for part in schema["$ref"].split("/")[1:]:
            found = found[part]
        schema = {**found, **{word: value for word, value in schema.items() if word != "$ref"}}
    return schema


def kinds_of_fields(schema: Schema, place: str, depth: int = 0) -> Iterator[object]:
    """Where a value is and which words its schema uses: the forbidden values are made from these."""
    schema = resolved(schema)
    for kind in map(resolved, schema.get("anyOf", [schema])):
        yield place, str(kind.get("type")), tuple(sorted(word for word in kind if word not in TOLD))
        inner = [*kind.get("properties", {}).values(), *([kind["items"]] if "items" in kind else [])]
        for each in inner if depth < 3 else ():
            yield from kinds_of_fields(each, place, depth + 1)


def kinds(method: str, made: Schema) -> Iterator[object]:
    """What tells one documented operation from another: its method, its credential and the kinds of its fields."""
    yield from (method, str(made.get("security")))
    for parameter in map(resolved, made.get("parameters", [])):
        yield from kinds_of_fields(parameter["schema"], parameter["in"])
    for content in made.get("requestBody", {}).get("content", {}).values():
        yield from kinds_of_fields(content["schema"], "body")


def representatives() -> frozenset[str]:
    """Operations that have, between them, every kind of everything that any operation has; the one with most is taken first."""
    declared = [each for methods in whole_service()["paths"].values() for each in methods.items()]
    documented = {made["operationId"]: frozenset(kinds(method, made)) for method, made in declared}
    left, chosen = set[object]().union(*documented.values()), set[str]()
    while left:
        best = max(sorted(documented), key=lambda id: len(documented[id] & left))
        chosen.add(best)
        left -= documented[best]
    return frozenset(chosen)


def kept(verdict: FuzzVerdict, asked: frozenset[str], calls: int) -> None:
    found = sorted(set(verdict.failures))
    assert not found, f"{len(found)} failures\n\n" + "\n\n".join(found)
    assert {status for status in verdict.statuses if status >= 500} <= ALLOWED
    assert sum(verdict.statuses.values()) > calls * len(asked), verdict.statuses
    assert len(verdict.labels) == len(asked)
    assert set(verdict.checks) >= {"ignored_auth", "not_a_server_error", "response_schema_conformance", "status_code_conformance"}


@pytest.mark.parametrize("share", range(SHARES))
def test_no_generated_call_breaks_a_promise(tmp_path: Path, share: int) -> None:
    """Each operation is asked by itself; sequences of calls run by command."""
    asked = frozenset(sorted(operation.id for operation in drawn(OPERATIONS, __file__))[share::SHARES])
    kept(fuzz(AppUnderTest(tmp_path), FuzzPlan(EXAMPLES, only=asked, forbidden=False)), asked, EXAMPLES)


@pytest.mark.parametrize("share", range(SHARES))
def test_no_generated_call_of_a_tool_breaks_a_promise(tmp_path: Path, share: int) -> None:
    asked = frozenset(sorted(operation.id for operation in drawn(list(TOOLS.values()), __file__))[share::SHARES])
    kept(fuzz(ToolsUnderTest(tmp_path), FuzzPlan(EXAMPLES, only=asked, forbidden=False)), asked, EXAMPLES)


@pytest.mark.long
def test_no_call_that_the_document_forbids_breaks_a_promise(tmp_path: Path) -> None:
    """Of the operations that represent all: the values that every kind of field rules out, and methods that are not there."""
    asked = representatives()
    assert 10 < len(asked) < len(OPERATIONS) / 4
    kept(fuzz(AppUnderTest(tmp_path), FuzzPlan(EXAMPLES, only=asked)), asked, 20)
