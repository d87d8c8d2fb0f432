"""Every refusal the service can give: HTTP status, code, and the body the doors render and OpenAPI lists."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict, Unpack

from registry.challenge import Loss
from registry.free_text import FreeText


class Error(TypedDict):
    """A refusal: `error` is for people, `code` for programs."""

    error: str
    code: str
    request_id: str
    param: NotRequired[str]
    hint: NotRequired[str]


class OrgRef(TypedDict):
    """An organisation the caller belongs to."""

    id: str
    name: str


class OrgNotConnectedBody(Error):
    """The active organisation has no connected account."""

    error_code: Literal["org_not_connected"]
    active_org: OrgRef
    switch_to: OrgRef
    connected_orgs: list[OrgRef]
    connect_url: str


class QuotaExceededBody(Error):
    """A burst limit or the daily quota is used up; `reset_at` is RFC 3339 UTC."""

    limit: int
    used: int
    reset_at: str
    upgrade_url: str


class UpgradeRequiredBody(Error):
    """The caller's tier or role does not carry the scope this operation needs."""

    required_tier: Literal["pro", "enterprise"]
    upgrade_url: str


class ConfirmTokenRequiredBody(TypedDict):
    """The first half of a two-step operation: repeat the call with the token to execute it."""

    message: str
    confirm_token: str
    expires_in_seconds: int
    route: str
    hint: str
    losses: NotRequired[Annotated[list[Loss], Field(description="What the call would destroy or spend, where that is known")]]


class PreconditionFailedBody(Error):
    """The object has another version than `If-Match` names. Who changed it is told as the audit log of the organisation names them."""

    changed_at: NotRequired[Annotated[str, Field(description="RFC 3339 UTC; absent: nobody knows")]]
    changed_by: NotRequired[Annotated[str, Field(description="The person, or whoever runs the service; absent: nobody knows")]]
    changed_by_name: NotRequired[FreeText | None]
    changed_with: NotRequired[Annotated[str | None, Field(description="The key (key_) or login (gnt_) that was presented")]]


class OcsErrorBody(Error):
    """The upstream charging system refused or failed; `ocs_code` is its own status code when it gave one.

    400: other input is needed. 409: the state stands in the way. 502: calling again may help.

    `outcome_unknown`: what was asked for may have been done; it is not repeated by itself.
    """

    ocs_code: NotRequired[int]
    details: NotRequired[dict[str, object]]
    outcome_unknown: NotRequired[Literal[True]]


class RefusalFacts(TypedDict, total=False):
    """What distinguishes a class of refusals. `uncharged`: the call costs no quota, since the service itself refuses to ask a provider."""

    status: int
    code: str
    body_type: type
    uncharged: bool


class Refusal(Exception):
    """A call that is answered with an error body. A subclass names the status, the default code and the body's shape where it differs."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    body_type: ClassVar[type] = Error

    def __init_subclass__(cls, **facts: Unpack[RefusalFacts]) -> None:
        for name, fact in facts.items():
            setattr(cls, name, fact)

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = code or type(self).code
        self.param = param
        self.hint = hint
        self.headers: dict[str, str] = {}
        self.own_fields: Mapping[str, object] = {}

    def fields(self) -> Mapping[str, object]:
        """What the named body adds to the common fields."""
        return self.own_fields

    def body(self, request_id: str) -> dict[str, object]:
        """The whole body, common fields first."""
        body: dict[str, object] = {"error": self.message, "code": self.error_code, "request_id": request_id}
        if self.param is not None:
            body["param"] = self.param
        if self.hint is not None:
            body["hint"] = self.hint
        body.update(self.fields())
        return body


class BadRequest(Refusal, status=400, code="invalid_request"):
    """The input breaks a rule; nothing was changed and nothing was charged."""


class Unauthorized(Refusal, status=401, code="unauthorized"):
    """No credential, or one that is not accepted here."""

    def __init__(self, message: str, *, presented: bool, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, code=code, hint=hint)
        # RFC 6750 section 3.1: no error attribute when no credential was presented.
        challenge = 'Bearer realm="connectivity"'
        self.headers["WWW-Authenticate"] = f'{challenge}, error="invalid_token"' if presented else challenge


class UpgradeRequired(Refusal, status=402, code="upgrade_required", body_type=UpgradeRequiredBody):
    """The tier or role lacks the scope."""

    def __init__(self, message: str, *, required_tier: Literal["pro", "enterprise"], upgrade_url: str) -> None:
        super().__init__(message)
        self.own_fields = {"required_tier": required_tier, "upgrade_url": upgrade_url}


class Forbidden(Refusal, status=403, code="origin_not_allowed"):
    """A browser page of another origin called; never used for scopes, which answer 402."""


class Restricted(Refusal, status=403, code="credential_restricted"):
    """The credential may do less than its maker: a restricted key, or a login that was granted less."""

    def __init__(self, message: str, *, param: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, param=param, hint=hint or "Use another key, or have an admin make one that may do this")


class RoleRequired(Refusal, status=403, code="role_required"):
    """The operation is for admins of the organisation, whatever its tier."""


class NotFound(Refusal, status=404, code="not_found"):
    """Unknown, or another organisation's: the two are answered alike."""


