"""What we hand to Prometheus and Grafana asks only for what a process really shows, and tells where it is explained."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import cast

import pytest

from storage.backlog import MOST_COUNTED, REFUND_STATES, REPORT_STATES, UNFINISHED_STATUSES, UNRESOLVED_STATES
from tests.docs.tables import alerts, metric_families
from tests.harness.processes import ROOT
from tests.signals.promql import Expression, Malformed

ALERTS, DASHBOARD = ROOT / "ops" / "alerts.yaml", ROOT / "ops" / "dashboard.json"
OF_PROMETHEUS = {"le", "instance", "job"}
PROMTOOL = which("promtool")


def panels() -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", json.loads(DASHBOARD.read_text())["panels"])


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in alerts())
    yield from (target["expr"] for panel in panels() for target in cast("list[Mapping[str, str]]", panel["targets"]))


def series() -> dict[str, set[str]]:
    """Every series that a process shows, with its labels."""
    found = dict[str, set[str]]()
    for family in metric_families():
        labels = set(vars(family).get("_labelnames", ()))
        ends = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(family.type, ("",))
        found |= {f"{family.name}{end}": labels | ({"le"} if end == "_bucket" else set()) for end in ends}
    return found


@pytest.mark.cases
@pytest.mark.parametrize("text", list(expressions()))
def test_an_expression_is_well_formed_and_asks_for_series_and_labels_that_there_are(text: str) -> None:
    known, read = series(), Expression(text)
    assert read.selectors or text.startswith("time()")
    for each in read.selectors:
        assert each.metric in known
        assert each.labels <= known[each.metric] | OF_PROMETHEUS
    assert read.grouped <= set[str]().union(*(known[each.metric] for each in read.selectors)) | OF_PROMETHEUS


@pytest.mark.parametrize(
    "text",
    [
        "sum(rate(a[5m])",
        "rate(a)",
        "a > > 1",
        "a{b=c}",
        "sum by le (a)",
        "histogram_quantile(0.9)",
        "a[5m",
        "a b",
        "rate(a[5q])",
        "frob(a)",
    ],
)
def test_what_is_no_expression_is_found_out(text: str) -> None:
    with pytest.raises(Malformed):
        Expression(text)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian: prometheus) is not installed")
def test_promtool_takes_the_alerts() -> None:
    said = subprocess.run([str(PROMTOOL), "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert (said.returncode, f"SUCCESS: {len(alerts())} rules found" in said.stdout) == (0, True), said.stderr


FIRING = """
rule_files: [ALERTS]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'reseller_store_up{instance="a"}', values: '0x20'}
      - {series: 'reseller_call_seconds_count{operation="x",door="http",outcome="failed"}', values: '0+10x20'}
      - {series: 'reseller_call_seconds_count{operation="x",door="http",outcome="ok"}', values: '0+90x20'}
      - {series: 'reseller_upstream_open{instance="a",system="model"}', values: '1x20'}
    alert_rule_test:
      - {eval_time: 15m, alertname: ServiceNotScraped, exp_alerts: []}
      - eval_time: 15m
        alertname: DatabaseUnreachable
        exp_alerts: [{exp_labels: {severity: page}, exp_annotations: DatabaseUnreachable}]
      - eval_time: 15m
        alertname: CallsFail
        exp_alerts: [{exp_labels: {severity: page}, exp_annotations: CallsFail}]
      - eval_time: 15m
        alertname: OutsideSystemDown
        exp_alerts: [{exp_labels: {severity: page, system: model}, exp_annotations: OutsideSystemDown}]
  - interval: 1m
    name: servers alone, without a worker
    input_series:
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="a",chore="retention"}', values: '0x30'}
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="a",chore="recovery"}', values: '0x30'}
    alert_rule_test:
      - {eval_time: 25m, alertname: ChoreFails, exp_alerts: []}
      - eval_time: 25m
        alertname: NoWorker
        exp_alerts: [{exp_labels: {severity: page}, exp_annotations: NoWorker}]
  - interval: 1m
    name: a server beside two workers that share the chores
    input_series:
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="a",chore="retention"}', values: '0x30'}
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="b",chore="retention"}', values: '0+60x30'}
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="c",chore="retention"}', values: '0x30'}
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="c",chore="recovery"}', values: '0+60x30'}
    alert_rule_test:
      - {eval_time: 25m, alertname: ChoreFails, exp_alerts: []}
      - {eval_time: 25m, alertname: NoWorker, exp_alerts: []}
  - interval: 1m
    name: a worker that does one chore, has stopped to do one, and has never done one
    input_series:
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="a",chore="retention"}', values: '0+60x30'}
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="a",chore="recovery"}', values: '60x30'}
      - {series: 'reseller_chore_last_success_timestamp_seconds{instance="a",chore="reports"}', values: '0x30'}
    alert_rule_test:
      - {eval_time: 25m, alertname: NoWorker, exp_alerts: []}
      - eval_time: 25m
        alertname: ChoreFails
        exp_alerts:
          - {exp_labels: {severity: ticket, chore: recovery}, exp_annotations: ChoreFails}
          - {exp_labels: {severity: ticket, chore: reports}, exp_annotations: ChoreFails}
"""


@pytest.mark.long
@pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian: prometheus) is not installed")
def test_an_alert_fires_at_its_threshold(tmp_path: Path) -> None:
    text = FIRING.replace("ALERTS", str(ALERTS))
    for rule in alerts():
        text = text.replace(f"exp_annotations: {rule['alert']}}}", f"exp_annotations: {json.dumps(rule['annotations'])}}}")
    (tmp_path / "test.yaml").write_text(text)
    said = subprocess.run([str(PROMTOOL), "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_every_alert_says_what_it_means_what_to_do_and_where_that_is_explained() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names)) and all(re.fullmatch(r"[A-Z][A-Za-z]+", name) for name in names)
    for rule in alerts():
        assert rule["annotations"].keys() == {"summary", "action", "runbook"} and rule["labels"]["severity"] in ("page", "ticket")
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"} and re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        heads = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_label_values_that_alerts_look_for_are_values_that_there_are() -> None:
    code = "".join((ROOT / path).read_text() for path in ("clients/outside_system.py", "registry/signals.py", "registry/errors.py"))
    known = {
        *UNRESOLVED_STATES,
        *UNFINISHED_STATUSES,
        *REFUND_STATES,
        *REPORT_STATES,
        "none",
        "network",
        "operations",
        "mcp",
        "ok",
        *re.findall(r'"(\w+)"', code),
    }
    sought = {value for text in expressions() for values in re.findall(r'=~?"([^"]*)"', text) for value in values.split("|")}
    assert sought <= known
    assert MOST_COUNTED == 10_000  # as the guide says


def test_panels_have_a_place_and_a_number_of_their_own() -> None:
    places = [(panel["gridPos"], panel["id"]) for panel in panels()]
    assert len({json.dumps(place) for place, _ in places}) == len({number for _, number in places}) == len(panels())
