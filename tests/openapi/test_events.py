"""What the documents say about events: `webhooks` of OpenAPI, and AsyncAPI."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from operations.catalogue import CATALOGUE
from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import AnyEventType
from operations.intelligence.schedule_reports import INTELLIGENCE_REPORT
from tests.harness.processes import ROOT
from tests.openapi.lamps import document as lamps
from tests.openapi.tools import node_script
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.asyncapi import asyncapi_bytes, build_asyncapi
from transports.openapi.document import build_openapi
from transports.openapi.event_schemas import DELIVERY_HEADERS, event_json_schema, event_title, put_event_schema
from transports.openapi.schemas import Components, OpenapiJson

GOLDEN = ROOT / "docs" / "asyncapi.json"
EVERY = pytest.mark.parametrize("event_type", [*EVENT_TYPES.values(), INTELLIGENCE_REPORT], ids=lambda each: each.name)


@cache
def openapi() -> OpenapiJson:
    return build_openapi(CATALOGUE, COMMITTED_SITE)


@cache
def asyncapi() -> OpenapiJson:
    return build_asyncapi(CATALOGUE, COMMITTED_SITE)


def webhook_of(event_type: AnyEventType) -> OpenapiJson:
    reference: str = openapi()["webhooks"][event_type.name]["$ref"]
    found: OpenapiJson = openapi()["components"]["pathItems"][reference.rpartition("/")[2]]["post"]
    return found


def wrong(value: object, schema: OpenapiJson, document: OpenapiJson, judge: type[Any] = Draft202012Validator) -> list[str]:
    return [each.message for each in judge({**schema, "components": document["components"]}).iter_errors(value)]


def test_the_committed_asyncapi_document_is_that_of_the_declared_types() -> None:
    """`reseller asyncapi > docs/asyncapi.json` writes the file anew."""
    assert GOLDEN.read_bytes() == asyncapi_bytes(CATALOGUE, COMMITTED_SITE, pretty=True)


@pytest.mark.long
def test_every_declared_type_is_a_webhook_and_a_message_and_nothing_else_is() -> None:
    names = [*EVENT_TYPES, INTELLIGENCE_REPORT.name]
    assert list(openapi()["webhooks"]) == names
    assert [message["name"] for message in asyncapi()["components"]["messages"].values()] == names
    assert {each.name for each in EVENT_TYPES.values() if each.read_with not in CATALOGUE.operations} == set()


def test_a_catalogue_that_reads_no_such_object_has_no_webhooks() -> None:
    assert "webhooks" not in lamps()


@EVERY
def test_a_webhook_has_its_headers_and_an_example_that_is_valid(event_type: AnyEventType) -> None:
    webhook = webhook_of(event_type)
    parts = webhook["parameters"]
    assert [(part["name"], part["in"], part["required"]) for part in parts] == [(name, "header", True) for name in DELIVERY_HEADERS]
    assert [wrong(part["example"], part["schema"], openapi()) for part in parts] == [[]] * len(parts)
    content = webhook["requestBody"]["content"]["application/json"]
    assert wrong(content["example"], content["schema"], openapi()) == []
    assert (webhook["summary"], list(webhook["responses"])) == (event_type.about, ["2XX"])
    assert f"since {event_type.since}." in webhook["description"]


@EVERY
def test_a_message_has_an_example_that_is_valid_and_is_known_by_its_webhook_id(event_type: AnyEventType) -> None:
    components = asyncapi()["components"]
    message, [trait] = components["messages"][event_title(event_type)], components["messageTraits"].values()
    [example] = message["examples"]
    assert wrong(example["payload"], message["payload"], asyncapi(), Draft7Validator) == []
    assert wrong(example["headers"], trait["headers"], asyncapi(), Draft7Validator) == []
    assert (trait["correlationId"]["location"], example["headers"]["webhook-id"]) == (
        "$message.header#/webhook-id",
        example["payload"]["id"],
    )
    channels = [name for name, channel in asyncapi()["channels"].items() if event_title(event_type) in channel["messages"]]
    assert channels == ["schedule" if event_type is INTELLIGENCE_REPORT else "webhook"]


@EVERY
def test_a_schema_refuses_another_type_a_missing_member_and_a_wrong_one(event_type: AnyEventType) -> None:
    schema = event_json_schema(event_type)
    assert "$ref" not in json.dumps(schema)
    example: dict[str, Any] = webhook_of(event_type)["requestBody"]["content"]["application/json"]["example"]
    judge = Draft202012Validator(schema)
    judge.check_schema(schema)
    assert judge.is_valid(example)
    assert judge.is_valid({**example, "test": True})
    assert not judge.is_valid({**example, "type": "esim.melted"})
    assert not judge.is_valid({**example, "created": "2026-11-20T09:20:00Z"})
    for name in schema["required"]:
        assert not judge.is_valid({member: value for member, value in example.items() if member != name}), name
    for name in schema["properties"]["data"].get("required", []):
        assert not judge.is_valid({**example, "data": {member: value for member, value in example["data"].items() if member != name}}), name


def test_events_of_lines_alone_have_a_number_that_counts_from_1() -> None:
    numbered = {each.name for each in EVENT_TYPES.values() if "line_seq" in event_json_schema(each)["required"]}
    assert numbered == {name for name in EVENT_TYPES if name.startswith("line.")}


def test_two_schemas_of_one_name_are_refused() -> None:
    components = Components({"EsimIssuanceData": {"type": "string"}})
    with pytest.raises(TypeError, match="two different parts are called EsimIssuanceData"):
        put_event_schema(EVENT_TYPES["esim.issued"], components)


def test_each_channel_sends_its_messages() -> None:
    sent = {each["channel"]["$ref"]: each for each in asyncapi()["operations"].values()}
    assert {name.rpartition("/")[2] for name in sent} == set(asyncapi()["channels"])
    for reference, operation in sent.items():
        channel = asyncapi()["channels"][reference.rpartition("/")[2]]
        assert operation["action"] == "send"
        assert operation["messages"] == [{"$ref": f"{reference}/messages/{name}"} for name in channel["messages"]]


@pytest.mark.long
@pytest.mark.node
def test_the_parser_of_asyncapi_reads_the_document_and_has_nothing_to_remark(tmp_path: Path) -> None:
    (tmp_path / "asyncapi.json").write_bytes(asyncapi_bytes(CATALOGUE, COMMITTED_SITE))
    script = Path(__file__).with_name("asyncapi.mjs")
    done = node_script(script, "@asyncapi/parser", tmp_path / "asyncapi.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    said = json.loads(done.stdout)
    # 3.0.0 is asked for; that there is a newer version of the language is no fault of the document.
    assert [each for each in said["remarks"] if each["code"] != "asyncapi-latest-version"] == []
    assert said["messages"] == [*EVENT_TYPES, INTELLIGENCE_REPORT.name]
