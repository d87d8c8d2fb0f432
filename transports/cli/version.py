"""`reseller --version`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from transports.cli.render import print_line
from transports.settings import BadSettings, load_settings
from transports.source_revision import build_sha


def show_version(asked: bool) -> None:
    """The version and the build as /health shows them; settings that are wrong do not hide the version."""
    if not asked:
        return
    from transports.service import VERSION  # brings the whole service

    try:
        build = build_sha(load_settings(os.environ, env_file=Path(".env")).build_sha)
    except BadSettings:
        build = "unknown, since the settings are wrong: see `reseller doctor`"
    print_line(f"reseller {VERSION} (build {build})")
    raise typer.Exit


def whole(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=show_version, help="Show the version and end.")] = False,
) -> None:
    """Issue eSIMs and follow what happens to them: over HTTP, MCP and here."""
    del version
