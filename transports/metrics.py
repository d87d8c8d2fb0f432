"""What Prometheus reads: depth and lag from the database, right whichever replica is asked, and what this process has counted."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import anyio

from clients.outside_system import OutsideSystem
from operations.services.issuing.obstacles import NOT_LOOKED_INTO, REASONS
from registry.clock import Clock
from registry.errors import StoreUnavailable
from storage.depth import MOST_COUNTED, REFUNDS, REPORTS, UNFINISHED, UNRESOLVED, Depth, depth
from storage.store import Store
from transports.http.connections import Connections
from transports.http.large_answers import LargeAnswers
from transports.http.turns import Turns
from transports.metric_families import by, counted, counts_of, gauge, histogram, histograms
from transports.signal_metrics import of_calls, of_program, of_stock, of_store, of_upstream_calls
from transports.signals import HttpSignals, ProcessSignals
from transports.tally import Tally

if TYPE_CHECKING:
    from prometheus_client.core import Metric

# No organisation, endpoint or line is a label: whoever reads metrics is not to learn who the tenants are.
STORE_SECONDS = 2.0
"""For the database to say what waits; what is left of a scrape's own time limit is for the answer."""
LIMITED = f"at most {MOST_COUNTED} are counted"
TYPE = "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"


class Served(NamedTuple):
    """What a process that serves HTTP counts beside its tally."""

    large: LargeAnswers
    connections: Connections
    requests: HttpSignals
    turns: Turns


class Metrics:
    """The metrics of a process; `served` only where it serves HTTP."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        tally: Tally,
        served: Served | None = None,
        systems: Sequence[OutsideSystem] = (),
        process: ProcessSignals | None = None,
    ) -> None:
        self._store, self._clock, self._tally, self._served, self._systems = store, clock, tally, served, systems
        self._process = process

    async def text(self) -> bytes:
        """All of them, in Prometheus' words. Without the database, those of this process."""
        from prometheus_client.exposition import generate_latest  # only when asked for: start-up time

        now = self._clock.now()
        found: Depth | None = None
        with suppress(StoreUnavailable), anyio.move_on_after(STORE_SECONDS):
            found = await self._store.read(depth, now_ms=int(now * 1000))
        known = [*of_database(found, now), *of_process(self._tally), *of_systems(self._systems), *of_upstream_calls(self._systems)]
        known += of_store(self._store.signals, self._store.pool_load)
        if self._process is not None:
            calls, stock, delay, build = self._process
            known += [*of_calls(calls), *of_stock(stock.free_counts()), *of_program(delay.seconds, build)]
        if self._served is not None:
            known += of_server(self._served)
        return generate_latest(Reading(known))


class Reading:
    """A registry of one reading, so that nothing is kept between two."""

    def __init__(self, metrics: "Iterable[Metric]") -> None:
        self._metrics = metrics

    def collect(self) -> "Iterable[Metric]":
        """What was read."""
        return self._metrics


def of_database(found: Depth | None, now: float) -> "Iterable[Metric]":
    """Depth and lag; nothing of them while the database cannot be read."""
    yield gauge("reseller_store_up", "1 when the database could be read for this answer", float(found is not None))
    if found is not None:
        waiting, mails = found.waiting, found.mails
        ages = [now - row.since for row in found.unresolved.values() if row.since is not None]
        waits = [now - row.since for row in found.unfinished.values() if row.since is not None]
        lag = 0.0 if waiting.oldest_due_ms is None else now - waiting.oldest_due_ms / 1000
        yield gauge("reseller_deliveries_pending", f"Deliveries to be sent, now or later; {LIMITED}", waiting.pending)
        yield gauge("reseller_deliveries_due", f"Deliveries to be sent now and taken by no worker; {LIMITED}", waiting.due)
        yield gauge("reseller_deliveries_in_flight", "Deliveries that a worker has under a lease", waiting.in_flight)
        yield gauge("reseller_deliveries_failed", f"Deliveries that ended without success; {LIMITED}", waiting.failed)
        yield gauge("reseller_delivery_lag_seconds", "Age of the oldest due delivery; 0 when none is due", max(0.0, lag))
        yield by("reseller_issuances_unresolved", "Issuances and releases whose end is not known yet", "state", states(found))
        reasons = {reason: float(found.obstacles.get(reason, 0)) for reason in (NOT_LOOKED_INTO, *REASONS)}
        yield by("reseller_issuances_unsettled", "Issuances of unknown outcome by what keeps them from being settled", "reason", reasons)
        yield gauge("reseller_issuance_unresolved_age_seconds", "Age of the oldest of them; 0 when there is none", max([0.0, *ages]))
        yield by("reseller_orders_unfinished", "Orders and top-ups that were paid and have not ended", "status", statuses(found))
        yield gauge("reseller_order_unfinished_age_seconds", "Age of the oldest of them; 0 when there is none", max([0.0, *waits]))
        refunds = {state: float(found.refunds.get(state, 0)) for state in REFUNDS}
        yield by("reseller_order_refunds", "Refunds of failed orders that were not made: under way, or for a person", "state", refunds)
        reports = {state: float(found.reports.get(state, 0)) for state in REPORTS}
        yield by("reseller_schedule_reports", "Reports of schedules that are to be made, or are being made", "state", reports)
        yield gauge("reseller_mails_waiting", f"Mails to be sent; {LIMITED}", mails.mails)
        mail_lag = 0.0 if mails.next_due_ms is None else now - mails.next_due_ms / 1000
        yield gauge("reseller_mail_lag_seconds", "Age of the oldest due mail; 0 when none is due", max(0.0, mail_lag))
        locks = found.lock_waits
        text = "Transactions of this database that wait for a lock now; PostgreSQL alone"
        yield gauge("reseller_database_lock_waiting", text, 0 if locks is None else locks.transactions)
        text = "Seconds that the oldest of them has waited"
        yield gauge("reseller_database_lock_waiting_age_seconds", text, 0.0 if locks is None else max(0.0, locks.seconds))
        late = 0.0 if found.next_boundary_ms is None else now - found.next_boundary_ms / 1000
        yield gauge(
            "reseller_schedule_lag_seconds", "Age of the oldest boundary that no worker has seen; 0 when there is none", max(0.0, late)
        )