class MethodNotAllowed(Refusal, status=405, code="method_not_allowed"):
    """The path exists, the method does not."""

    def __init__(self, message: str, *, allow: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.headers["Allow"] = allow


class RequestTimeout(Refusal, status=408, code="request_timeout"):
    """The client took too long to send its request."""


class Conflict(Refusal, status=409, code="conflict"):
    """The state of the resource, or another call, stands in the way."""


class EndOfLife(Conflict, code="subscriber_end_of_life", body_type=OcsErrorBody):
    """The line has reached its end of life and takes no more changes."""

    def __init__(self, message: str, *, ocs_code: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.own_fields = {} if ocs_code is None else {"ocs_code": ocs_code}


class OrgNotConnected(Refusal, status=409, code="org_not_connected", body_type=OrgNotConnectedBody):
    """The active organisation has no upstream account."""

    def __init__(self, message: str, *, active: OrgRef, connected: list[OrgRef], connect_url: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.own_fields = {
            "error_code": "org_not_connected",
            "active_org": active,
            "switch_to": connected[0] if connected else active,
            "connected_orgs": connected,
            "connect_url": connect_url,
        }


class PreconditionFailed(Refusal, status=412, code="precondition_failed", body_type=PreconditionFailedBody):
    """What the call would change has changed since the version that `If-Match` names; nothing was done."""

    def __init__(self, message: str, *, hint: str, version: object) -> None:
        """`version`: the object as it is now, from which who changed it is found out; None where there is no object."""
        super().__init__(message, hint=hint)
        self.version = version


class BodyTooLarge(Refusal, status=413, code="body_too_large"):
    """More bytes than the operation takes."""


class UriTooLong(Refusal, status=414, code="uri_too_long"):
    """The request target is longer than 8 KiB."""


class UnsupportedMediaType(Refusal, status=415, code="unsupported_media_type"):
    """The body is not plain, uncompressed JSON."""


class Misdirected(Refusal, status=421, code="misdirected_request"):
    """The Host header names a host this server does not serve."""


class HeadersTooLarge(Refusal, status=431, code="headers_too_large"):
    """More header bytes than the server takes."""


class QuotaExceeded(Refusal, status=429, code="quota_exceeded", body_type=QuotaExceededBody):
    """The burst limit (`rate_limited`) or the daily quota (`quota_exceeded`) is used up."""

    def __init__(
        self,
        message: str,
        *,
        limit: int,
        used: int,
        reset_at: str,
        retry_after: int,
        upgrade_url: str,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.own_fields = {"limit": limit, "used": used, "reset_at": reset_at, "upgrade_url": upgrade_url}
        seconds = max(1, retry_after)
        self.headers["Retry-After"] = str(seconds)
        # A burst's window follows from its rate, which is no part of the answer: only the daily policy names one.
        name, window = ("tier", ";w=86400") if self.error_code == "quota_exceeded" else ("burst", "")
        self.headers["RateLimit-Policy"] = f'"{name}";q={limit}{window}'
        self.headers["RateLimit"] = f'"{name}";r=0;t={seconds}'


class Internal(Refusal):
    """A fault of ours; the request id is all the caller gets."""

    def __init__(self, message: str = "Internal error; quote the request id when you report it") -> None:
        super().__init__(message)


class NotSupported(Refusal, status=501, code="not_implemented"):
    """The operation exists and is not offered."""


class ProviderError(Refusal, status=502, code="provider_error"):
    """An outside system failed. Its own text is never forwarded.

    `outcome_unknown`: a write may have happened. `before_execution`: it surely has not, and the same call may be made again.
    `uncharged`: such a call costs no quota, since the service itself refuses to ask; nothing was sent, and it may be made again soon.
    """

    uncharged: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        outcome_unknown: bool = False,
        before_execution: bool = False,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.outcome_unknown = outcome_unknown
        self.before_execution = before_execution or self.uncharged
        if retry_after is not None or self.uncharged:
            self.headers["Retry-After"] = str(max(1, retry_after or 1))

    def fields(self) -> Mapping[str, object]:
        return {"outcome_unknown": True} if self.outcome_unknown else {}


class OcsError(ProviderError, code="ocs_error", body_type=OcsErrorBody):
    """The upstream charging system failed. Its own text is never forwarded."""

    def __init__(
        self,
        message: str,
        *,
        ocs_code: int | None = None,
        code: str | None = None,
        hint: str | None = None,
        outcome_unknown: bool = False,
        before_execution: bool = False,
        details: Mapping[str, object] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(
            message, code=code, hint=hint, outcome_unknown=outcome_unknown, before_execution=before_execution, retry_after=retry_after
        )
        self.ocs_code = ocs_code
        self.details = details

    def fields(self) -> Mapping[str, object]:
        known = {"ocs_code": self.ocs_code, "details": None if self.details is None else dict(self.details)}
        return {**{name: value for name, value in known.items() if value is not None}, **super().fields()}

    def retold(self, message: str, *, code: str | None = None, hint: str | None = None) -> "OcsError":
        """The same refusal, with the same status and ocs_code, in other words."""
        return type(self)(message, ocs_code=self.ocs_code, code=code, hint=hint, details=self.details)


class OcsNotFound(OcsError):
    """What the call named does not exist, or belongs to another reseller: codes 6 and 11, which our errors do not distinguish."""


class OcsUnavailable(OcsError, status=503, code="upstream_unavailable", uncharged=True):
    """The charging system does not answer, or too many calls wait for it: nothing was sent, and the key and the quota are as before."""


class OcsBadRequest(OcsError, status=400, code="invalid_request"):
    """The charging system does not take this input; nothing was done, and the same call is refused again."""


class OcsConflict(OcsError, status=409, code="conflict"):
    """The state of things at the charging system stands in the way; nothing was done, and the same call is refused until it changes."""


class Unverifiable(Refusal, status=502, code="payment_state_unverifiable"):
    """An outside system could not be asked, so the answer would be a guess."""


class StoreUnavailable(Refusal, status=503, code="store_unavailable"):
    """The database is busy, full or gone; nothing was done, unless the error says that this is not known."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.headers["Retry-After"] = "1"


class CommitUnknown(StoreUnavailable):
    """The database went away during a commit: whether the transaction took effect is not known."""

    def __init__(self) -> None:
        super().__init__(
            "The connection to the database broke during the commit; whether the call was done is not known",
            hint="Repeat it with the same Idempotency-Key, which is done at most once; without a key, look first whether it was done",
        )


class KeyUnknown(Refusal, status=503, code="store_unavailable"):
    """A stored value was sealed with an encryption key that this process does not have; nothing was done. Other processes may have it.

    Choice: its code is that of an unavailable store. For a caller it is the same: the service cannot read what it has stored, and the
    call may be repeated; which key it is concerns whoever runs the service, who finds it in the log and by `reseller doctor`. It is no
    StoreUnavailable, since it is about one value: work for others goes on.
    """

    def __init__(self, key_id: str) -> None:
        super().__init__("The service cannot open what it has stored, until the encryption key of another of its processes is here too")
        self.key_id = key_id
        self.hint = "Repeat the call in a few seconds, with the idempotency key that it had"
        self.headers["Retry-After"] = "10"


class ConfirmTokenRequired(Refusal, status=202, code="confirm_token_required", body_type=ConfirmTokenRequiredBody):
    """Raised, though a 2xx: the operation waits for its confirm token."""

    def __init__(self, message: str, *, confirm_token: str, expires_in_seconds: int, route: str, losses: Sequence[Loss] = ()) -> None:
        how = f"Repeat the same request with the header X-Confirm-Token: {confirm_token}, within {expires_in_seconds} s"
        super().__init__(message, hint=how)
        self.confirm_token, self.expires_in_seconds, self.route, self.losses = confirm_token, expires_in_seconds, route, losses

    def body(self, request_id: str) -> dict[str, object]:
        body: dict[str, object] = {
            "message": self.message,
            "confirm_token": self.confirm_token,
            "expires_in_seconds": self.expires_in_seconds,
            "route": self.route,
            "hint": self.hint,
        }
        return {**body, "losses": list(self.losses)} if self.losses else body


class ApprovalAmount(TypedDict):
    """Money that the call makes due at most, in minor units of its currency."""

    amount: int
    currency: str


class ApprovalRef(TypedDict):
    """A request that waits for a person. `idempotency_key`: a call repeated with it gets the result; `expires` is RFC 3339 UTC."""

    id: str
    sentence: str
    money: list[ApprovalAmount]
    expires: str
    page: str
    idempotency_key: str


class ApprovalRequiredBody(TypedDict):
    """The call waits until a person approves it on `approval.page`; nothing was done."""

    message: str
    expires_in_seconds: int
    route: str
    hint: str
    approval: ApprovalRef


class ApprovalRequired(Refusal, status=202, code="approval_required", body_type=ApprovalRequiredBody):
    """Raised, though a 2xx: a person has to approve the call first, which no credential of a program can do."""

    def __init__(self, message: str, *, expires_in_seconds: int, route: str, approval: ApprovalRef) -> None:
        how = (
            f"Ask whoever runs this for you to open {approval['page']}, then repeat the same call with the idempotency key "
            f"{approval['idempotency_key']}: it gets the result. No call, form or card approves it. A reason for them is taken as "
            "X-Approval-Reason, as a tool's argument approval_reason"
        )
        super().__init__(message, hint=how)
        self.expires_in_seconds, self.route, self.approval = expires_in_seconds, route, approval

    def body(self, request_id: str) -> dict[str, object]:
        return {
            "message": self.message,
            "expires_in_seconds": self.expires_in_seconds,
            "route": self.route,
            "hint": self.hint,
            "approval": self.approval,
        }


class PaymentsErrorBody(Error):
    """The payment processor failed; `outcome_unknown`: what was asked for may have been done, and is not repeated by itself."""

    outcome_unknown: NotRequired[Literal[True]]


class PaymentsRefusedBody(Error):
    """The payment processor refused; `processor_code` is its own word for why."""

    processor_code: NotRequired[str]


class PaymentsError(ProviderError, code="payments_error", body_type=PaymentsErrorBody):
    """The payment processor failed. Its own text is never forwarded."""


class PaymentsUnavailable(PaymentsError, status=503, code="upstream_unavailable", uncharged=True):
    """The payment processor does not answer, or too many calls wait for it: nothing was sent, and the key and the quota are as before."""


class PaymentsRefused(Refusal, status=400, code="payments_refused", body_type=PaymentsRefusedBody):
    """The payment processor refused what was asked of it; nothing was done there."""

    def __init__(self, message: str, *, processor_code: str | None = None, param: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, param=param, hint=hint)
        self.processor_code = processor_code
        self.own_fields = {} if processor_code is None else {"processor_code": processor_code}
