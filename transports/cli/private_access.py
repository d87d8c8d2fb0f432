"""`reseller org allow-private`: whether an organisation's webhooks may lead into the operator's own network."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.people.accounts import set_private_access
from transports.cli.failure import Failure
from transports.cli.local import open_local
from transports.cli.operator import done_here
from transports.cli.render import print_line
from transports.settings import load_settings


def allow_private(
    organisation: Annotated[str, typer.Argument(help="The organisation's id, org_...")],
    off: Annotated[bool, typer.Option("--off", help="Take it back: what is inside is reached no more, from the next delivery on.")] = False,
    data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None,
) -> None:
    """Let webhooks of one organisation lead to the networks and hosts that SERVICE_WEBHOOK_PRIVATE names.

    For an organisation that you trust as much as what stands in these networks: it chooses the addresses there, and learns what answers.
    """
    if not asyncio.run(change(data, organisation, opened=not off)):
        raise Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)
    print_line(
        f"{organisation} " + ("has webhooks at public addresses only" if off else "may have webhooks where SERVICE_WEBHOOK_PRIVATE says")
    )


async def change(data: Path | None, organisation: str, *, opened: bool) -> bool:
    """Whether there was such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        outcome = "private_receivers_" + ("allowed" if opened else "ended")
        row = done_here(service.ids, organisation=organisation, operation="org_allow_private", outcome=outcome, now=service.clock.now())
        return await service.store.write(change_and_record, organisation=organisation, opened=opened, row=row)
    finally:
        await service.stop()


def change_and_record(connection: Connection, *, organisation: str, opened: bool, row: Line) -> bool:
    """The change, and the row that tells the organisation's admins of it."""
    changed = set_private_access(connection, organisation=organisation, opened=opened)
    if changed:
        append_line(connection, row)
    return changed
