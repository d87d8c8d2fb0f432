"""What became of one attempt, and which error its caller gets. The processor's own texts are dropped here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from clients.failure import NEVER_SENT, FailureKind
from clients.outside_system import Reason
from clients.payments.failure import AccountDetached, KeyRefused
from registry.errors import NotFound, Refusal
from registry.payments_errors import PaymentsError, PaymentsRefused, PaymentsUnavailable

T = TypeVar("T")
REFUSALS = (400, 402, 404)
UNKNOWN_OUTCOME = " Whether it was done is not known: look before you repeat it under another key."
TEXTS = {
    "account_country_invalid_address": "the country does not fit the account",
    "amount_too_large": "the amount is more than the processor takes",
    "amount_too_small": "the amount is less than the processor takes",
    "balance_insufficient": "the account's available balance does not cover it",
    "charge_already_refunded": "the charge has been refunded in full",
    "charge_disputed": "the payer's bank disputes the charge, so it cannot be refunded",
    "country_unsupported": "the processor does not serve this country",
    "email_invalid": "the e-mail address is not valid",
    "insufficient_funds": "the account's available balance does not cover it",
    "invalid_grant": "the code is wrong, was used before or has expired",
    "parameter_invalid_integer": "a number is out of its range",
    "payouts_not_allowed": "the account may not be paid out; its owner finds the reason in the processor's dashboard",
    "promotion_code_exists": "an active promotion code has this text already",
    "url_invalid": "an address is not valid",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One call as it is to be made: about what, and which of the processor's parameter names are ours too."""

    noun: str
    write: bool
    repeats: int
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """It worked."""

    value: T


@dataclass(frozen=True, slots=True)
class Fault:
    """It did not. `again`: the same call may be sent once more. `settled`: this attempt surely changed nothing."""

    error: Refusal
    again: bool = False
    settled: bool = False


def overdue(asked: Asked, *, unsure: bool) -> Fault:
    """The time was up."""
    text = "The payment processor did not answer in time."
    if asked.write and unsure:
        return unknown(text)
    return Fault(PaymentsError(text, code="payments_timeout", before_execution=asked.write), settled=True)


def not_reached(asked: Asked, kind: FailureKind) -> Fault:
    """No complete answer arrived; some failures happen before a byte is sent."""
    if kind in NEVER_SENT:
        text = f"The payment processor could not be reached ({kind}), so the call was not sent. Try again later."
        return Fault(PaymentsError(text, before_execution=True), again=kind != "blocked", settled=True)
    if kind == "timeout":
        found = overdue(asked, unsure=True)
        return Fault(found.error, again=True)
    return failed(asked, f"The connection to the payment processor broke during the call ({kind}).", again=True)


def unreadable(asked: Asked, status: int = 200) -> Fault:
    """An answer that is not what the wire documents: perhaps not the processor's at all."""
    if status >= 500:
        return trouble(asked, status, again=True)
    return failed(asked, f"The payment processor's answer (HTTP {status}) could not be read.", again=True)


def trouble(asked: Asked, status: int, *, again: bool) -> Fault:
    """It failed, or does the same call already."""
    return failed(asked, f"The payment processor is in trouble (HTTP {status}).", again=again)


def failed(asked: Asked, text: str, *, again: bool) -> Fault:
    """A read may be repeated by anybody; a write may have happened."""
    return Fault(unknown(text).error, again) if asked.write else Fault(PaymentsError(f"{text} Try again later."), again, settled=True)


def unknown(text: str) -> Fault:
    """It may have been done."""
    return Fault(PaymentsError(text + UNKNOWN_OUTCOME, code="OUTCOME_UNKNOWN", outcome_unknown=True))


def answered(asked: Asked, status: int, body: object, headers: Mapping[str, str]) -> Fault:
    """The processor answered with an error."""
    told = Told(body)
    should = headers.get("stripe-should-retry")
    if not told.readable:
        return unreadable(asked, status)
    if status == 429 or told.code == "rate_limit":
        return too_many(headers.get("retry-after", ""), again=should == "true")
    if status == 401 or told.code == "invalid_client":
        return Fault(KeyRefused("The payment processor does not accept the service's key."), settled=True)
    if told.code == "account_invalid":
        return Fault(AccountDetached(), settled=True)
    if status == 403:
        return Fault(KeyRefused("The service's key may not do this at the payment processor."), settled=True)
    if status not in REFUSALS:
        return trouble(asked, status, again=should != "false")
    return Fault(refused(asked, told), settled=True)


def too_many(retry_after: str, *, again: bool) -> Fault:
    """A limit of the processor's; nothing was done."""
    seconds = int(retry_after) if re.fullmatch(r"[0-9]{1,4}", retry_after) else 1
    text = "The payment processor takes no more calls at the moment."
    return Fault(PaymentsError(text, before_execution=True, retry_after=seconds), again, settled=True)


def crowded() -> Fault:
    """No place became free among the calls of one account, so it was never sent."""
    text = "Too many calls of this account wait for the payment processor already, so this one was not sent. Try again later."
    return Fault(PaymentsError(text, before_execution=True, retry_after=1), settled=True)


def too_late() -> Fault:
    """The request has no time left for it."""
    text = "The time for this request is over before the payment processor could be asked, so the call was not sent. Call again."
    return Fault(PaymentsError(text, code="payments_timeout", before_execution=True, retry_after=1), settled=True)


def unavailable(reason: Reason, retry_after: int) -> Fault:
    """It is not sent: the processor does not answer, or too many requests wait for it."""
    text = "Too many calls wait for the payment processor" if reason == "crowded" else "The payment processor does not answer at present"
    return Fault(PaymentsUnavailable(f"{text}, so this one was not sent. Try again later.", retry_after=retry_after), settled=True)


def refused(asked: Asked, told: "Told") -> Refusal:
    """What was asked for is wrong, or the processor has no such thing."""
    param = told.param if told.param in asked.words else None
    if told.code == "resource_missing" and param is None:
        return no_such(asked.noun)
    if told.kind == "idempotency_error":
        text = "The payment processor knows this idempotency key from a call with other values."
        return PaymentsRefused(text, processor_code=told.kind, hint="Use a new Idempotency-Key for other values")
    code = told.code or told.kind
    why = TEXTS.get(code or "") or (f"its code for why is {code}" if code else "it gave no code for why")
    return PaymentsRefused(f"The payment processor refused it: {why}. Nothing was done.", processor_code=code, param=param)


def no_such(noun: str) -> NotFound:
    """Unknown, or another account's."""
    return NotFound(f"The payment processor has no such {noun} in this account")


class Told:
    """The words for programs in an error's body: code, type and parameter. Whatever is no word is dropped."""

    def __init__(self, body: object) -> None:
        error = cast("dict[str, object]", body).get("error") if isinstance(body, dict) else None
        oauth = {"code": error, "type": "oauth_error"} if isinstance(error, str) else None
        found = oauth or (cast("dict[str, object]", error) if isinstance(error, dict) else None)
        self.readable = found is not None
        self.code, self.kind = word_in(found, "code"), word_in(found, "type")
        self.param = word_in(found, "param")


def word_in(found: Mapping[str, object] | None, name: str) -> str | None:
    """A word, never a sentence."""
    value = found.get(name) if found else None
    return value if isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,63}", value) else None
