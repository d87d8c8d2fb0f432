"""Which refusals an operation can give and when: derived from its declaration and from the pipeline's own rules."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from registry.binding import SEGMENT
from registry.catalogue import AnyOperation
from registry.errors import (
    BadRequest,
    BodyTooLarge,
    Conflict,
    Forbidden,
    HeadersTooLarge,
    Internal,
    Misdirected,
    NotFound,
    OcsBadRequest,
    OcsConflict,
    OcsError,
    OcsUnavailable,
    OrgNotConnected,
    QuotaExceeded,
    Refusal,
    RequestTimeout,
    Restricted,
    RoleRequired,
    StoreUnavailable,
    Unauthorized,
    UnsupportedMediaType,
    UpgradeRequired,
    UriTooLong,
)
from registry.limits import Scope
from registry.operation import Auth
from registry.payments_errors import PaymentsError, PaymentsRefused, PaymentsUnavailable


class Fault(NamedTuple):
    """One way a call can fail. `everywhere`: no property of the operation, so the reference tells it once."""

    refusal: type[Refusal]
    code: str
    when: str
    everywhere: bool = False

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.refusal.status


Applies: TypeAlias = Callable[[AnyOperation], bool]


def has_body(operation: AnyOperation) -> bool:
    """Its fields come as a JSON body, if it has any."""
    return operation.method not in ("GET", "DELETE")


def signed_in(operation: AnyOperation) -> bool:
    """It takes an API key or a session."""
    return operation.auth in (Auth.BEARER, Auth.SESSION)


def demands_scope(operation: AnyOperation) -> bool:
    """Not every tier or role may call it; a SIM or money that moves has the tier checked again."""
    return signed_in(operation) and (operation.moves or bool(operation.scope & ~(Scope.READ | Scope.ANY)))


def throttled(operation: AnyOperation) -> bool:
    """The burst limits spare the service's own shared secrets, and what says that it has none."""
    return operation.limited and operation.auth not in (Auth.INTERNAL, Auth.STOREFRONT)


def first_line(refusal: type[Refusal]) -> str:
    """The refusal in one sentence, as its class says it."""
    return (refusal.__doc__ or refusal.__name__).strip().partition("\n")[0]


def fault(refusal: type[Refusal], when: str = "", code: str = "", *, everywhere: bool = False) -> Fault:
    """A fault that says what its class says, unless told otherwise."""
    return Fault(refusal, code or refusal.code, when or first_line(refusal), everywhere)


RULES: tuple[tuple[Applies, Fault], ...] = (
    (
        lambda o: bool(o.params.model_fields) or o.once is not None,
        fault(BadRequest, "A field breaks its rule; `param` names it, `error` tells the rule."),
    ),
    (lambda o: True, fault(BadRequest, "The input has a field that this operation does not know.", "unknown_field")),
    (has_body, fault(BadRequest, "The body is not one JSON object.", "invalid_json")),
    (lambda o: o.once is not None and o.once.required, fault(BadRequest, "The key header is missing.", "idempotency_key_required")),
    (
        lambda o: o.confirmable,
        fault(BadRequest, "The confirm token is wrong, expired, already used, or another call's.", "confirm_token_invalid"),
    ),
    (lambda o: o.auth is not Auth.PUBLIC, fault(Unauthorized)),
    (demands_scope, fault(UpgradeRequired, "The tier of your organisation, or your role in it, does not carry the scope.")),
    (lambda o: True, fault(Forbidden, everywhere=True)),
    (signed_in, fault(Restricted, everywhere=True)),
    (lambda o: o.role is not None, fault(RoleRequired)),
    (
        lambda o: o.role is None and o.replaces is not None,
        fault(RoleRequired, "The call would replace what is live, which is for admins of the organisation."),
    ),
    (lambda o: SEGMENT.search(o.path) is not None, fault(NotFound)),
    (has_body, fault(RequestTimeout)),
    (lambda o: o.organisation, fault(Conflict, "You belong to no organisation, and this acts for one.", "organization_required")),
    (lambda o: o.upstream, fault(OrgNotConnected)),
    (lambda o: o.once is not None, fault(Conflict, "The key was used before, with other input.", "idempotency_key_reused")),
    (
        lambda o: o.once is not None and o.once.forever,
        fault(Conflict, "The key was used long ago and its answer is not kept any more; nothing was done now.", "idempotency_key_expired"),
    ),
    (lambda o: o.once is not None, fault(Conflict, "An earlier call with the key is still running.", "idempotency_in_progress")),
    (has_body, fault(BodyTooLarge)),
    (lambda o: True, fault(UriTooLong, everywhere=True)),
    (has_body, fault(UnsupportedMediaType)),
    (lambda o: True, fault(Misdirected, everywhere=True)),
    (throttled, fault(QuotaExceeded, "Too many calls at once; `Retry-After` says when to repeat.", "rate_limited")),
    (lambda o: o.charged, fault(QuotaExceeded, "The calls of this UTC day are used up.")),
    (lambda o: True, fault(HeadersTooLarge, everywhere=True)),
    (lambda o: True, fault(Internal, everywhere=True)),
    (lambda o: o.upstream and not o.read_only, fault(OcsBadRequest)),
    (lambda o: o.upstream, fault(OcsConflict)),
    (lambda o: o.upstream, fault(OcsUnavailable)),
    (lambda o: o.upstream, fault(OcsError)),
    (lambda o: o.upstream, fault(OcsError, "The charging system did not answer in time; `outcome_unknown` marks a write.", "ocs_timeout")),
    (lambda o: o.upstream and o.once is not None, fault(OcsError, "What became of the first call is not known.", "OUTCOME_UNKNOWN")),
    (lambda o: o.processor, fault(PaymentsUnavailable)),
    (lambda o: o.processor, fault(PaymentsError)),
    (
        lambda o: o.processor,
        fault(PaymentsError, "No answer in time; `outcome_unknown` marks a write.", "payments_timeout"),
    ),
    (lambda o: o.processor and o.once is not None, fault(PaymentsError, "What became of the first call is not known.", "OUTCOME_UNKNOWN")),
    (lambda o: o.processor and not o.read_only, fault(PaymentsRefused)),
    (lambda o: True, fault(StoreUnavailable, everywhere=True)),
)


def faults_of(operation: AnyOperation) -> list[Fault]:
    """Every way a call of the operation can fail, by status; each code once."""
    found = [told for applies, told in RULES if applies(operation)]
    known = {(told.refusal, told.code) for told in found}
    found += [told for told in map(fault, operation.raises) if (told.refusal, told.code) not in known]
    return sorted(found, key=lambda told: told.status)
