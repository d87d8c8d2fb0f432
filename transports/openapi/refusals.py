"""Which refusals an operation can give and when, from its declaration and the pipeline's own rules; and example bodies of them."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from registry import approvals, errors
from registry.catalogue import AnyOperation
from registry.operation import Auth, Scope


class OperationFault(NamedTuple):
    """One way a call can fail. `everywhere`: no property of the operation, so the reference tells it once."""

    refusal: type[errors.Refusal]
    code: str
    when: str
    everywhere: bool = False

    @property
    def status(self) -> int:
        return self.refusal.status


FaultCondition: TypeAlias = Callable[[AnyOperation], bool]


def has_json_body(operation: AnyOperation) -> bool:
    """Its fields come as a JSON body, if it has any."""
    return operation.method not in ("GET", "DELETE")


def _takes_key_or_session(operation: AnyOperation) -> bool:
    return operation.auth in (Auth.BEARER, Auth.SESSION)


def _demands_scope(operation: AnyOperation) -> bool:
    """Not every tier or role may call it; a SIM or money that moves has the tier checked again."""
    return _takes_key_or_session(operation) and (operation.moves or bool(operation.scope & ~(Scope.READ | Scope.ANY)))


def _is_throttled(operation: AnyOperation) -> bool:
    """The burst limits spare the service's own shared secrets, and what says that it has none."""
    return operation.limited and operation.auth not in (Auth.INTERNAL, Auth.STOREFRONT)


def refusal_sentence(refusal: type[errors.Refusal]) -> str:
    return (refusal.__doc__ or refusal.__name__).strip().partition("\n")[0]


def _fault(refusal: type[errors.Refusal], when: str = "", code: str = "", *, everywhere: bool = False) -> OperationFault:
    """A fault that says what its class says, unless `when` or `code` say otherwise."""
    return OperationFault(refusal, code or refusal.code, when or refusal_sentence(refusal), everywhere)


FAULT_RULES: tuple[tuple[FaultCondition, OperationFault], ...] = (
    (
        lambda o: bool(o.params.model_fields) or o.once is not None,
        _fault(errors.BadRequest, "A field breaks its rule; `param` names it, `error` tells the rule."),
    ),
    (lambda o: True, _fault(errors.BadRequest, "The input has a field that this operation does not know.", "unknown_field")),
    (has_json_body, _fault(errors.BadRequest, "The body is not one JSON object.", "invalid_json")),
    (lambda o: o.once is not None and o.once.required, _fault(errors.BadRequest, "The key header is missing.", "idempotency_key_required")),
    (
        lambda o: o.confirmable,
        _fault(errors.BadRequest, "The confirm token is wrong, expired, already used, or another call's.", "confirm_token_invalid"),
    ),
    (lambda o: o.auth is not Auth.PUBLIC, _fault(errors.Unauthorized)),
    (_demands_scope, _fault(errors.UpgradeRequired, "The tier of your organisation, or your role in it, does not carry the scope.")),
    (lambda o: True, _fault(errors.Forbidden, everywhere=True)),
    (_takes_key_or_session, _fault(errors.Restricted, everywhere=True)),
    (lambda o: o.approvable, _fault(approvals.ApprovalDeclined, everywhere=True)),
    (lambda o: o.approvable, _fault(approvals.TooManyApprovals, everywhere=True)),
    (lambda o: o.role is not None, _fault(errors.RoleRequired)),
    (
        lambda o: o.role is None and o.replaces is not None,
        _fault(errors.RoleRequired, "The call would replace what is live, which is for admins of the organisation."),
    ),
    (lambda o: "{" in o.path, _fault(errors.NotFound)),
    (has_json_body, _fault(errors.RequestTimeout)),
    (lambda o: o.organisation, _fault(errors.Conflict, "You belong to no organisation, and this acts for one.", "organization_required")),
    (lambda o: o.upstream, _fault(errors.OrgNotConnected)),
    (lambda o: o.once is not None, _fault(errors.Conflict, "The key was used before, with other input.", "idempotency_key_reused")),
    (
        lambda o: o.once is not None and o.once.forever,
        _fault(
            errors.Conflict,
            "The key was used long ago and its answer is not kept any more; nothing was done now.",
            "idempotency_key_expired",
        ),
    ),
    (lambda o: o.once is not None, _fault(errors.Conflict, "An earlier call with the key is still running.", "idempotency_in_progress")),
    (lambda o: o.versioned is not None, _fault(errors.PreconditionFailed)),
    (has_json_body, _fault(errors.BodyTooLarge)),
    (lambda o: True, _fault(errors.UriTooLong, everywhere=True)),
    (has_json_body, _fault(errors.UnsupportedMediaType)),
    (lambda o: True, _fault(errors.Misdirected, everywhere=True)),
    (_is_throttled, _fault(errors.QuotaExceeded, "Too many calls at once; `Retry-After` says when to repeat.", "rate_limited")),
    (lambda o: o.charged, _fault(errors.QuotaExceeded, "The calls of this UTC day are used up.")),
    (lambda o: True, _fault(errors.HeadersTooLarge, everywhere=True)),
    (lambda o: True, _fault(errors.Internal, everywhere=True)),
    (lambda o: o.upstream and not o.read_only, _fault(errors.OcsBadRequest)),
    (lambda o: o.upstream, _fault(errors.OcsConflict)),
    (lambda o: o.upstream, _fault(errors.OcsUnavailable)),
    (lambda o: o.upstream, _fault(errors.OcsError)),
    (
        lambda o: o.upstream,
        _fault(errors.OcsError, "The charging system did not answer in time; `outcome_unknown` marks a write.", "ocs_timeout"),
    ),
    (
        lambda o: o.upstream and o.once is not None,
        _fault(errors.OcsError, "What became of the first call is not known.", "OUTCOME_UNKNOWN"),
    ),
    (lambda o: o.processor, _fault(errors.PaymentsUnavailable)),
    (lambda o: o.processor, _fault(errors.PaymentsError)),
    (
        lambda o: o.processor,
        _fault(errors.PaymentsError, "No answer in time; `outcome_unknown` marks a write.", "payments_timeout"),
    ),
    (
        lambda o: o.processor and o.once is not None,
        _fault(errors.PaymentsError, "What became of the first call is not known.", "OUTCOME_UNKNOWN"),
    ),
    (lambda o: o.processor and not o.read_only, _fault(errors.PaymentsRefused)),
    (lambda o: True, _fault(errors.StoreUnavailable, everywhere=True)),
)


