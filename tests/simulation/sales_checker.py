"""The judge of sales: each that was paid has its eSIM or its package once, or its money back, or is seen by a person; by the logs of both
outside systems.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from tests.harness.invariants import HAD, TRAFFIC_LIMIT, is_top_up
from tests.network_facts import DRAW
from tests.simulation.processor import Processor
from tests.simulation.provider import Dispatch

CHANGE = "changeSimStatus"
BY_HAND = "refund:"
DECIDED = ("ready", "failed", "needs_review")
LOST = ("outcome_unknown", "manual_reconciliation_required")
HELD = ("issued", "rollback_pending", "rollback_unknown")
"""The eSIM is the buyer's, or may be."""


class OrderEnd(NamedTuple):
    """An order or top-up when all is over, and what the ledger says of its eSIM."""

    id: str
    top_up_of: str | None
    organisation: str
    status: str
    code: str | None
    refund: str | None
    template: int
    iccid: str | None
    package: int | None
    ledger: str | None
    drawn: str | None

    @property
    def seen(self) -> str:
        """As its buyer sees it: of a crash the ledger knows first."""
        return "needs_review" if self.status == "provisioning" and self.ledger in LOST else self.status


@dataclass(frozen=True, slots=True)
class SalesEnding:
    """What is known of the sales when all is over."""

    rows: Sequence[OrderEnd]
    calls: Mapping[str, int]
    """The number in the upstream's log for each order that a buyer was shown the page of."""
    processor: Processor
    by_hand: Set[str]
    """Orders whose operator refunds by hand as well."""
    log: Sequence[Dispatch]
    told: Counter[str]
    """How many letters each buyer was sent, by what they bought."""
    warned: Counter[tuple[str, str]]
    """How many letters about each order its operator was sent, by what they tell."""
    packages: frozenset[int]


def check_sales(ending: SalesEnding) -> list[str]:
    """What was broken of our promises to buyers; empty when all held."""
    orders = [row for row in ending.rows if row.top_up_of is None]
    broken = [f"{row.id}: {line}" for row in ending.rows for line in check_money(ending, row)]
    broken += [f"{row.id}: {line}" for row in ending.rows for line in check_letters(ending, row)]
    broken += [f"{row.id}: {line}" for row in orders for line in check_order(ending, row)]
    holders = Counter(row.iccid for row in orders if row.status == "ready" and row.ledger in HELD)
    broken += [f"{iccid}: {count} orders have it" for iccid, count in holders.items() if count > 1]
    return broken + check_top_ups(ending, orders)


def check_money(ending: SalesEnding, row: OrderEnd) -> Iterator[str]:
    """What was paid is either earned, or given back whole; what was never paid is never delivered."""
    processor, seen = ending.processor, row.seen
    paid, back = processor.paid(row.id), processor.given_back(row.id)
    if back > (paid or 0):
        yield f"{back} given back of {paid}"
    if paid is None:
        if seen != "pending_payment":
            yield f"{seen}, and never paid"
        return
    if seen not in DECIDED:
        yield f"paid, and still {seen}"
    if seen != "failed" and (processor.given_back(row.id, without=BY_HAND) or row.refund is not None):
        yield f"{seen}, and {back} of {paid} was given back (refund {row.refund})"
    done = processor.refunds_of(row.id)
    if row.id not in ending.by_hand and done > 1:
        yield f"{done} refunds were asked for"
    if seen == "failed":
        yield from check_refund(ending, row, paid, back)


def check_refund(ending: SalesEnding, row: OrderEnd, paid: int, back: int) -> Iterator[str]:
    """A failed one has its money back. Where the processor cannot give it back, that is said."""
    processor, told = ending.processor, f"failed ({row.code}), and {back} of {paid} was given back (refund {row.refund})"
    if paid == 0:
        if row.refund is not None:
            yield told
    elif processor.fell(row.id):
        if row.refund not in ("done", "failed"):  # nothing asks whether what was given back stays there
            yield told
    elif processor.keeps(row.id):
        if row.refund != "failed":
            yield told
    elif row.id in ending.by_hand and row.refund == "failed":
        """A refund by hand whose outcome nobody knows holds what it may have taken, and a person is told."""
    elif back != paid or row.refund != "done":
        yield told


