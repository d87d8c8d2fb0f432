"""`reseller org set-fee`: the service's share of what an organisation invoices and sells."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from operations.services.payments.platform_fees import MOST_BPS
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.money.fee_rates import set_fee_bps
from transports.cli.failure import Failure
from transports.cli.local import open_local
from transports.cli.operator import done_here
from transports.cli.render import print_line
from transports.settings import load_settings

DEFAULT = "default"


def set_fee(
    organisation: Annotated[str, typer.Argument(help="The organisation's id, org_...")],
    bps: Annotated[str, typer.Argument(metavar="BPS", help=f"Basis points, 0-{MOST_BPS}: 150 is 1.5 %; `default`: that of all.")],
    data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None,
) -> None:
    """Set the platform fee of one organisation; `default` gives it the one of all again, SERVICE_PLATFORM_FEE_BPS.

    A running server follows with the next invoice. Invoices that were made before keep the fee they were made with.
    """
    rate = rate_of(bps)
    if not asyncio.run(change(data, organisation, rate)):
        raise Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)
    print_line(f"{organisation} pays " + ("the platform fee of all" if rate is None else f"a platform fee of {rate} basis points"))


def rate_of(text: str) -> int | None:
    """Basis points, or nothing for the rate of all."""
    if text == DEFAULT:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and int(text) <= MOST_BPS):
        raise Failure(f"BPS: {text[:20]!r}; a whole number of basis points from 0 to {MOST_BPS} (150 is 1.5 %), or `{DEFAULT}`")
    return int(text)


async def change(data: Path | None, organisation: str, rate: int | None) -> bool:
    """Whether there was such an organisation."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        outcome = f"fee_{DEFAULT if rate is None else rate}"
        row = done_here(service.ids, organisation=organisation, operation="org_set_fee", outcome=outcome, now=service.clock.now())
        return await service.store.write(change_and_record, organisation=organisation, rate=rate, row=row)
    finally:
        await service.stop()


def change_and_record(connection: Connection, *, organisation: str, rate: int | None, row: Line) -> bool:
    """The new rate, and the row that tells the organisation's admins of it."""
    changed = set_fee_bps(connection, organisation=organisation, bps=rate)
    if changed:
        append_line(connection, row)
    return changed
