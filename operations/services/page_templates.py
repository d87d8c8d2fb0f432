"""Templates of pages: whatever is put into one is escaped, and a name that nobody gave is a fault, not a gap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def page_templates(folder: Path, shown: Callable[[object], object] | None = None) -> Environment:
    """The templates of a folder, each compiled when it is first asked for; `shown` is what every value goes through."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # imported on first use: serving the API needs neither

    return Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
