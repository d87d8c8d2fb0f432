"""`reseller orders`: what whoever runs the service does about buyers' orders."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from operations.deps import Deps
from operations.services.shop.access_renewal import RENEW, renew_access
from operations.services.shop.order_opening import number_of
from registry.errors import Refusal
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.shop.orders import OrderRow
from transports.cli.failure import Failure
from transports.cli.issuance import name_of
from transports.cli.local import open_local
from transports.cli.render import print_line
from transports.settings import load_settings

orders_app = typer.Typer(no_args_is_help=True, help="Look after the orders of buyers.")
Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]


@orders_app.callback()
def commands() -> None:
    """Look after the orders of buyers."""


@orders_app.command("renew-access")
def renew_orders(
    orders: Annotated[list[str], typer.Argument(metavar="NUMBER...", help="Numbers of orders, onr_...; an id of before, ord_..., too.")],
    by: Annotated[str | None, typer.Option("--by", help="Who decides, for the audit log; without it, your user name.")] = None,
    data: Data = None,
) -> None:
    """End every link that opens an order, and mail its buyer a new one.

    The mails go to the addresses that the orders were paid with. Works on the service's own database, wherever RESELLER_URL leads: run it
    with the service's settings, SERVICE_BASE_URL among them, of which the links are made. An order that is refused is named, and the
    others are renewed all the same.
    """
    refused = asyncio.run(renew(data, orders, name_of(by)))
    if refused:
        raise Failure("\n".join(refused), exit_code=1)


async def renew(data: Path | None, orders: list[str], by: str) -> list[str]:
    """Each order in a transaction of its own; says why those were refused that were."""
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    if not settings.base_url:  # the address that `serve` would listen on by default need not be the one where it does
        raise Failure(
            "SERVICE_BASE_URL: not set, and the links in the mails are made of it; nothing was done. Set it to the address at which buyers "
            "reach the service, for example SERVICE_BASE_URL=http://127.0.0.1:8000"
        )
    service = await open_local(settings)
    refused: list[str] = []
    try:
        for place, order in enumerate(orders, start=1):
            try:
                row = await service.store.write(
                    renew_one, deps=service.pipeline.deps, named=order, by=by, request=service.ids.new("req_"), now=service.clock.now()
                )
            except Refusal as refusal:
                refused.append(f"order {place} of {len(orders)}: {refusal.message}")
            else:
                print_line(f"{row.id}: its links are ended, and a new one is mailed to its buyer")
    finally:
        await service.stop()
    return refused


def renew_one(connection: Connection, *, deps: Deps, named: str, by: str, request: str, now: float) -> OrderRow:
    """The renewal and its audit row."""
    row = renew_access(connection, deps=deps, order=number_of(connection, named=named), organisation=None, now=now)
    append_line(connection, Line(now, row.organisation, "cli", RENEW, by, "", "renewed", 200, 0.0, request))
    return row
