"""What the clients of an episode did and were told, in order; and the checker that judges it against the upstream's own log."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tests.simulation.provider import Dispatch

Kind = Literal["invoke", "ok", "fail", "info", "refused", "released"]
"""`fail`: the key's answer is that nothing was done. `info`: nobody knows. `refused`: an answer that is not bound to the key."""
DELIVERED, DEAD = 1, 2


class Key(NamedTuple):
    """An idempotency key in its organisation."""

    organisation: str
    key: str


class Record(NamedTuple):
    """One line of the history."""

    at: float
    kind: Kind
    call: int
    operation: str
    key: Key
    detail: str


class Delivery(NamedTuple):
    """An event for an endpoint, as the outbox holds it when all is over."""

    event: str
    endpoint: str
    state: int


class Told(NamedTuple):
    """An esim.issued event, as the store holds it when all is over."""

    event: str
    organisation: str
    iccid: str


@dataclass(slots=True)
class History:
    """Everything that happened, and its hash."""

    records: list[Record] = field(default_factory=list[Record])
    calls: int = 0

    def add(self, at: float, kind: Kind, call: int, operation: str, key: Key, detail: str = "") -> None:
        """One more line."""
        self.records.append(Record(at, kind, call, operation, key, detail))

    def digest(self, *others: Iterable[object]) -> str:
        """SHA-256 over the history and whatever else the episode left behind."""
        return hashlib.sha256(repr((self.records, [list(other) for other in others])).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known when all is over. `key_of` says which key a dispatch belongs to: every key has days of its own."""

    records: list[Record]
    log: list[Dispatch]
    key_of: Mapping[int, Key]
    told: list[Told]
    deliveries: list[Delivery]
    endpoints: Mapping[str, list[str]]
    """The endpoints of each organisation that are to be told."""
    disabled: set[str]
    """Those that are not any more: what came after is not queued for them."""
    taken: set[tuple[str, str]]
    """Event and endpoint of each POST that its receiver took."""


def check(ending: Ending) -> list[str]:
    """What the episode broke of our promises; empty when all held."""
    dispatched, effects = sorted_out(ending)
    successes = {key: {r.detail for r in of} for key, of in by_key(ending.records, "ok").items()}
    broken = [f"{key}: {count} dispatches" for key, count in dispatched.items() if count > 1]
    for key, iccids in successes.items():
        if len(iccids) != 1:
            broken.append(f"{key}: success named {sorted(iccids)}")
        if key in dispatched and iccids != set(effects[key]):
            broken.append(f"{key}: success named {sorted(iccids)}, the upstream gave {effects[key]}")
    for key, of in by_key(ending.records, "fail").items():
        if effects[key] or key in successes:
            broken.append(f"{key}: failed for certain ({of[0].detail}), yet {effects[key] or successes[key]}")
    unsure = {r.key for r in ending.records if r.kind in ("ok", "info")}
    broken += [f"{key}: every call was refused, yet {of} was drawn" for key, of in effects.items() if of and key not in unsure]
    owners: dict[str, set[Key]] = defaultdict(set)
    for key, iccids in successes.items():
        for iccid in iccids:
            owners[iccid].add(key)
    returned = {record.detail for record in ending.records if record.kind == "released"}
    broken += [f"{iccid} under {sorted(keys)}" for iccid, keys in owners.items() if len(keys) > 1 and iccid not in returned]
    return broken + check_events(ending, owners)


def check_events(ending: Ending, owners: Mapping[str, set[Key]]) -> list[str]:
    """Every issued eSIM is told of once, to every endpoint of its organisation and to nobody else."""
    told = Counter((event.organisation, event.iccid) for event in ending.told)
    issued = Counter((key.organisation, iccid) for iccid, keys in owners.items() for key in keys)  # twice: given back, and drawn again
    broken = [f"{what}: {told[what]} events, issued {count} times" for what, count in sorted(issued.items()) if told[what] != count]
    broken += [f"{what}: told {count} times" for what, count in told.items() if count > 1 and what not in issued]
    states = {(delivery.event, delivery.endpoint): delivery.state for delivery in ending.deliveries}
    for event in ending.told:
        for endpoint in ending.endpoints.get(event.organisation, []):
            state = states.pop((event.event, endpoint), None)
            if state is None and endpoint in ending.disabled:
                continue
            if state not in (DELIVERED, DEAD):
                broken.append(f"{event.event} for {endpoint} ended as {state}")
            if state == DELIVERED and (event.event, endpoint) not in ending.taken:
                broken.append(f"{event.event} counts as delivered to {endpoint}, which never took it")
    return broken + [f"{pair} is a delivery of no event of its organisation" for pair in states]


def sorted_out(ending: Ending) -> tuple[Counter[Key], dict[Key, list[str]]]:
    """Dispatches and drawn eSIMs per key, as the upstream counts them."""
    dispatched: Counter[Key] = Counter()
    effects: dict[Key, list[str]] = defaultdict(list)
    for entry in ending.log:
        key = ending.key_of.get(entry.days or 0)
        if entry.method == "affectPackageToSubscriber" and key is not None:
            dispatched[key] += 1
            if entry.iccid is not None:
                effects[key].append(entry.iccid)
    return dispatched, effects


def by_key(records: list[Record], kind: Kind) -> dict[Key, list[Record]]:
    """The records of a kind, per key."""
    found: dict[Key, list[Record]] = {}
    for record in records:
        if record.kind == kind:
            found.setdefault(record.key, []).append(record)
    return found
