"""What holds for the document of the real service, whatever operations it has."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation, Catalogue
from tests.contract.declared import of_every
from tests.openapi.lamps import LAMPS
from tests.openapi.tools import verdict
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.document import build_openapi
from transports.openapi.schemas import OpenapiJson, schema_references

BOTH = pytest.mark.parametrize("catalogue", [CATALOGUE, LAMPS], ids=["service", "lamps"])
ALL_OPERATIONS = (*CATALOGUE.operations.values(), *LAMPS.operations.values())


@cache
def document(catalogue: Catalogue) -> OpenapiJson:
    return build_openapi(catalogue, COMMITTED_SITE)


def home(operation: AnyOperation) -> OpenapiJson:
    return document(CATALOGUE if CATALOGUE.operations.get(operation.id) is operation else LAMPS)


def described(operation: AnyOperation) -> OpenapiJson:
    found: OpenapiJson = home(operation)["paths"][operation.path][operation.method.lower()]
    return found


def check(value: object, schema: OpenapiJson, whole: OpenapiJson) -> None:
    Draft202012Validator({**schema, "components": whole["components"]}, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(value)


def deref(value: OpenapiJson, whole: OpenapiJson) -> OpenapiJson:
    if "$ref" in value:
        _, _, kind, name = value["$ref"].split("/")
        return whole["components"][kind][name]
    return value


@pytest.mark.long
def test_the_document_is_valid_openapi(document_file: Path) -> None:
    with verdict("openapi-spec-validator", document_file, Path(__file__)) as open_yet:
        if open_yet:
            OpenAPIV31SpecValidator(orjson.loads(document_file.read_bytes())).validate()


@BOTH
def test_every_component_is_used_and_has_a_clean_name(catalogue: Catalogue) -> None:
    whole = document(catalogue)
    pointed = set(schema_references(whole))
    for kind, parts in whole["components"].items():
        for name in parts:
            assert kind == "securitySchemes" or f"#/components/{kind}/{name}" in pointed
            assert re.fullmatch(r"[A-Z][A-Za-z0-9-]*", name) or kind == "securitySchemes"
    assert not [name for name in whole["components"].get("schemas", {}) if re.search(r"(Input|Output)$", name)]


@BOTH
def test_every_operation_is_described_once_under_its_own_id(catalogue: Catalogue) -> None:
    ids = [made["operationId"] for path in document(catalogue)["paths"].values() for made in path.values()]
    assert sorted(ids) == sorted(catalogue.operations)


@of_every(ALL_OPERATIONS)
def test_every_example_is_valid_against_its_schema(operation: AnyOperation) -> None:
    whole, made = home(operation), described(operation)
    contents: list[OpenapiJson] = [response.get("content", {}) for r in made["responses"].values() for response in [deref(r, whole)]]
    contents.append(made.get("requestBody", {}).get("content", {}))
    for content in contents:
        for media in content.values():
            for example in media.get("examples", {}).values():
                check(example["value"], media["schema"], whole)
    for parameter in (deref(p, whole) for p in made.get("parameters", [])):
        if "example" in parameter:
            check(parameter["example"], parameter["schema"], whole)


@of_every(ALL_OPERATIONS)
def test_every_input_says_what_it_is(operation: AnyOperation) -> None:
    whole, made = home(operation), described(operation)
    assert not [p["name"] for p in (deref(p, whole) for p in made.get("parameters", [])) if not p.get("description")]


@of_every(ALL_OPERATIONS)
def test_every_refusal_has_an_example_whose_code_it_names(operation: AnyOperation) -> None:
    whole = home(operation)
    for status, reference in described(operation)["responses"].items():
        if status >= "400":
            examples: dict[str, Any] = deref(reference, whole)["content"]["application/json"]["examples"]
            named = re.findall(r"`(\w+)`: ", reference["description"])
            assert named
            assert set(named) <= {example["value"]["code"] for example in examples.values()}
            # What the charging system refuses has the codes of our own refusals, and examples of its own.
            assert all(example["value"]["code"] in (name, name.removeprefix("ocs_")) for name, example in examples.items())


@pytest.mark.parametrize("operation", ALL_OPERATIONS, ids=lambda o: o.id)
def test_every_operation_names_the_refusals_it_declares(operation: AnyOperation) -> None:
    assert {str(refusal.status) for refusal in operation.raises} <= set(described(operation)["responses"])
