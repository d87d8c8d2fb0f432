"""The tables of the documents that repeat what code says: `python -m tests.docs.tables` writes them anew."""

import importlib.util
import re
import sys
from dataclasses import fields
from itertools import groupby
from typing import NotRequired, TypedDict

if __name__ == "__main__" and importlib.util.find_spec("pytest") is None:  # a clone that has only run `serve`; said before all is imported
    sys.exit("pytest is missing: `python3 ./run test tests/docs/test_tables.py` once installs the development packages; then try again")

import yaml
from annotated_types import Le
from prometheus_client.core import Metric

from clients.webhooks.addresses import PrivateReceivers
from operations.catalogue import CATALOGUE
from operations.deps import Build
from operations.intelligence.schedule_reports import SHEETS
from registry.limits import TierLimits
from registry.signals import DELAY_BOUNDS, CallSignals, Histogram
from storage.backlog import Backlog, WaitingDeliveries, WaitingMails
from storage.engine.database_signals import DatabaseSignals, PoolLoad
from tests.harness.processes import ROOT
from tests.mcp.tool_sizes import measure_tools
from tests.spec.ledgers import abuse_promises
from transports.http.concurrency import LargeAnswers, RequestTurns
from transports.http.connections import Connections
from transports.metric_families import (
    call_metrics,
    database_metrics,
    http_server_metrics,
    outside_system_metrics,
    process_metrics,
    stock_metrics,
    store_metrics,
    upstream_call_metrics,
    worker_metrics,
)
from transports.settings import SETTING_PREFIX, Settings
from transports.signals import HttpSignals, WorkerTally


