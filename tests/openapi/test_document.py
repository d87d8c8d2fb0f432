"""What the document says about operations of every kind."""

import re

import pytest
from inline_snapshot import snapshot

from tests.openapi.lamps import described, document


def codes(method: str, path: str) -> dict[str, list[str]]:
    responses = described(method, path)["responses"]
    return {status: re.findall(r"`(\w+)`:", found["description"]) for status, found in responses.items() if "$ref" in found}


def test_the_head_names_the_interface_its_licence_and_where_it_is() -> None:
    made = document()
    assert made["openapi"] == "3.1.0"
    assert made["info"]["version"] == "1.0.0"
    assert made["info"]["license"] == {"name": "MIT License", "identifier": "MIT"}
    assert made["servers"] == [{"url": "http://127.0.0.1:8000", "description": "This deployment"}]
    assert made["tags"] == [{"name": "lamps", "description": "Light."}]


def test_only_the_security_schemes_that_are_taken_are_named() -> None:
    assert list(document()["components"]["securitySchemes"]) == ["bearerAuth", "internalBearer"]
    assert described("get", "/v1/about")["security"] == []
    assert described("get", "/v1/lamps")["security"] == [{"bearerAuth": []}]
    assert described("post", "/v1/lamps/{id}/blink")["security"] == [{"internalBearer": []}]


def test_query_parameters_carry_range_default_and_example_and_are_never_null() -> None:
    assert described("get", "/v1/lamps")["parameters"] == snapshot(
        [
            {
                "name": "limit",
                "in": "query",
                "required": False,
                "schema": {"default": 20, "maximum": 100, "minimum": 1, "type": "integer"},
                "description": "How many, 1-100.",
            },
            {
                "name": "colour",
                "in": "query",
                "required": False,
                "schema": {"enum": ["red", "green"], "type": "string"},
                "description": "Only these.",
                "example": "red",
            },
            {
                "name": "rooms",
                "in": "query",
                "required": False,
                "schema": {"items": {"type": "string"}, "maxItems": 5, "type": "array"},
                "description": "Only in these rooms.",
                "style": "form",
                "explode": False,
                "example": ["hall", "attic"],
            },
        ]
    )


def test_a_path_field_is_a_parameter_and_the_other_fields_are_the_body() -> None:
    made = described("post", "/v1/lamps/{id}/dim")
    assert [parameter.get("name") for parameter in made["parameters"]] == ["id", None, None]
    assert made["requestBody"] == {
        "required": False,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/DimLampBody"}}},
    }
    assert document()["components"]["schemas"]["DimLampBody"] == snapshot(
        {
            "additionalProperties": False,
            "description": "How bright.",
            "type": "object",
            "properties": {
                "percent": {"default": 50, "description": "Brightness in percent, 0-100.", "maximum": 100, "minimum": 0, "type": "integer"}
            },
        }
    )


def test_an_operation_whose_path_holds_every_field_has_no_body() -> None:
    assert "requestBody" not in described("post", "/v1/lamps/{id}/blink")


def test_a_required_key_header_goes_by_its_documented_name() -> None:
    assert described("post", "/v1/lamps")["parameters"] == [
        {"$ref": f"#/components/parameters/{name}"} for name in ("XIdempotencyKey", "XApprovalReason")
    ]
    header = document()["components"]["parameters"]["XIdempotencyKey"]
    assert (header["name"], header["required"]) == ("X-Idempotency-Key", True)
    assert "`Idempotency-Key` is taken too" in header["description"]


def test_a_confirmed_operation_takes_the_token_and_announces_the_challenge() -> None:
    made = described("delete", "/v1/lamps/{id}")
    assert {"$ref": "#/components/parameters/XConfirmToken"} in made["parameters"]
    content = made["responses"]["202"]["content"]["application/json"]
    bodies = ("ConfirmTokenRequired", "ApprovalRequired")
    assert content["schema"] == {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in bodies]}
    assert content["example"]["route"] == "DELETE /v1/lamps/{id}"


def test_a_document_is_listed_under_its_media_types() -> None:
    answer = described("get", "/v1/lamps/{id}/picture.{format}")["responses"]["200"]
    assert list(answer["content"]) == ["image/svg+xml", "image/png"]


def test_an_answer_that_can_be_a_document_too_has_its_schema_and_the_other_media_types() -> None:
    answer = described("get", "/v1/lamps/{id}/card")["responses"]["200"]
    assert answer["description"] == "A lamp. `watts` is its power."
    assert answer["content"] == snapshot(
        {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Lamp"},
                "examples": {"example1": {"summary": "A card", "value": {"id": "lmp_a", "watts": 7.5, "colour": None}}},
            },
            "text/html": {"schema": {"type": "string"}},
            "text/plain": {"schema": {"type": "string"}},
        }
    )


