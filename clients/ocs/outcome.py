"""What became of one attempt, and which error its caller gets."""

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from clients.failure import NEVER_SENT, FailureKind
from clients.ocs.address import Version
from clients.ocs.envelope import details
from clients.ocs.failure import OcsNotFound, OcsUnknownName
from clients.ocs.settings import OcsSettings
from clients.ocs.texts import UNKNOWN_OUTCOME, ZONE_METHOD, meaning_of
from clients.ocs.wire.members import Json
from clients.outside_system import Reason
from registry.errors import EndOfLife, OcsBadRequest, OcsConflict, OcsError, OcsUnavailable, Refusal

T = TypeVar("T")
OK, UNKNOWN_REQUEST, UNEXPECTED, NOT_FOUND, NOT_VISIBLE, END_OF_LIFE, TIMEOUT, TRAFFIC_LIMIT = 0, 1, 3, 6, 11, 17, 18, 100
LATER = 10
"""Seconds after which a read may be repeated when the charging system is in trouble."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call as it is to be made."""

    method: str
    body: bytes
    write: bool
    key: str
    version: Version
    stats: bool


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """It worked."""

    value: T


@dataclass(frozen=True, slots=True)
class Fault:
    """It did not; `again` says that a read may ask once more, `pause` that it should wait before."""

    error: Refusal
    again: bool = False
    pause: bool = False


def refused(settings: OcsSettings, asked: Asked, code: int, payload: Json) -> Fault:
    """The system answered with a status other than 0: it has done nothing, code 18 excepted."""
    text = meaning_of(asked.method, code).text
    if code == TIMEOUT:
        return overdue(asked)
    if code == END_OF_LIFE:
        return Fault(EndOfLife(text, ocs_code=code))
    if code == TRAFFIC_LIMIT:
        seconds = max(1, math.ceil(settings.backoff_seconds * 2))
        return Fault(OcsError(text, ocs_code=code, retry_after=seconds, before_execution=True), again=True, pause=True)
    if code == UNKNOWN_REQUEST and asked.method == settings.zone_method:
        text += ZONE_METHOD
    return Fault(error_class(asked, code)(text, ocs_code=code, details=details(payload)), again=code == UNEXPECTED)


def error_class(asked: Asked, code: int) -> type[OcsError]:
    """Whether the caller has to send something else (400), to change something first (409), or may call again (502).

    Choice: only a write's refusal is laid to its caller, whose input it carries. What a read names is often found by ourselves, so
    the operation that knows that its caller named it says so.
    """
    cure = meaning_of(asked.method, code).cure
    if code in (NOT_FOUND, NOT_VISIBLE):
        return OcsUnknownName if asked.write else OcsNotFound
    if not asked.write or cure == "repeat":
        return OcsError
    return OcsBadRequest if cure == "input" else OcsConflict


def overdue(asked: Asked) -> Fault:
    """It was sent, and no answer came in time; or the system itself says so."""
    text = "The charging system did not answer in time."
    return Fault(_unknown(asked, text, ocs_code=TIMEOUT, code="ocs_timeout"), again=True)


def never_started(settings: OcsSettings, asked: Asked) -> Fault:
    """All places of this token were taken until the time was up."""
    text = (
        f"{settings.concurrency} calls of this account were under way for {settings.total_seconds:g} s, so this one was not sent. "
        "Call again with fewer calls at once."
    )
    return Fault(OcsError(text, code="ocs_timeout", retry_after=1, before_execution=True))


def unavailable(reason: Reason, retry_after: int) -> OcsUnavailable:
    """It is not sent: the system does not answer, or too many requests wait for it."""
    if reason == "crowded":
        text, hint = "Too many calls wait for the charging system, so this one was not sent", "Call again, with fewer calls at once"
    else:
        text, hint = "The charging system does not answer at present, so the call was not sent", "Call again after Retry-After seconds"
    return OcsUnavailable(f"{text}; nothing was done.", hint=hint, retry_after=retry_after)


def too_late() -> OcsError:
    """The request has no time left for it."""
    text = "The time for this request is over before the charging system could be asked, so the call was not sent. Call again."
    return OcsError(text, code="ocs_timeout", retry_after=1, before_execution=True)


def not_reached(asked: Asked, kind: FailureKind) -> Fault:
    """No complete answer arrived; some failures happen before a byte is sent."""
    if kind == "timeout":
        return overdue(asked)
    if kind in NEVER_SENT:
        text = f"The charging system could not be reached ({kind}), so the call was not sent. Check its address; try again later."
        return Fault(OcsError(text, before_execution=True), again=True)
    return Fault(_unknown(asked, f"The connection to the charging system broke during the call ({kind})."), again=True)


def wrong_status(asked: Asked, status: int) -> Fault:
    """An HTTP status other than 200; business refusals come with 200. Only some of them speak of address or token."""
    text = f"The charging system answered with HTTP {status} instead of 200. "
    if status >= 500:
        return Fault(_unknown(asked, text + "It is in trouble; try again later.", retry_after=LATER), again=True)
    refused = status in (401, 403, 404)
    text += "Check its address and the token." if refused else "Report it to the provider if it stays."
    return Fault(_unknown(asked, text), again=True)


def unreadable(asked: Asked) -> Fault:
    """An answer that is not what the wire documents."""
    return Fault(_unknown(asked, "The charging system's answer could not be read."), again=True)


def broken_off() -> OcsError:
    """The rest of a streamed answer did not come."""
    return OcsError("The charging system's answer broke off. Call again.")


def _unknown(asked: Asked, text: str, *, ocs_code: int | None = None, code: str | None = None, retry_after: int | None = None) -> OcsError:
    """Whoever repeats a write is told to look first, not when to call again."""
    if asked.write:
        return OcsError(text + UNKNOWN_OUTCOME, ocs_code=ocs_code, code=code, outcome_unknown=True)
    return OcsError(text, ocs_code=ocs_code, code=code, retry_after=retry_after)
