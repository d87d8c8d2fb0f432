"""What the clients of an episode did and were told, in order."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["invoke", "ok", "fail", "info", "refused", "released", "stuck", "returned", "waiting", "crash"]
"""`fail`: the key's answer is that nothing was done. `info`: nobody knows. `refused`: an answer that is not bound to the key, by a call
that did nothing. `released`, `stuck`: a roll-back that was done, or that nobody knows the end of. `returned`: an intent whose eSIM was
taken back. `waiting`: an intent without a plan."""


class Key(NamedTuple):
    """An idempotency key in its organisation."""

    organisation: str
    key: str


class Record(NamedTuple):
    """One line of the history. `answer` is a digest of what a call with a key was answered, when that will not change."""

    at: float
    kind: Kind
    call: int
    operation: str
    key: Key
    detail: str
    answer: str


@dataclass(slots=True)
class History:
    records: list[Record] = field(default_factory=list[Record])
    of_call: dict[int, Key] = field(default_factory=dict[int, Key])
    began: dict[int, float] = field(default_factory=dict[int, float])

    @property
    def calls(self) -> int:
        return len(self.of_call)

    def begin(self, at: float, operation: str, key: Key) -> int:
        """A call sets out; its number."""
        number = len(self.of_call) + 1
        self.of_call[number], self.began[number] = key, at
        self.add(at, "invoke", number, operation, key)
        return number

    def add(self, at: float, kind: Kind, call: int, operation: str, key: Key, detail: str = "", answer: str = "") -> None:
        self.records.append(Record(at, kind, call, operation, key, detail, answer))

    def digest(self, *others: Iterable[object]) -> str:
        """SHA-256 over the history and whatever else the episode left behind."""
        return hashlib.sha256(repr((self.records, [list(other) for other in others])).encode()).hexdigest()
