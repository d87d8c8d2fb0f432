"""The four golden signals of a process as metric families: traffic, errors, latency and saturation."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from clients.outside_system import OutsideSystem
from operations.deps import Build
from registry.call_signals import CallSignals
from registry.latency import Histogram, Histograms
from storage.database_signals import DatabaseSignals, PoolLoad
from transports.metric_families import by, counter, counts_of, gauge, histogram, histograms, histograms_by

if TYPE_CHECKING:
    from prometheus_client.core import Metric

FEW, SOME = 10, 100


def of_calls(signals: CallSignals) -> "Iterable[Metric]":
    """Calls of operations, whatever door they came through."""
    text = "Seconds until a call was answered; refused is up to the caller, failed to the service or an outside system"
    yield histograms("reseller_call_seconds", text, signals.seconds)
    yield counts_of("reseller_call_errors", "Calls that were refused or failed, by the code of the answer", signals.errors)


def of_upstream_calls(systems: Sequence[OutsideSystem]) -> "Iterable[Metric]":
    """Calls to outside systems."""
    text = "Seconds of a call to an outside system, by its method there and its outcome; the wait for a place is included"
    calls = {system.name: system.calls for system in systems}
    yield histograms_by("reseller_upstream_call_seconds", text, ("system",), calls, ("method", "outcome"))
    queues = dict[str, Histograms]()
    for system in systems:
        queues[system.name] = waits = Histograms(())
        if system.queue.count:
            waits.series[()] = system.queue
    yield histograms_by("reseller_upstream_queue_seconds", "Seconds that these calls waited for a place", ("system",), queues, ())


def of_store(signals: DatabaseSignals, load: PoolLoad) -> "Iterable[Metric]":
    """Calls of the database."""
    text = "Seconds of a transaction of this process, its waits included"
    yield histograms("reseller_database_call_seconds", text, signals.calls)
    text = "Seconds that transactions waited for a connection of this process; PostgreSQL alone"
    yield histogram("reseller_database_pool_wait_seconds", text, signals.pool_wait)
    text = "Seconds of waits for the write lock that another process held; SQLite alone"
    yield histogram("reseller_database_lock_wait_seconds", text, signals.lock_wait)
    text = "Transactions that ran again, because others had changed the same rows; PostgreSQL alone"
    yield counter("reseller_database_collisions", text, signals.collisions)
    yield gauge("reseller_database_pool_size", "Connections that this process may have; 0 with SQLite", load.size)
    yield gauge("reseller_database_pool_busy", "Transactions that have a connection now", load.busy)
    yield gauge("reseller_database_pool_waiting", "Transactions that wait for a connection now", load.waiting)


def of_stock(free: Sequence[int]) -> "Iterable[Metric]":
    """Free eSIMs of accounts, as this process last saw them. Choice: no account is named, since accounts are tenants."""
    levels = {
        "none": sum(count == 0 for count in free),
        "few": sum(0 < count < FEW for count in free),
        "some": sum(FEW <= count < SOME for count in free),
        "many": sum(count >= SOME for count in free),
    }
    text = f"Accounts that something was drawn from in the last day, by free eSIMs then: none, few (under {FEW}), some (under {SOME}), many"
    yield by("reseller_stock_accounts", text, "free", levels)


def of_program(delay: Histogram, build: Build) -> "Iterable[Metric]":
    """The process itself: what it runs, what it takes of the machine, and by how much its loop is late."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.process_collector import ProcessCollector

    info = GaugeMetricFamily("reseller_build_info", "Version and build of this process; always 1", labels=["version", "build"])
    info.add_metric([build.version, build.sha], 1)
    yield info
    text = "Seconds by which the event loop was late for what was due, ten times a second"
    yield histogram("reseller_event_loop_delay_seconds", text, delay)
    yield from ProcessCollector(registry=None).collect()