def test_a_creation_answers_with_its_status_and_its_headers() -> None:
    responses = described("post", "/v1/lamps")["responses"]
    assert "200" not in responses
    assert list(responses["201"]["headers"]) == ["Request-Id", "RateLimit", "RateLimit-Policy", "Idempotent-Replayed"]
    assert responses["201"]["content"]["application/json"]["examples"] == snapshot(
        {"example1": {"summary": "It's a lamp", "value": {"id": "lmp_a", "watts": 7.5, "colour": None}}}
    )


def test_what_is_not_charged_and_not_keyed_has_no_such_headers() -> None:
    assert list(described("get", "/v1/about")["responses"]["200"]["headers"]) == ["Request-Id"]


def test_components_have_the_names_people_would_give() -> None:
    assert sorted(document()["components"]["schemas"]) == snapshot(
        [
            "ApprovalAmount",
            "ApprovalRef",
            "ApprovalRequired",
            "ConfirmTokenRequired",
            "DimLampBody",
            "Error",
            "Lamp",
            "LampList",
            "LampRequest",
            "Loss",
            "OcsError",
            "OrgNotConnected",
            "OrgRef",
            "QuotaExceeded",
            "UpgradeRequired",
        ]
    )


ALWAYS = {
    "unknown_field",
    "origin_not_allowed",
    "uri_too_long",
    "misdirected_request",
    "headers_too_large",
    "internal",
    "store_unavailable",
}
BODY = {"invalid_request", "invalid_json", "request_timeout", "body_too_large", "unsupported_media_type"}
CALLER = {"unauthorized", "upgrade_required", "credential_restricted", "organization_required", "rate_limited", "quota_exceeded"}
ONCE = {"idempotency_key_reused", "idempotency_in_progress", "approval_declined", "too_many_approvals"}
"""Whatever takes an optional or a required key writes, and so may have to wait for a person."""
UPSTREAM = {"org_not_connected", "ocs_error", "ocs_timeout", "OUTCOME_UNKNOWN", "upstream_unavailable"}


@pytest.mark.parametrize(
    ("method", "path", "ways"),
    [
        pytest.param("get", "/v1/about", {"rate_limited"}, id="public"),
        pytest.param(
            "post",
            "/v1/lamps",
            BODY | CALLER | ONCE | {"idempotency_key_required", "idempotency_key_expired", "colour_taken"},
            id="a write",
        ),
        pytest.param(
            "delete",
            "/v1/lamps/{id}",
            CALLER | ONCE | UPSTREAM | {"invalid_request", "confirm_token_invalid", "not_found", "conflict", "not_implemented"},
            id="reaches the upstream",
        ),
        pytest.param("post", "/v1/lamps/{id}/blink", BODY | {"unauthorized", "not_found"}, id="of the internal key"),
    ],
)
def test_an_operation_can_fail_in_these_ways(method: str, path: str, ways: set[str]) -> None:
    assert {code for each in codes(method, path).values() for code in each} == ALWAYS | ways


def test_a_status_with_two_bodies_offers_both() -> None:
    response = document()["components"]["responses"]["ConflictOrOcsConflictOrOrgNotConnected"]
    assert response["content"]["application/json"]["schema"] == snapshot(
        {
            "anyOf": [
                {"$ref": "#/components/schemas/Error"},
                {"$ref": "#/components/schemas/OrgNotConnected"},
                {"$ref": "#/components/schemas/OcsError"},
            ]
        }
    )
    assert response["content"]["application/json"]["examples"]["org_not_connected"] == snapshot(
        {
            "value": {
                "error": "The active organisation has no upstream account.",
                "code": "org_not_connected",
                "request_id": "req_01k0a8w7zv6q4k3m2n1p0r9s8t",
                "error_code": "org_not_connected",
                "active_org": {"id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t", "name": "Example Travel"},
                "switch_to": {"id": "org_01k0a8w7zv3h5j7k9m1n3p5q7r", "name": "Example Telecom"},
                "connected_orgs": [{"id": "org_01k0a8w7zv3h5j7k9m1n3p5q7r", "name": "Example Telecom"}],
                "connect_url": "http://127.0.0.1:8000/docs",
            }
        }
    )


def test_retry_after_stands_where_repeating_helps() -> None:
    responses = document()["components"]["responses"]
    assert sorted(name for name, response in responses.items() if "Retry-After" in response["headers"]) == snapshot(
        ["Conflict", "ConflictOrOcsConflictOrOrgNotConnected", "OcsUnavailableOrStoreUnavailable", "QuotaExceeded", "StoreUnavailable"]
    )
