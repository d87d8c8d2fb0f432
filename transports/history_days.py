"""How long history is kept."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HistoryDays:
    """For how many days each kind of history is kept; 0: for ever.

    `answers`: what was answered under idempotency keys that never expire; the keys stay. `issuances`: rows that ended without an eSIM.
    `intents`: test intents, and live ones that failed. `call_records`: the ids and the sums of the months stay.
    """

    audit: int = 90
    answers: int = 0
    issuances: int = 0
    intents: int = 0
    events: int = 0
    deliveries: int = 0
    call_records: int = 0


SHORTEST = HistoryDays(audit=1, answers=30, issuances=30, intents=30, events=30, deliveries=7, call_records=62)
"""Longer than any call, retry or settlement of an unknown outcome lasts; records of a month until the month after it is over."""