def check_letters(ending: SalesEnding, row: OrderEnd) -> Iterator[str]:
    """Whose purchase came to an end is told of it once; of what nobody knows the operator is told once."""
    told, warned, seen = ending.told[row.id], ending.warned["review", row.id], row.seen
    if told != (seen in ("ready", "failed")):
        yield f"{seen}, and its buyer was sent {told} letters"
    if warned > 1 or (seen == "needs_review" and warned != 1):
        yield f"{seen}, and its operator was sent {warned} letters that it needs review"
    if (owing := ending.warned["refund", row.id]) != (row.refund == "failed"):
        yield f"its refund is {row.refund}, and its operator was sent {owing} letters that it failed"


def check_order(ending: SalesEnding, row: OrderEnd) -> Iterator[str]:
    """At most one eSIM is drawn, and who has it knows."""
    call = ending.calls.get(row.id)
    tried = [entry for entry in ending.log if entry.method == DRAW and entry.by == call and not is_top_up(entry)]
    sent = [entry for entry in tried if entry.code != TRAFFIC_LIMIT]
    gave = [entry.iccid for entry in sent if entry.effect]
    if len(sent) > 1:
        yield f"{len(sent)} dispatches"
    if row.status == "ready" and (gave != [row.iccid] or row.ledger not in HAD or row.drawn != row.iccid):
        yield f"ready with {row.iccid}, the ledger says {row.ledger} {row.drawn}, the upstream gave {gave}"
    if row.status == "ready" and row.ledger == "issued" and not {entry.package for entry in sent} <= ending.packages:
        yield "ready, and its package is gone"
    if row.seen in ("pending_payment", "failed") and gave:
        yield f"{row.seen}, and {gave} was drawn"
    if row.seen == "pending_payment" and (sent or row.ledger is not None):
        yield "nobody has paid, and it was sent"


def check_top_ups(ending: SalesEnding, orders: Sequence[OrderEnd]) -> list[str]:
    """Packages are added to an order's own eSIM alone, and no more of them than were paid. Those of one template cannot be told apart."""
    wanted: dict[tuple[str, int], list[OrderEnd]] = defaultdict(list)
    for row in ending.rows:
        if row.top_up_of is not None:
            wanted[row.top_up_of, row.template].append(row)
    order_of = {call: id for id, call in ending.calls.items()}
    sent: dict[tuple[str, int], list[Dispatch]] = defaultdict(list)
    broken: list[str] = []
    for entry, holder in held_at_the_time(ending.log, order_of):
        if holder is None or (holder, entry.template or 0) not in wanted:
            broken.append(f"{entry} was added to a line that is {holder or 'nobody'}'s")
        else:
            sent[holder, entry.template or 0].append(entry)
    for (order, template), rows in wanted.items():
        broken += [f"{order}: top-ups {template}: {line}" for line in check_added(ending, rows, sent[order, template])]
    return broken


def check_added(ending: SalesEnding, rows: Sequence[OrderEnd], sent: Sequence[Dispatch]) -> Iterator[str]:
    """What was sent for the top-ups of an order and template, beside what they say."""
    paid = [row for row in rows if ending.processor.paid(row.id) is not None]
    added = {entry.package for entry in sent if entry.effect}
    ready = [row.package for row in rows if row.status == "ready"]
    unknown = sum(row.seen == "needs_review" for row in rows)
    tried = sum(entry.code != TRAFFIC_LIMIT for entry in sent)
    if tried > len(paid):
        yield f"{len(paid)} were paid, {tried} were sent"
    if len(set(ready)) != len(ready) or not set(ready) <= added:
        yield f"ready with {ready}, the upstream added {sorted(added, key=str)}"
    if not len(ready) <= len(added) <= len(ready) + unknown:
        yield f"{len(added)} were added, {len(ready)} are ready and {unknown} unknown"


def held_at_the_time(log: Sequence[Dispatch], order_of: Mapping[int, str]) -> Iterator[tuple[Dispatch, str | None]]:
    """What was sent to a line by the service, each with the order whose eSIM it was when it was sent."""
    holder: dict[str, str | None] = {}
    for entry in log:
        if is_top_up(entry):
            yield entry, holder.get(entry.line or "")
        elif entry.method == DRAW and entry.iccid is not None:
            holder[entry.iccid] = order_of.get(entry.by)
        elif entry.method == CHANGE and entry.iccid is not None:
            holder[entry.iccid] = None
