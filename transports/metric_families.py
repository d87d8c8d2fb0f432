"""Each metric of a process in the words of Prometheus' library, which takes a quarter of a second to import: transports.metrics does so
at the first scrape.

No organisation, endpoint or line is a label: whoever reads metrics is not to learn who the tenants are.
"""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector

from clients.outside_system import OutsideSystem
from operations.deps import Build
from operations.ledger.evidence import OBSTACLE_NOT_EXAMINED, OBSTACLE_REASONS
from registry.signals import CallSignals, Counts, Histogram, Histograms
from storage.backlog import MOST_COUNTED, REFUND_STATES, REPORT_STATES, UNFINISHED_STATUSES, UNRESOLVED_STATES, Backlog, WaitingCount
from storage.engine.database_signals import DatabaseSignals, PoolLoad
from transports.http.concurrency import LargeAnswers, RequestTurns
from transports.http.connections import Connections
from transports.signals import HttpSignals, WorkerTally

COUNT_LIMIT_TEXT = f"at most {MOST_COUNTED} are counted"


def gauge_family(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def gauges_by_label(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def counters_by_label(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family


def counters_by_labels(name: str, text: str, counts: Counts) -> Metric:
    family = CounterMetricFamily(name, text, labels=counts.labels)
    for values, count in sorted(counts.series.items()):
        family.add_metric(values, count)
    return family


def histogram_buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Each bound, and how many took no longer."""
    total, found = 0, list[tuple[str, float]]()
    for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.within, strict=True):
        total += count
        found.append((bound, total))
    return found


def histogram_family(name: str, text: str, of: Histogram) -> Metric:
    return HistogramMetricFamily(name, text, buckets=histogram_buckets(of), sum_value=of.seconds)


def histograms_by_labels(name: str, text: str, of: Histograms) -> Metric:
    return histograms_of_sets(name, text, (), {"": of}, of.labels)


def histograms_of_sets(name: str, text: str, label: tuple[str, ...], given: Mapping[str, Histograms], labels: tuple[str, ...]) -> Metric:
    """The same for several sets of them, whose names are the values of `label` where there is one."""
    family = HistogramMetricFamily(name, text, labels=[*label, *labels])
    for key, each in given.items():
        for values, one in sorted(each.series.items()):
            family.add_metric([*([key] if label else []), *values], histogram_buckets(one), one.seconds)
    return family


class MetricsSnapshot:
    """A registry of one reading, so that nothing is kept between two."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def prometheus_text(metrics: Iterable[Metric]) -> bytes:
    """`metrics` as text, in the format of METRICS_MEDIA_TYPE."""
    return generate_latest(MetricsSnapshot(metrics))


def database_metrics(found: Backlog | None, now: float) -> Iterable[Metric]:
    """Depth and lag; nothing of them while the database cannot be read."""
    yield gauge_family("reseller_store_up", "1 when the database could be read for this answer", float(found is not None))
    if found is not None:
        waiting, mails = found.waiting, found.mails
        ages = [now - row.since for row in found.unresolved.values() if row.since is not None]
        waits = [now - row.since for row in found.unfinished.values() if row.since is not None]
        lag = 0.0 if waiting.oldest_due_ms is None else now - waiting.oldest_due_ms / 1000
        yield gauge_family("reseller_deliveries_pending", f"Deliveries to be sent, now or later; {COUNT_LIMIT_TEXT}", waiting.pending)
        yield gauge_family("reseller_deliveries_due", f"Deliveries to be sent now and taken by no worker; {COUNT_LIMIT_TEXT}", waiting.due)
        yield gauge_family("reseller_deliveries_in_flight", "Deliveries that a worker has under a lease", waiting.in_flight)
        yield gauge_family("reseller_deliveries_failed", f"Deliveries that ended without success; {COUNT_LIMIT_TEXT}", waiting.failed)
        yield gauge_family("reseller_delivery_lag_seconds", "Age of the oldest due delivery; 0 when none is due", max(0.0, lag))
        yield gauges_by_label(
            "reseller_issuances_unresolved",
            "Issuances and releases whose end is not known yet",
            "state",
            rows_by_state(found.unresolved, UNRESOLVED_STATES),
        )
        reasons = {reason: float(found.obstacles.get(reason, 0)) for reason in (OBSTACLE_NOT_EXAMINED, *OBSTACLE_REASONS)}
        yield gauges_by_label(
            "reseller_issuances_unsettled", "Issuances of unknown outcome by what keeps them from being settled", "reason", reasons
        )
        yield gauge_family("reseller_issuance_unresolved_age_seconds", "Age of the oldest of them; 0 when there is none", max([0.0, *ages]))
        yield gauges_by_label(
            "reseller_orders_unfinished",
            "Orders and top-ups that were paid and have not ended",
            "status",
            rows_by_state(found.unfinished, UNFINISHED_STATUSES),
        )
        yield gauge_family("reseller_order_unfinished_age_seconds", "Age of the oldest of them; 0 when there is none", max([0.0, *waits]))
        refunds = {state: float(found.refunds.get(state, 0)) for state in REFUND_STATES}
        yield gauges_by_label(
            "reseller_order_refunds", "Refunds of failed orders that were not made: under way, or for a person", "state", refunds
        )
        reports = {state: float(found.reports.get(state, 0)) for state in REPORT_STATES}
        yield gauges_by_label("reseller_schedule_reports", "Reports of schedules that are to be made, or are being made", "state", reports)
        yield gauge_family("reseller_mails_waiting", f"Mails to be sent; {COUNT_LIMIT_TEXT}", mails.mails)
        mail_lag = 0.0 if mails.next_due_ms is None else now - mails.next_due_ms / 1000
        yield gauge_family("reseller_mail_lag_seconds", "Age of the oldest due mail; 0 when none is due", max(0.0, mail_lag))
        locks = found.lock_waits
        text = "Transactions of this database that wait for a lock now; PostgreSQL alone"
        yield gauge_family("reseller_database_lock_waiting", text, 0 if locks is None else locks.transactions)
        text = "Seconds that the oldest of them has waited"
        yield gauge_family("reseller_database_lock_waiting_age_seconds", text, 0.0 if locks is None else max(0.0, locks.seconds))
        late = 0.0 if found.next_boundary_ms is None else now - found.next_boundary_ms / 1000
        yield gauge_family(
            "reseller_schedule_lag_seconds", "Age of the oldest boundary that no worker has seen; 0 when there is none", max(0.0, late)
        )


def rows_by_state(counted: Mapping[str, WaitingCount], states: Iterable[str]) -> dict[str, float]:
    """How many rows are counted of each state, those without a row too."""
    return {state: counted[state].rows if state in counted else 0 for state in states}


def worker_metrics(tally: WorkerTally) -> Iterable[Metric]:
    yield counters_by_label("reseller_delivery_attempts", "Deliveries tried by this process", "outcome", tally.attempts)
    yield histogram_family("reseller_delivery_attempt_seconds", "Seconds that a try took", tally.seconds)
    name, text = "reseller_chore_last_success_timestamp_seconds", "When this process last did the chore, Unix time; 0: not yet"
    yield gauges_by_label(name, text, "chore", tally.chores)


def outside_system_metrics(systems: Sequence[OutsideSystem]) -> Iterable[Metric]:
    """What this process knows of the outside systems: who waits for them, and whether calls are sent."""
    waiting = {system.name: float(system.waiting) for system in systems}
    yield gauges_by_label("reseller_upstream_waiting", "Requests of this process that wait for an outside system", "system", waiting)
    open_for_all = {system.name: float(system.breaker.open_for_all) for system in systems}
    yield gauges_by_label(
        "reseller_upstream_open", "1 while an outside system does not answer, and calls to it are refused", "system", open_for_all
    )
    owners = {system.name: float(system.breaker.open_owners) for system in systems}
    text = "Organisations whose calls to an outside system are refused, because their own are not answered"
    yield gauges_by_label("reseller_upstream_open_organisations", text, "system", owners)
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


def http_server_metrics(large: LargeAnswers, connections: Connections, requests: HttpSignals, turns: RequestTurns) -> Iterable[Metric]:
    text = "Seconds until a request was answered, by what it reached and its outcome: all operations together, a path, or none"
    yield histograms_by_labels("reseller_http_request_seconds", text, requests.seconds)
    yield gauge_family("reseller_http_requests_waiting", "Requests that wait for their turn in the event loop", float(len(turns)))
    text = "Requests refused before they were whole: malformed, too large, too slow, or too many connections"
    yield counters_by_labels("reseller_http_requests_rejected", text, connections.rejected)
    yield gauge_family("reseller_connections", "Connections that are open at this process", float(len(connections)))
    text = "Connections that were ended: idle ones for a new one, new ones of a network that has too many, those of slow readers"
    yield counters_by_label("reseller_connections_ended", text, "reason", connections.ended)
    yield gauge_family("reseller_large_answers", "Answers above 1 MB that are being read", float(large.in_progress))
    yield gauge_family("reseller_large_answer_bytes", "Bytes of memory that they hold", float(large.held))
    text = "Answers above 1 MB refused: the credential reads another, or those of the organisation or of all hold too much memory"
    yield counters_by_label("reseller_large_answers_refused", text, "reason", large.refused)


FEW_FREE_ESIMS, SOME_FREE_ESIMS = 10, 100


def call_metrics(signals: CallSignals) -> Iterable[Metric]:
    """Calls of operations, whatever door they came through."""
    text = "Seconds until a call was answered; refused is up to the caller, failed to the service or an outside system"
    yield histograms_by_labels("reseller_call_seconds", text, signals.seconds)
    yield counters_by_labels("reseller_call_errors", "Calls that were refused or failed, by the code of the answer", signals.errors)


def upstream_call_metrics(systems: Sequence[OutsideSystem]) -> Iterable[Metric]:
    text = "Seconds of a call to an outside system, by its method there and its outcome; the wait for a place is included"
    calls = {system.name: system.calls for system in systems}
    yield histograms_of_sets("reseller_upstream_call_seconds", text, ("system",), calls, ("method", "outcome"))
    queues = dict[str, Histograms]()
    for system in systems:
        queues[system.name] = waits = Histograms(())
        if system.queue.count:
            waits.series[()] = system.queue
    yield histograms_of_sets("reseller_upstream_queue_seconds", "Seconds that these calls waited for a place", ("system",), queues, ())


def store_metrics(signals: DatabaseSignals, load: PoolLoad) -> Iterable[Metric]:
    text = "Seconds of a transaction of this process, its waits included"
    yield histograms_by_labels("reseller_database_call_seconds", text, signals.calls)
    text = "Seconds that transactions waited for a connection of this process; PostgreSQL alone"
    yield histogram_family("reseller_database_pool_wait_seconds", text, signals.pool_wait)
    text = "Seconds of waits for the write lock that another process held; SQLite alone"
    yield histogram_family("reseller_database_lock_wait_seconds", text, signals.lock_wait)
    text = "Transactions that ran again, because others had changed the same rows; PostgreSQL alone"
    yield CounterMetricFamily("reseller_database_collisions", text, value=signals.collisions)
    yield gauge_family("reseller_database_pool_size", "Connections that this process may have; 0 with SQLite", load.size)
    yield gauge_family("reseller_database_pool_busy", "Transactions that have a connection now", load.busy)
    yield gauge_family("reseller_database_pool_waiting", "Transactions that wait for a connection now", load.waiting)


def stock_metrics(free: Sequence[int]) -> Iterable[Metric]:
    """Free eSIMs of accounts, as this process last saw them. Choice: no account is named, since accounts are tenants."""
    levels = {
        "none": sum(count == 0 for count in free),
        "few": sum(0 < count < FEW_FREE_ESIMS for count in free),
        "some": sum(FEW_FREE_ESIMS <= count < SOME_FREE_ESIMS for count in free),
        "many": sum(count >= SOME_FREE_ESIMS for count in free),
    }
    words = f"none, few (under {FEW_FREE_ESIMS}), some (under {SOME_FREE_ESIMS}), many"
    text = f"Accounts that something was drawn from in the last day, by free eSIMs then: {words}"
    yield gauges_by_label("reseller_stock_accounts", text, "free", levels)


def process_metrics(delay: Histogram, build: Build, lost_lines: int) -> Iterable[Metric]:
    """The process itself: what it runs, what it takes of the machine, by how much its loop is late, and what its log lost."""
    info = GaugeMetricFamily("reseller_build_info", "Version and build of this process; always 1", labels=["version", "build"])
    info.add_metric([build.version, build.sha], 1)
    yield info
    text = "Seconds by which the event loop was late for what was due, ten times a second"
    yield histogram_family("reseller_event_loop_delay_seconds", text, delay)
    text = "Lines of the log that were not written, since nobody read them or the disk was full"
    yield CounterMetricFamily("reseller_log_lines_lost", text, value=lost_lines)
    yield from ProcessCollector(registry=None).collect()
