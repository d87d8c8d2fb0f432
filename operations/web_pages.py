"""Templates of web pages, where every value is escaped and an unknown name is an error; and their content policy (docs/security.md)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def page_templates(*folders: Path, shown: Callable[[object], object] | None = None) -> Environment:
    """The templates of `folders`, each compiled when it is first asked for. Every value passes through `shown`, where it is given."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # imported on first use: serving the API needs neither

    return Environment(
        loader=FileSystemLoader(folders), autoescape=True, undefined=StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )


def page_policy(style: str, *, images: bool = True, forms: str = "'none'", framed_by: str = "'none'") -> str:
    """The Content-Security-Policy of a page: its own `style` by its hash, pictures within it, no script, where `forms` go, and who may
    show it in a frame.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    pictures = "img-src data:; " if images else ""
    return f"default-src 'none'; style-src 'sha256-{digest}'; {pictures}base-uri 'none'; form-action {forms}; frame-ancestors {framed_by}"
