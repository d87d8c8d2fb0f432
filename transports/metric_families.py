"""Metric families in the library's words, made at a scrape of plain numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from registry.latency import Counts, Histogram, Histograms

if TYPE_CHECKING:  # imported at the first scrape: a quarter of a second
    from prometheus_client.core import Metric


def gauge(name: str, text: str, value: float) -> "Metric":
    """One number."""
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(name, text, value=value)


def by(name: str, text: str, label: str, values: Mapping[str, float]) -> "Metric":
    """One number for each value of a label."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def counter(name: str, text: str, value: float) -> "Metric":
    """One count."""
    from prometheus_client.core import CounterMetricFamily

    return CounterMetricFamily(name, text, value=value)


def counted(name: str, text: str, label: str, counts: Mapping[str, int]) -> "Metric":
    """One count for each value of a label."""
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family


def counts_of(name: str, text: str, counts: Counts) -> "Metric":
    """One count for each combination of label values."""
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, text, labels=counts.labels)
    for values, count in sorted(counts.series.items()):
        family.add_metric(values, count)
    return family


def buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Each bound, and how many took no longer."""
    total, found = 0, list[tuple[str, float]]()
    for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.within, strict=True):
        total += count
        found.append((bound, total))
    return found


def histogram(name: str, text: str, of: Histogram) -> "Metric":
    """One histogram."""
    from prometheus_client.core import HistogramMetricFamily

    return HistogramMetricFamily(name, text, buckets=buckets(of), sum_value=of.seconds)


def histograms(name: str, text: str, of: Histograms) -> "Metric":
    """One histogram for each combination of label values."""
    return histograms_by(name, text, (), {"": of}, of.labels)


def histograms_by(name: str, text: str, label: tuple[str, ...], given: Mapping[str, Histograms], labels: tuple[str, ...]) -> "Metric":
    """The same for several sets of them, whose names are the values of `label` where there is one."""
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(name, text, labels=[*label, *labels])
    for key, each in given.items():
        for values, one in sorted(each.series.items()):
            family.add_metric([*([key] if label else []), *values], buckets(one), one.seconds)
    return family
