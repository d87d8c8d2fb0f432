"""The tables of the documents that repeat what code says: `python -m tests.docs.tables` writes them anew."""

import re
from collections.abc import Collection

from annotated_types import Le

from operations.catalogue import CATALOGUE
from operations.intelligence.sheets.every import SHEETS
from storage.depth import Depth, Waiting
from tests.budgets import REST, SECONDS
from tests.docs.blocks import ROOT
from transports.metrics import of_database, of_process
from transports.settings import PREFIX, Settings
from transports.tally import Tally

REPLICAS = ("database_url", "database_pool", "secret_keys", "worker", "delivery_lease_seconds", "metrics_port", "metrics_host")
IDENTITY = ("base_url", "signup_tier", "smtp_url", "mail_from", "trusted_proxies", "connect_url", "upgrade_url")
UPSTREAM = ("sandbox_seed", "bridge_webhook_secret", "internal_api_key")


def settings_table(names: Collection[str] = Settings.model_fields) -> str:
    """Settings with their defaults and descriptions."""
    rows = ["| Setting | Default | Meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        if name not in names:
            continue
        secret = hasattr(field.default, "get_secret_value")
        default = (
            "" if secret or field.default in (None, "", ()) else str(field.default).lower() if name in BOOLEANS else str(field.default)
        )
        rows.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else ''} | {field.description} |")
    return "\n".join(rows)


BOOLEANS = {name for name, field in Settings.model_fields.items() if isinstance(field.default, bool)}


def upstream_table() -> str:
    """The settings that have to do with the charging system."""
    return settings_table([name for name in Settings.model_fields if name.startswith("ocs_") or name in UPSTREAM])


def budgets_table() -> str:
    """Every folder of tests with its seconds."""
    rows = ["| Folder of tests | Seconds |", "|---|---|", *(f"| {folder} | {seconds:g} |" for folder, seconds in sorted(SECONDS.items()))]
    return "\n".join([*rows, f"| any other, and the files beside them | {REST:g} |"])


def replicas_table() -> str:
    """The settings that servers and workers on one database need."""
    return settings_table(REPLICAS)


def metrics_table() -> str:
    """Every metric, as it explains itself."""
    nothing = Depth(Waiting(0, 0, 0, None), 0, {}, {}, {}, {}, None)
    rows = ["| Metric | Labels | Kind | Meaning |", "|---|---|---|---|"]
    for each in (*of_database(nothing, 0), *of_process(Tally(("retention",)))):
        labels = ", ".join(f"`{name}`" for name in vars(each).get("_labelnames", ()))
        name = f"{each.name}_total" if each.type == "counter" else each.name
        rows.append(f"| `{name}` | {labels} | {each.type} | {each.documentation} |")
    return "\n".join(rows)


def identity_table() -> str:
    """The settings that have to do with people."""
    return settings_table([name for name in Settings.model_fields if name.startswith("auth_") or name in IDENTITY])


def composites_table() -> str:
    """What each composite takes, and how many rows it answers."""
    page = (ROOT / "docs/intelligence.md").read_text()
    rows = ["| Composite | `POST` | Takes | Rows | Of a tool | At most |", "|---|---|---|---|---|---|"]
    found = [each for each in CATALOGUE.operations.values() if each.id in SHEETS or each.id == "detect_country_entry"]
    for each in sorted(found, key=lambda each: page.index(f"\n## {each.id}\n")):
        fields = {field.alias or name: field for name, field in each.params.model_fields.items()}
        taken = ", ".join(f"`{name}`" for name in fields if name not in ("limit", "starting_after"))
        limit = fields.get("limit")
        most = next((rule.le for rule in limit.metadata if isinstance(rule, Le)), "") if limit else ""
        shown = f"{limit.default} | {each.tool_defaults['limit']}" if limit else " | "
        rows.append(f"| [`{each.id}`](#{each.id}) | `{each.path}` | {taken} | {shown} | {most} |")
    return "\n".join(rows)


TABLES = {
    "README.md": [("settings", settings_table)],
    "CONTRIBUTING.md": [("budgets", budgets_table)],
    "docs/upstream.md": [("upstream", upstream_table)],
    "docs/identity.md": [("identity", identity_table)],
    "docs/intelligence.md": [("composites", composites_table)],
    "docs/operations.md": [("metrics", metrics_table), ("replicas", replicas_table)],
}


def renewed(document: str) -> str:
    """The document with its tables as they should be."""
    text = (ROOT / document).read_text()
    for name, table in TABLES[document]:
        head, tail, rows = f"<!-- {name}: python -m tests.docs.tables -->", f"<!-- /{name} -->", table()
        assert head in text and tail in text
        text = re.sub(f"{re.escape(head)}.*?{re.escape(tail)}", f"{head}\n{rows}\n{tail}".replace("\\", r"\\"), text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    for document in TABLES:
        (ROOT / document).write_text(renewed(document))
