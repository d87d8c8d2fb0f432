"""Example bodies of refusals, as a caller would see them."""

from collections.abc import Mapping
from typing import Literal

from registry.errors import (
    ConfirmTokenRequiredBody,
    Error,
    OcsErrorBody,
    OrgNotConnectedBody,
    QuotaExceededBody,
    UpgradeRequiredBody,
)
from registry.payments_errors import PaymentsErrorBody, PaymentsRefusedBody
from transports.openapi.refusals import Fault

REQUEST_ID = "req_01k0a8w7zv6q4k3m2n1p0r9s8t"
ORG: dict[Literal["id", "name"], str] = {"id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t", "name": "Example Travel"}
OTHER_ORG: dict[Literal["id", "name"], str] = {"id": "org_01k0a8w7zv3h5j7k9m1n3p5q7r", "name": "Example Telecom"}

TEXTS: Mapping[str, Mapping[str, str]] = {
    "invalid_request": {
        "error": "limit: got 0; must be >= 1",
        "param": "limit",
        "hint": "How many to return, 1-100.",
    },
    "unknown_field": {"error": "colour: unknown field", "param": "colour", "hint": "Remove it. Known fields: plan, metadata"},
    "invalid_json": {"error": "The body must be a JSON object"},
    "idempotency_key_required": {
        "error": "Idempotency-Key: missing; it is required, so that a repeated call has one effect",
        "param": "idempotency_key",
        "hint": "Send 1-255 visible ASCII characters, for example a UUID, and the same ones when you repeat the call",
    },
    "unauthorized": {
        "error": "No credential: this operation needs one",
        "hint": "Send Authorization: Bearer <API key or session token>",
    },
    "rate_limited": {"error": "Too many calls at once: the burst limit is 10; wait 1 s and repeat the call"},
    "quota_exceeded": {"error": "The daily quota of 1000 calls is used up; it starts again at 2026-11-21T00:00:00Z"},
}


def named_fields(body_type: type, base_url: str, code: str) -> dict[str, object]:
    """What a named body adds to the common fields."""
    docs = f"{base_url}/docs"
    size = 10 if code == "rate_limited" else 1000
    bodies: Mapping[type, dict[str, object]] = {
        Error: {},
        OcsErrorBody: {"ocs_code": 2},
        OrgNotConnectedBody: {
            "error_code": "org_not_connected",
            "active_org": ORG,
            "switch_to": OTHER_ORG,
            "connected_orgs": [OTHER_ORG],
            "connect_url": docs,
        },
        PaymentsErrorBody: {},
        PaymentsRefusedBody: {"processor_code": "parameter_invalid_integer"},
        QuotaExceededBody: {"limit": size, "used": size, "reset_at": "2026-11-21T00:00:00Z", "upgrade_url": docs},
        UpgradeRequiredBody: {"required_tier": "pro", "upgrade_url": docs},
    }
    return bodies[body_type]


def sample(told: Fault, base_url: str) -> dict[str, object]:
    """One body of one fault."""
    text = TEXTS.get(told.code, {"error": told.when.replace("`", "")})
    common: dict[str, object] = {"error": text["error"], "code": told.code, "request_id": REQUEST_ID}
    extra = {name: value for name, value in text.items() if name != "error"}
    return common | extra | named_fields(told.refusal.body_type, base_url, told.code)


TOKEN = "3q2-7wXv1nB0c9z8y7x6w5v4u3t2s1r0q9p8o7n6m5l"


def challenge(method: str, path: str) -> ConfirmTokenRequiredBody:
    """The first half of a confirmed call."""
    return {
        "message": "This will remove every package from the line.",
        "confirm_token": TOKEN,
        "expires_in_seconds": 120,
        "route": f"{method} {path}",
        "hint": f"Repeat the same request with the header X-Confirm-Token: {TOKEN}, within 120 s",
    }
