"""`reseller keys rotate-signing`: the built-in identity provider gets a new key to sign with."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from operations.services.people.signing_keys import Rotation, rotate
from transports.cli.failure import Failure
from transports.cli.local import open_local
from transports.cli.render import print_line
from transports.settings import load_settings


def rotate_signing(data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None) -> None:
    """Make a new key for signing session tokens; servers may go on running.

    It is published at once and signs ten minutes later; the one before it stays published until its last tokens have expired, a day
    later. This happens by itself every 90 days.
    """
    made = asyncio.run(run(data))
    print_line(f"made key {made.kid}; it signs from {datetime.fromtimestamp(made.signs_from, UTC):%Y-%m-%d %H:%M} UTC on")


async def run(data: Path | None) -> Rotation:
    """Make it."""
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    if not settings.own_identity:
        raise Failure("session tokens come from SERVICE_AUTH_ISSUER here, so there is no key of ours to sign them with", exit_code=1)
    service = await open_local(settings)
    try:
        return await rotate(service.pipeline.deps, service.clock.now())
    finally:
        await service.stop()
