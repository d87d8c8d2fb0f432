"""Refusals that come from the payment processor."""

from collections.abc import Mapping
from typing import Literal, NotRequired

from registry.errors import Error, ProviderError, Refusal


class PaymentsErrorBody(Error):
    """The payment processor failed; `outcome_unknown`: what was asked for may have been done, and is not repeated by itself."""

    outcome_unknown: NotRequired[Literal[True]]


class PaymentsRefusedBody(Error):
    """The payment processor refused; `processor_code` is its own word for why."""

    processor_code: NotRequired[str]


class PaymentsError(ProviderError):
    """The payment processor failed. Its own text is never forwarded."""

    code = "payments_error"
    body_type = PaymentsErrorBody


class PaymentsUnavailable(PaymentsError):
    """The payment processor does not answer, or too many calls wait for it: nothing was sent, and the key and the quota are as before."""

    status = 503
    code = "upstream_unavailable"
    uncharged = True

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message, before_execution=True, retry_after=retry_after)


class PaymentsRefused(Refusal):
    """The payment processor refused what was asked of it; nothing was done there."""

    status = 400
    code = "payments_refused"
    body_type = PaymentsRefusedBody

    def __init__(self, message: str, *, processor_code: str | None = None, param: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, param=param, hint=hint)
        self.processor_code = processor_code

    def fields(self) -> Mapping[str, object]:
        return {} if self.processor_code is None else {"processor_code": self.processor_code}
