"""The judge: what the clients were told, the ledger and the outbox at the end, all against the upstream's own log."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tests.harness.history import History, Key, Record
from tests.network_facts import DELETE, DRAW
from tests.simulation.provider import Dispatch

OUTSIDER = -1
TRAFFIC_LIMIT = 100
DELIVERED = 1
DEAD = 2
SURE_REFUSALS = ("code100", "code14")
"""After these a roll-back has done nothing, and says so: another may be sent."""
HAD = ("issued", "rollback_pending", "rollback_unknown", "rolled_back", "released")
WITHOUT = ("failed",)
LIMIT_REACHED = "credential_restricted"
ENDS = {*HAD, *WITHOUT, "manual_reconciliation_required"} - {"rollback_pending"}


class LedgerRow(NamedTuple):
    """A row of the ledger when all is over; `key` is the client's."""

    key: Key
    state: str
    iccid: str | None


class IssuedEvent(NamedTuple):
    """An esim.issued event; `key` is that of the client's call it tells of, None when there was none."""

    event: str
    organisation: str
    key: Key | None
    iccid: str


class Delivery(NamedTuple):
    """An event for an endpoint, as the outbox holds it when all is over, with the outcomes of its attempts."""

    event: str
    endpoint: str
    state: int
    outcomes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known when all is over."""

    history: History
    log: list[Dispatch]
    wanted: Mapping[Key, frozenset[int]]
    """The templates that each key was to draw; empty for test eSIMs."""
    last: Mapping[Key, Record]
    """What each key answered when nothing failed any more."""
    rows: list[LedgerRow]
    busy: list[str]
    """Keys whose claim is still under way."""
    told: list[IssuedEvent]
    deliveries: list[Delivery]
    endpoints: Mapping[str, list[str]]
    """The endpoints of each organisation that are to be told."""
    disabled: set[str]
    """Those that are not any more: what came after is not queued for them."""
    taken: set[tuple[str, str]]
    """Event and endpoint of each POST that its receiver took."""
    packages: set[int]
    """Packages that are on a line at the end, as the upstream says."""
    sold: frozenset[Key] = frozenset()
    """Orders of shops, which the traffic limit makes wait: after it nothing was done, for sure, and they are sent again."""
    limited: frozenset[Key] = frozenset()
    """Keys whose callers may make only so much money due: that it is used up is an answer, too."""


def broken_promises(ending: Ending) -> list[str]:
    """What the episode broke of our promises; empty when all held."""
    drawn = draws(ending)
    answers = by_key(ending.history.records)
    broken = [
        line for key in sorted(set(answers) | set(drawn)) for line in check_key(ending, key, answers.get(key, []), drawn.get(key, []))
    ]
    return [
        *check_log(ending),
        *broken,
        *check_ledger(ending, drawn),
        *check_releases(ending),
        *check_events(ending, answers),
        *check_deliveries(ending),
    ]


def check_log(ending: Ending) -> list[str]:
    """Whatever reached the upstream was sent for a call of a client, who wanted it."""
    broken: list[str] = []
    for entry in ending.log:
        if is_top_up(entry):
            continue
        key = ending.history.of_call.get(entry.by)
        if entry.by != OUTSIDER and (key is None or key not in ending.wanted):
            broken.append(f"{entry} was sent for nobody")
        elif key is not None and entry.method == DRAW and entry.template not in ending.wanted[key]:
            broken.append(f"{key}: drew template {entry.template}")
    return broken


def check_key(ending: Ending, key: Key, records: list[Record], drawn: list[Dispatch]) -> list[str]:
    """One key: at most one dispatch, one eSIM, the same answer for ever, and nothing that was done unsaid."""
    gave = [entry.iccid for entry in drawn if entry.iccid is not None]
    ok = {record.detail for record in records if record.kind == "ok"}
    failed = [record.detail for record in records if record.kind == "fail"]
    broken = [f"{key}: {len(drawn)} dispatches"] if len(drawn) > 1 else []
    if len(ok) > 1 or (ok and ending.wanted.get(key) and ok != set(gave)):
        broken.append(f"{key}: success named {sorted(ok)}, the upstream gave {gave}")
    if failed and (gave or ok):
        broken.append(f"{key}: failed for certain ({failed[0]}), yet {gave or ok}")
    if gave and not any(record.kind in ("ok", "info") for record in records):
        broken.append(f"{key}: every call was refused, yet {gave} was drawn")
    refused = {record.call for record in records if record.kind in ("refused", "fail")}
    broken += [
        f"{key}: call {entry.by} was refused, and had sent {entry.method}" for entry in drawn if entry.effect and entry.by in refused
    ]
    return broken + check_replays(ending, key, records) + check_last(ending, key)


def check_replays(ending: Ending, key: Key, records: list[Record]) -> list[str]:
    """Once a key has answered for good, every call that begins later gets the same bytes, or is not answered at all."""
    settled = next((record for record in records if record.answer and record.kind in ("ok", "fail")), None)
    if settled is None:
        return []
    later = [record for record in records if record.operation == settled.operation and record.call != settled.call]
    broken = [
        f"{key}: call {record.call} was answered otherwise than call {settled.call}: {record.kind} {record.detail}"
        for record in later
        if record.kind in ("ok", "fail") and record.answer != settled.answer
    ]
    return broken + [
        f"{key}: call {record.call} was told {record.detail} after call {settled.call} knew"
        for record in later
        if record.kind == "info" and record.detail != "gone" and ending.history.began[record.call] > settled.at
    ]


def check_last(ending: Ending, key: Key) -> list[str]:
    """When all is healed no key is busy, and none is unknown that nobody will look into."""
    last = ending.last.get(key)
    if last is None or last.kind in ("ok", "fail", "waiting", "returned", "stuck", "released"):
        return []
    if last.detail in (
        "MANUAL_RECONCILIATION_REQUIRED",
        "idempotency_key_reused",
        "intent_not_confirmable",
        "issuance_not_issued",
        "issuance_taken_back",
    ):
        return []
    if last.detail == LIMIT_REACHED and key in ending.limited:
        return []
    return [f"{key}: at the end it answers {last.operation} with {last.kind} {last.detail}"]


def check_ledger(ending: Ending, drawn: Mapping[Key, list[Dispatch]]) -> list[str]:
    """The ledger says of every key what the upstream gave it, and nothing is left under way."""
    broken = [f"{key}: still claimed" for key in ending.busy]
    for row in ending.rows:
        gave = [entry.iccid for entry in drawn.get(row.key, []) if entry.iccid is not None]
        if row.state not in ENDS:
            broken.append(f"{row.key}: still {row.state}")
        if (row.state in HAD and gave != [row.iccid]) or (row.state in WITHOUT and gave):
            broken.append(f"{row.key}: the ledger says {row.state} {row.iccid}, the upstream gave {gave}")
        left = {entry.package for entry in drawn.get(row.key, [])} & ending.packages
        if row.state == "rolled_back" and left:
            broken.append(f"{row.key}: rolled back, and its package {left} is there")
    rows = {row.key: row.state for row in ending.rows}
    answers = by_key(ending.history.records)
    return broken + [
        f"{key}: its caller was told of an eSIM, the ledger says {rows.get(key)}"
        for key, records in answers.items()
        if ending.wanted.get(key) and any(record.kind == "ok" for record in records) and rows.get(key) not in HAD
    ]


def check_releases(ending: Ending) -> list[str]:
    """Giving back sends each write once; after one that may have done something nothing further is sent by anybody else."""
    broken: list[str] = []
    writes: dict[Key, list[Dispatch]] = defaultdict(list)
    for entry in ending.log:
        key = ending.history.of_call.get(entry.by)
        if key is not None and entry.method != DRAW:
            writes[key].append(entry)
    refused = {record.call for record in ending.history.records if record.kind == "refused"}
    for key, sent in writes.items():
        broken += [
            f"{key}: call {entry.by} was refused, and had sent {entry.method}" for entry in sent if entry.effect and entry.by in refused
        ]
        counts = Counter((entry.by, entry.method) for entry in sent)
        broken += [f"{key}: call {by} sent {method} {count} times" for (by, method), count in counts.items() if count > 1]
        for before, after in pairwise(sent):
            sure = before.method == DELETE and not before.effect and before.fault in SURE_REFUSALS
            if after.by != before.by and not sure:
                broken.append(f"{key}: call {after.by} sent {after.method} after {before.method} of call {before.by} ({before.fault})")
    return broken


def check_events(ending: Ending, answers: Mapping[Key, list[Record]]) -> list[str]:
    """Every issued eSIM, as the ledger says and as clients were told, has exactly one esim.issued."""
    issued: set[tuple[Key | None, str]] = {(row.key, row.iccid or "") for row in ending.rows if row.state in HAD}
    issued |= {(key, record.detail) for key, records in answers.items() for record in records if record.kind == "ok"}
    told = Counter((event.key, event.iccid) for event in ending.told)
    broken = [f"{what}: {told[what]} events" for what in sorted(issued, key=repr) if told[what] != 1]
    return broken + [f"{what}: told of, and not issued" for what in told if what not in issued]


def check_deliveries(ending: Ending) -> list[str]:
    """Every event reaches each endpoint of its organisation, or its dead letter, and nobody else; what was taken is not sent again."""
    broken: list[str] = []
    left = {(delivery.event, delivery.endpoint): delivery for delivery in ending.deliveries}
    for event in ending.told:
        for endpoint in ending.endpoints.get(event.organisation, []):
            found = left.pop((event.event, endpoint), None)
            if found is None and endpoint in ending.disabled:
                continue
            if found is None or found.state not in (DELIVERED, DEAD):
                broken.append(f"{event.event} for {endpoint} ended as {found}")
            elif found.state == DELIVERED and (event.event, endpoint) not in ending.taken:
                broken.append(f"{event.event} counts as delivered to {endpoint}, which never took it")
            elif "ok" in found.outcomes[:-1] or (found.state == DEAD and "ok" in found.outcomes):
                broken.append(f"{event.event} was acknowledged by {endpoint}, and then sent again: {found.outcomes}")
    return broken + [f"{pair} is a delivery of no event of its organisation" for pair in left]


def draws(ending: Ending) -> dict[Key, list[Dispatch]]:
    """What was sent to draw an eSIM, per key, as the upstream counts it."""
    found: dict[Key, list[Dispatch]] = defaultdict(list)
    for entry in ending.log:
        key = ending.history.of_call.get(entry.by)
        if entry.method != DRAW or is_top_up(entry) or key is None:
            continue
        if entry.code != TRAFFIC_LIMIT or key not in ending.sold:
            found[key].append(entry)
    return found


def is_top_up(entry: Dispatch) -> bool:
    """Onto a line, not from stock: the judge of sales looks at these."""
    return entry.method == DRAW and entry.line is not None


def by_key(records: Iterable[Record]) -> dict[Key, list[Record]]:
    """The answers of each key, in order."""
    found: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        if record.kind != "invoke":
            found[record.key].append(record)
    return found