def settings_table() -> str:
    rows = ["| Setting | Default | Meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        secret = hasattr(field.default, "get_secret_value")
        default = (
            ""
            if secret or field.default in (None, "", (), PrivateReceivers())
            else str(field.default).lower()
            if name in BOOLEANS
            else limits_text(field.default)
            if isinstance(field.default, TierLimits)
            else str(field.default)
        )
        rows.append(f"| `{SETTING_PREFIX}{name.upper()}` | {f'`{default}`' if default else ''} | {field.description} |")
    return "\n".join(rows)


def limits_text(limits: TierLimits) -> str:
    """As a setting takes them."""
    return ",".join(f"{each.name}={getattr(limits, each.name)}" for each in fields(limits))


BOOLEANS = {name for name, field in Settings.model_fields.items() if isinstance(field.default, bool)}


def toolsets_table() -> str:
    plain = "`connectivity,fleet,operator` (plain `/mcp`)"
    selections = {plain: ["connectivity", "fleet", "operator"], "`core`": ["core"], "`operator`": ["operator"], "`all`": ["all"]}
    own = [toolset.name for toolset in CATALOGUE.toolsets if toolset.name in CATALOGUE.names()]
    rows = ["| Selection | Tools | Tokens, about | With output schemas |", "|---|---|---|---|"]
    for shown, names in {**selections, **{f"`{name}`": [name] for name in own}}.items():
        size = measure_tools(CATALOGUE, names)
        rows.append(f"| {shown} | {size.tools} | {about(size.tokens)} | {about(size.with_outputs)} |")
    return "\n".join(rows)


def about(tokens: int) -> str:
    """A count as it is told: to hundreds, and where it is large to thousands."""
    return f"{round(tokens, -3 if tokens >= 5000 else -2):,}"


Rule = TypedDict(
    "Rule", {"alert": str, "expr": str, "for": NotRequired[str], "labels": dict[str, str], "annotations": dict[str, str]}, total=True
)
"""An alert of ops/alerts.yaml."""


def alerts() -> list[Rule]:
    """All of them, in the order of the file."""
    return [rule for group in yaml.safe_load((ROOT / "ops" / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]


def metric_families() -> list[Metric]:
    nothing = Backlog(WaitingDeliveries(0, 0, 0, 0, None), WaitingMails(0, None), None, {}, {}, {}, {}, {}, None)
    served = LargeAnswers(), Connections(1, 1), HttpSignals(), RequestTurns(lambda: 0.0)
    return [
        *call_metrics(CallSignals()),
        *http_server_metrics(*served),
        *upstream_call_metrics([]),
        *outside_system_metrics([]),
        *database_metrics(nothing, 0),
        *store_metrics(DatabaseSignals(), PoolLoad()),
        *stock_metrics([]),
        *worker_metrics(WorkerTally(("retention",))),
        *process_metrics(Histogram(DELAY_BOUNDS), Build("", ""), 0),
    ]


def metrics_table() -> str:
    rows = ["| Metric | Labels | Kind | Meaning |", "|---|---|---|---|"]
    for each in metric_families():
        labels = ", ".join(f"`{name}`" for name in vars(each).get("_labelnames", ()))
        name = f"{each.name}_total" if each.type == "counter" else each.name
        rows.append(f"| `{name}` | {labels} | {each.type} | {each.documentation} |")
    return "\n".join(rows)


def alerts_table() -> str:
    """What each alert means, and what is to be done."""
    rows = ["| Alert | Fires when | For | It means | Do |", "|---|---|---|---|---|"]
    for rule in alerts():
        told = rule["annotations"]
        link = told["runbook"].removeprefix("docs/").removeprefix("guide-operators.md")
        when = rule["expr"].replace("|", "\\|")
        rows.append(
            f"| `{rule['alert']}` | `{when}` | {rule.get('for', 'at once')} | {told['summary']} | {told['action']} ([more]({link})) |"
        )
    return "\n".join(rows)


def composites_table() -> str:
    """What each composite takes, and how many rows it answers."""
    page = (ROOT / "docs/intelligence.md").read_text()
    rows = ["| Composite | `POST` | Takes | Rows | Of a tool | At most |", "|---|---|---|---|---|---|"]
    found = [each for each in CATALOGUE.operations.values() if each.id in SHEETS or each.id == "detect_country_entry"]
    found = [each for each in found if each.path.startswith("/v1/intelligence/")]
    for each in sorted(found, key=lambda each: page.index(f"\n## {each.id}\n")):
        fields = {field.alias or name: field for name, field in each.params.model_fields.items()}
        taken = ", ".join(f"`{name}`" for name in fields if name not in ("limit", "starting_after"))
        limit = fields.get("limit")
        most = next((rule.le for rule in limit.metadata if isinstance(rule, Le)), "") if limit else ""
        shown = f"{limit.default} | {each.tool_defaults['limit']}" if limit else " | "
        rows.append(f"| [`{each.id}`](#{each.id}) | `{each.path}` | {taken} | {shown} | {most} |")
    return "\n".join(rows)


def promises_table() -> str:
    """What is promised against attack and misuse, part by part, each with its tests."""
    rows: list[str] = []
    for part, of_part in groupby(abuse_promises(), key=lambda promise: promise.part):
        rows += ["", f"### {part}", "", "| What is promised | What was tried | Tests |", "|---|---|---|"]
        rows += [f"| {each.promise} | {each.tried} | {'<br>'.join(f'`{test}`' for test in each.tests)} |" for each in of_part]
    return "\n".join([*rows, ""])


TABLES = {
    "docs/settings.md": [("settings", settings_table)],
    "docs/guide-agents.md": [("toolsets", toolsets_table)],
    "docs/guide-operators.md": [("metrics", metrics_table), ("alerts", alerts_table)],
    "docs/intelligence.md": [("composites", composites_table)],
    "docs/security.md": [("promises", promises_table)],
}


def renewed(document: str) -> str:
    text = (ROOT / document).read_text()
    for name, table in TABLES[document]:
        head, tail, rows = f"<!-- {name}: python -m tests.docs.tables -->", f"<!-- /{name} -->", table()
        assert head in text and tail in text
        text = re.sub(f"{re.escape(head)}.*?{re.escape(tail)}", f"{head}\n{rows}\n{tail}".replace("\\", r"\\"), text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    from tests.spec import conformance  # here: it needs the whole service, the tables do not

    for document in TABLES:
        (ROOT / document).write_text(renewed(document))
    conformance.write()
