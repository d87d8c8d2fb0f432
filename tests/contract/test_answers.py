"""What all answers say in the same words: times of ours end in Z, and kinds of use are named and never added."""

import re
from collections.abc import Iterator

from registry.catalogue import AnyOperation
from tests.contract.declared import DeclaredField, answered_fields, declared_fields, of_every
from tests.contract.stage import OPERATIONS

MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
LIKE_A_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}")
NAMED_MOMENT = re.compile(r"_at$|[a-z]At$|_until$")
WIRE_TIMES = frozenset(
    {
        *("activationDate", "lastUsageDate", "startDate", "endDate", "time", "affectationDateUtc"),  # a line and its histories
        *("startDateUTC", "lastResetDate", "lastUpdateDate"),  # the counter of the green zone
        *("tsassigned", "tsactivationutc", "tsexpirationutc", "startTimeUTC", "lastPackageCreationTimeUTC"),  # packages and series
        *("usageDateUtc", "eventTime", "dateTime"),  # records, events, places
        *("start", "end"),  # of an active period, and of a profile's states
        *("startdate", "uiStartAvailablePeriod", "uiEndAvailibilityPeriod"),  # tariffs and templates
    }
)
"""Times that are handed on as the charging system writes them, most without a zone: the specification has them so."""
UNITS = {"byte": r"\bbytes?\b|\bGB\b|\bMB\b", "second": r"\bseconds?\b", "message": r"\bmessages?\b|\bSMS\b"}
MANY_UNITS = {
    "CountryQuantity.qty": "handed on: the charging system adds them",
    "OperatorQuantity.qty": "handed on: the charging system adds them",
    "UsageTotal.quantityPerType": "handed on: a number for each kind, by the charging system's codes",
    "CallRecord.quantity": "handed on: one kind, which usageType says",
    "LineNeed.others": "a number for each kind, by its name",
    "Uncovered.amount": "one kind, which `kind` says",
}
"""Fields whose description speaks of more than one unit, and why none of ours adds them."""


def wrong_moments(operation: AnyOperation, body: object) -> list[tuple[str, object]]:
    """Times of ours in an answer that do not end in Z, and times of which nobody said that they are handed on."""
    found: list[tuple[str, object]] = []
    for field in answered_fields(operation, body):
        ours = NAMED_MOMENT.search(field.name) is not None or "RFC 3339" in field.description
        unknown = field.name not in WIRE_TIMES and LIKE_A_MOMENT.match(str(field.value)) is not None
        if isinstance(field.value, str) and (ours or unknown) and not MOMENT.fullmatch(field.value):
            found.append((field.path, field.value))
    return found


def all_fields() -> Iterator[DeclaredField]:
    """Every declared field of every answer, once."""
    seen: set[str] = set()
    for field in (field for operation in OPERATIONS for field in declared_fields(operation)):
        if field.word not in seen:
            seen.add(field.word)
            yield field


@of_every(OPERATIONS)
def test_times_of_ours_end_in_z_in_the_examples(operation: AnyOperation) -> None:
    assert [wrong for example in operation.examples for wrong in wrong_moments(operation, example.answer)] == []


def test_no_field_of_ours_adds_bytes_seconds_and_messages() -> None:
    many = {
        field.word
        for field in all_fields()
        if sum(re.search(pattern, field.description, re.IGNORECASE) is not None for pattern in UNITS.values()) > 1
    }
    assert many == MANY_UNITS.keys()