def operation_faults(operation: AnyOperation) -> list[OperationFault]:
    """Every way a call of the operation can fail, by status; each code once."""
    found = [fault for applies, fault in FAULT_RULES if applies(operation)]
    known = {(fault.refusal, fault.code) for fault in found}
    found += [fault for fault in map(_fault, operation.raises) if (fault.refusal, fault.code) not in known]
    return sorted(found, key=lambda fault: fault.status)


_SAMPLE_REQUEST_ID = "req_01k0a8w7zv6q4k3m2n1p0r9s8t"
_SAMPLE_ORG: dict[Literal["id", "name"], str] = {"id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t", "name": "Example Travel"}
_SAMPLE_OTHER_ORG: dict[Literal["id", "name"], str] = {"id": "org_01k0a8w7zv3h5j7k9m1n3p5q7r", "name": "Example Telecom"}

_SAMPLE_TEXTS: Mapping[str, Mapping[str, str]] = {
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
    "precondition_failed": {
        "error": "The shop was changed at 2026-11-20T09:00:00Z by Ada Berg, after the version that If-Match names; nothing was changed now",
        "hint": "Read it again with get_storefront, see whether your change still fits, and send it with the ETag of that answer",
    },
    "rate_limited": {"error": "Too many calls at once: the burst limit is 10; wait 1 s and repeat the call"},
    "quota_exceeded": {"error": "The daily quota of 1000 calls is used up; it starts again at 2026-11-21T00:00:00Z"},
}


def _sample_fields(body_type: type, base_url: str, code: str) -> dict[str, object]:
    docs = f"{base_url}/docs"
    size = 10 if code == "rate_limited" else 1000
    bodies: Mapping[type, dict[str, object]] = {
        errors.Error: {},
        errors.OcsErrorBody: {"ocs_code": 2},
        errors.OrgNotConnectedBody: {
            "error_code": "org_not_connected",
            "active_org": _SAMPLE_ORG,
            "switch_to": _SAMPLE_OTHER_ORG,
            "connected_orgs": [_SAMPLE_OTHER_ORG],
            "connect_url": docs,
        },
        errors.PaymentsErrorBody: {},
        errors.PaymentsRefusedBody: {"processor_code": "parameter_invalid_integer"},
        errors.PreconditionFailedBody: {
            "changed_at": "2026-11-20T09:00:00Z",
            "changed_by": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
            "changed_by_name": "Ada Berg",
            "changed_with": None,
        },
        errors.QuotaExceededBody: {"limit": size, "used": size, "reset_at": "2026-11-21T00:00:00Z", "upgrade_url": docs},
        errors.UpgradeRequiredBody: {"required_tier": "pro", "upgrade_url": docs},
    }
    return bodies[body_type]


def sample_refusal(fault: OperationFault, base_url: str) -> dict[str, object]:
    text = _SAMPLE_TEXTS.get(fault.code, {"error": fault.when.replace("`", "")})
    common: dict[str, object] = {"error": text["error"], "code": fault.code, "request_id": _SAMPLE_REQUEST_ID}
    extra = {name: value for name, value in text.items() if name != "error"}
    return common | extra | _sample_fields(fault.refusal.body_type, base_url, fault.code)


def sample_approval_required() -> errors.ApprovalRequiredBody:
    approval = "apr_01k0a8w7zv6q4k3m2n1p0r9s8t"
    key, page = "idk_01k0a8w7zv6q4k3m2n1p0r9s8t", f"https://api.example.com{approvals.APPROVALS_PAGE}?approval={approval}"
    sentence = "This will refund 25.00 EUR to the buyer of order ord_2041."
    return {
        "message": sentence,
        "expires_in_seconds": 86_400,
        "route": "POST /v1/operator-billing/refunds",
        "hint": f"Ask whoever runs this for you to open {page}, then repeat the same call with the idempotency key {key}",
        "approval": {
            "id": approval,
            "sentence": sentence,
            "money": [{"amount": 2500, "currency": "EUR"}],
            "expires": "2026-11-21T09:00:00Z",
            "page": page,
            "idempotency_key": key,
        },
    }


_SAMPLE_CONFIRM_TOKEN = "3q2-7wXv1nB0c9z8y7x6w5v4u3t2s1r0q9p8o7n6m5l"


def sample_confirm_challenge(method: str, path: str) -> errors.ConfirmTokenRequiredBody:
    return {
        "message": "This will remove every package from the line.",
        "confirm_token": _SAMPLE_CONFIRM_TOKEN,
        "expires_in_seconds": 120,
        "route": f"{method} {path}",
        "hint": f"Repeat the same request with the header X-Confirm-Token: {_SAMPLE_CONFIRM_TOKEN}, within 120 s",
    }
