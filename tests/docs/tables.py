"""The tables of the documents that repeat what code says: `python -m tests.docs.tables` writes them anew."""

import re
from collections.abc import Collection

from tests.budgets import REST, SECONDS
from tests.docs.blocks import ROOT
from transports.settings import PREFIX, Settings

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


TABLES = {
    "README.md": ("settings", settings_table),
    "CONTRIBUTING.md": ("budgets", budgets_table),
    "docs/upstream.md": ("upstream", upstream_table),
}


def renewed(document: str) -> str:
    """The document with its table as it should be."""
    name, table = TABLES[document]
    head, tail = f"<!-- {name}: python -m tests.docs.tables -->", f"<!-- /{name} -->"
    text = (ROOT / document).read_text()
    assert head in text and tail in text
    return re.sub(f"{re.escape(head)}.*?{re.escape(tail)}", lambda _: f"{head}\n{table()}\n{tail}", text, flags=re.DOTALL)


if __name__ == "__main__":
    for document in TABLES:
        (ROOT / document).write_text(renewed(document))
