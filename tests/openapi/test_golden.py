"""The committed docs/openapi.json is what users were promised: it is committed with every change, and says what a change takes away."""

import copy
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from operations.catalogue import CATALOGUE
from tests.openapi.lamps import document as lamps
from tests.openapi.promises import promises
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.document import build_openapi
from transports.openapi.page import openapi_bytes
from transports.openapi.schemas import OpenapiJson

GOLDEN = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def test_the_committed_document_is_that_of_the_catalogue() -> None:
    """`reseller openapi > docs/openapi.json` writes the file anew; look at what that takes away before you commit it."""
    golden: OpenapiJson = orjson.loads(GOLDEN.read_bytes())
    assert sorted(promises(golden) - promises(build_openapi(CATALOGUE, COMMITTED_SITE))) == []  # the readable half: what would be gone
    assert GOLDEN.read_bytes() == openapi_bytes(CATALOGUE, COMMITTED_SITE, pretty=True)


def without_a_field(document: OpenapiJson) -> None:
    del document["components"]["schemas"]["Lamp"]["properties"]["watts"]


def without_a_status(document: OpenapiJson) -> None:
    del document["paths"]["/v1/lamps"]["post"]["responses"]["409"]


def without_an_enum_value(document: OpenapiJson) -> None:
    document["components"]["schemas"]["Lamp"]["properties"]["colour"]["anyOf"][0]["enum"].remove("red")


def without_an_operation(document: OpenapiJson) -> None:
    del document["paths"]["/v1/about"]


def with_a_field_of_another_type(document: OpenapiJson) -> None:
    document["components"]["schemas"]["Lamp"]["properties"]["watts"]["type"] = "string"


@pytest.mark.parametrize(
    "change", [without_a_field, without_a_status, without_an_enum_value, without_an_operation, with_a_field_of_another_type]
)
def test_taking_something_away_is_noticed(change: Callable[[OpenapiJson], None]) -> None:
    golden, current = lamps(), copy.deepcopy(lamps())
    change(current)
    assert promises(golden) - promises(current)


def test_adding_is_allowed() -> None:
    golden, current = lamps(), copy.deepcopy(lamps())
    current["components"]["schemas"]["Lamp"]["properties"]["lit"] = {"type": "boolean"}
    assert promises(golden) - promises(current) == set()
