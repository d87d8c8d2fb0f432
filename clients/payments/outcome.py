"""The outcome of one attempt, and the error that its caller gets. The processor's own texts are dropped here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from clients.http import NEVER_SENT, FailureKind
from clients.outside_system import NotSentReason
from clients.payments.port import AccountDetached, KeyRefused
from registry.errors import NotFound, PaymentsError, PaymentsRefused, PaymentsUnavailable, Refusal

ProcessorValueT = TypeVar("ProcessorValueT")
PROCESSOR_REFUSALS = (400, 402, 404)
PROCESSOR_UNKNOWN_OUTCOME = " Whether it was done is not known: look before you repeat it under another key."
PROCESSOR_REFUSAL_TEXTS = {
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
class ProcessorCall:
    """One call as it is to be made: about what, and which of the processor's parameter names are ours too."""

    noun: str
    write: bool
    repeats: int
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProcessorAnswer(Generic[ProcessorValueT]):
    value: ProcessorValueT


@dataclass(frozen=True, slots=True)
class ProcessorFault:
    """It did not. `again`: the same call may be sent once more. `unchanged`: this attempt surely changed nothing."""

    error: Refusal
    again: bool = False
    unchanged: bool = False


ProcessorResult = ProcessorAnswer[ProcessorValueT] | ProcessorFault


def processor_overdue(processor_call: ProcessorCall, *, unsure: bool) -> ProcessorFault:
    text = "The payment processor did not answer in time."
    if processor_call.write and unsure:
        return processor_outcome_unknown(text)
    return ProcessorFault(PaymentsError(text, code="payments_timeout", before_execution=processor_call.write), unchanged=True)


def processor_not_reached(processor_call: ProcessorCall, kind: FailureKind) -> ProcessorFault:
    """No complete answer arrived; some failures happen before a byte is sent."""
    if kind in NEVER_SENT:
        text = f"The payment processor could not be reached ({kind}), so the call was not sent. Try again later."
        return ProcessorFault(PaymentsError(text, before_execution=True), again=kind != "blocked", unchanged=True)
    if kind == "timeout":
        found = processor_overdue(processor_call, unsure=True)
        return ProcessorFault(found.error, again=True)
    return processor_failed(processor_call, f"The connection to the payment processor broke during the call ({kind}).", again=True)


def processor_unreadable(processor_call: ProcessorCall, status: int = 200) -> ProcessorFault:
    """An answer that is not what the wire documents: perhaps not the processor's at all."""
    if status >= 500:
        return processor_in_trouble(processor_call, status, again=True)
    return processor_failed(processor_call, f"The payment processor's answer (HTTP {status}) could not be read.", again=True)


def processor_in_trouble(processor_call: ProcessorCall, status: int, *, again: bool) -> ProcessorFault:
    return processor_failed(processor_call, f"The payment processor is in trouble (HTTP {status}).", again=again)


def processor_failed(processor_call: ProcessorCall, text: str, *, again: bool) -> ProcessorFault:
    """No usable answer: a read may be repeated, a write may have been executed."""
    return (
        ProcessorFault(processor_outcome_unknown(text).error, again)
        if processor_call.write
        else ProcessorFault(PaymentsError(f"{text} Try again later."), again, unchanged=True)
    )


def processor_outcome_unknown(text: str) -> ProcessorFault:
    return ProcessorFault(PaymentsError(text + PROCESSOR_UNKNOWN_OUTCOME, code="OUTCOME_UNKNOWN", outcome_unknown=True))


def processor_answered_error(processor_call: ProcessorCall, status: int, body: object, headers: Mapping[str, str]) -> ProcessorFault:
    words = ErrorWords(body)
    should = headers.get("stripe-should-retry")
    if not words.readable:
        return processor_unreadable(processor_call, status)
    if status == 429 or words.code == "rate_limit":
        return processor_rate_limited(headers.get("retry-after", ""), again=should == "true")
    if status == 401 or words.code == "invalid_client":
        return ProcessorFault(KeyRefused("The payment processor does not accept the service's key."), unchanged=True)
    if words.code == "account_invalid":
        return ProcessorFault(AccountDetached(), unchanged=True)
    if status == 403:
        return ProcessorFault(KeyRefused("The service's key may not do this at the payment processor."), unchanged=True)
    if status not in PROCESSOR_REFUSALS:
        return processor_in_trouble(processor_call, status, again=should != "false")
    return ProcessorFault(processor_refused(processor_call, words), unchanged=True)


def processor_rate_limited(retry_after: str, *, again: bool) -> ProcessorFault:
    """A limit of the processor's; nothing was done."""
    seconds = int(retry_after) if re.fullmatch(r"[0-9]{1,4}", retry_after) else 1
    text = "The payment processor takes no more calls at the moment."
    return ProcessorFault(PaymentsError(text, before_execution=True, retry_after=seconds), again, unchanged=True)


def account_crowded() -> ProcessorFault:
    """Too many calls of one account wait already, so this one was not sent."""
    text = "Too many calls of this account wait for the payment processor already, so this one was not sent. Try again later."
    return ProcessorFault(PaymentsError(text, before_execution=True, retry_after=1), unchanged=True)


def processor_too_late() -> ProcessorFault:
    text = "The time for this request is over before the payment processor could be asked, so the call was not sent. Call again."
    return ProcessorFault(PaymentsError(text, code="payments_timeout", before_execution=True, retry_after=1), unchanged=True)


def processor_unavailable(reason: NotSentReason, retry_after: int) -> ProcessorFault:
    """It is not sent: the processor does not answer, or too many requests wait for it."""
    text = "Too many calls wait for the payment processor" if reason == "crowded" else "The payment processor does not answer at present"
    return ProcessorFault(
        PaymentsUnavailable(f"{text}, so this one was not sent. Try again later.", retry_after=retry_after), unchanged=True
    )


def processor_refused(processor_call: ProcessorCall, words: "ErrorWords") -> Refusal:
    """What was asked for is wrong, or the processor has no such thing."""
    param = words.param if words.param in processor_call.words else None
    if words.code == "resource_missing" and param is None:
        return no_such_object(processor_call.noun)
    if words.kind == "idempotency_error":
        text = "The payment processor knows this idempotency key from a call with other values."
        return PaymentsRefused(text, processor_code=words.kind, hint="Use a new Idempotency-Key for other values")
    code = words.code or words.kind
    why = PROCESSOR_REFUSAL_TEXTS.get(code or "") or (f"its code for why is {code}" if code else "it gave no code for why")
    return PaymentsRefused(f"The payment processor refused it: {why}. Nothing was done.", processor_code=code, param=param)


def no_such_object(noun: str) -> NotFound:
    return NotFound(f"The payment processor has no such {noun} in this account")


class ErrorWords:
    """The words for programs in an error's body: code, type and parameter. Whatever is no word is dropped."""

    def __init__(self, body: object) -> None:
        error = cast("dict[str, object]", body).get("error") if isinstance(body, dict) else None
        oauth = {"code": error, "type": "oauth_error"} if isinstance(error, str) else None
        found = oauth or (cast("dict[str, object]", error) if isinstance(error, dict) else None)
        self.readable = found is not None
        self.code, self.kind = error_word(found, "code"), error_word(found, "type")
        self.param = error_word(found, "param")


def error_word(found: Mapping[str, object] | None, name: str) -> str | None:
    """A word, never a sentence."""
    value = found.get(name) if found else None
    return value if isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,63}", value) else None