def states(found: Depth) -> dict[str, float]:
    """Every state, those without a row too."""
    return {state: found.unresolved[state].rows if state in found.unresolved else 0 for state in UNRESOLVED}


def statuses(found: Depth) -> dict[str, float]:
    """Every status, those without a row too."""
    return {status: found.unfinished[status].orders if status in found.unfinished else 0 for status in UNFINISHED}


def of_process(tally: Tally) -> "Iterable[Metric]":
    """What this process has done."""
    from prometheus_client.core import CounterMetricFamily

    attempts = CounterMetricFamily("reseller_delivery_attempts", "Deliveries tried by this process", labels=["outcome"])
    for outcome, count in sorted(tally.attempts.items()):
        attempts.add_metric([outcome], count)
    yield attempts
    yield histogram("reseller_delivery_attempt_seconds", "Seconds that a try took", tally.seconds)
    name, text = "reseller_chore_last_success_timestamp_seconds", "When this process last did the chore, Unix time; 0: not yet"
    yield by(name, text, "chore", tally.chores)


def of_systems(systems: Sequence[OutsideSystem]) -> "Iterable[Metric]":
    """What this process knows of the outside systems: who waits for them, and whether calls are sent."""
    from prometheus_client.core import CounterMetricFamily

    waiting = {system.name: float(system.waiting) for system in systems}
    yield by("reseller_upstream_waiting", "Requests of this process that wait for an outside system", "system", waiting)
    open_for_all = {system.name: float(system.breaker.open_for_all) for system in systems}
    yield by("reseller_upstream_open", "1 while an outside system does not answer, and calls to it are refused", "system", open_for_all)
    owners = {system.name: float(system.breaker.open_owners) for system in systems}
    text = "Organisations whose calls to an outside system are refused, because their own are not answered"
    yield by("reseller_upstream_open_organisations", text, "system", owners)
    opened = CounterMetricFamily("reseller_upstream_opened", "Times that it came to that, for all or for one", labels=["system", "of"])
    text = "Calls to an outside system that were refused: it does not answer, or too many requests wait for it"
    refused = CounterMetricFamily("reseller_upstream_refused", text, labels=["system", "reason"])
    for system in systems:
        for of, count in system.breaker.opened.items():
            opened.add_metric([system.name, of], count)
        for reason, count in sorted(system.refused.items()):
            refused.add_metric([system.name, reason], count)
    yield opened
    yield refused


def of_server(served: Served) -> "Iterable[Metric]":
    """What the HTTP server of this process holds, and whom it turned away."""
    large, connections, requests, turns = served
    text = "Seconds until a request was answered, by what it reached and its outcome: all operations together, a path, or none"
    yield histograms("reseller_http_request_seconds", text, requests.seconds)
    yield gauge("reseller_http_requests_waiting", "Requests that wait for their turn in the event loop", float(len(turns)))
    text = "Requests refused before they were whole: malformed, too large, too slow, or too many connections"
    yield counts_of("reseller_http_requests_rejected", text, connections.rejected)
    yield gauge("reseller_connections", "Connections that are open at this process", float(len(connections)))
    text = "Connections that were ended: idle ones for a new one, new ones of a network that has too many, those of slow readers"
    yield counted("reseller_connections_ended", text, "reason", connections.ended)
    yield gauge("reseller_large_answers", "Answers above 1 MB that are being read", float(large.in_progress))
    yield gauge("reseller_large_answer_bytes", "Bytes of memory that they hold", float(large.held))
    text = "Answers above 1 MB refused: the credential reads another, or those of the organisation or of all hold too much memory"
    yield counted("reseller_large_answers_refused", text, "reason", large.refused)
