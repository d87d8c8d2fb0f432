"""`reseller storefront settle`: decide about an order or top-up what nothing else could."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from operations.services.shop.order_settlement import Decision, settle_order
from registry.errors import Refusal
from storage.shop.orders import OrderRow
from transports.cli.failure import Failure
from transports.cli.issuance import name_of
from transports.cli.local import open_local
from transports.cli.render import print_line
from transports.settings import load_settings

Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]


def settle_one(
    order: Annotated[str, typer.Argument(metavar="ID", help="The number of the order, onr_..., or of the top-up, tuc_...")],
    refund: Annotated[bool, typer.Option("--refund", help="Nothing was delivered, or its refund failed: the money goes back.")] = False,
    added: Annotated[bool, typer.Option("--added", help="The top-up's package is on its line.")] = False,
    by: Annotated[str | None, typer.Option("--by", help="Who decides, for the audit log; without it, your user name.")] = None,
    data: Data = None,
) -> None:
    """Settle a top-up that needs review, or have a refund tried again that failed, after looking at what happened yourself.

    It is for good: the buyer is told, and the running service sends the money. An order whose eSIM may have been drawn is settled with
    `reseller issuance settle` instead, under the order's number as key.
    """
    if refund == added:
        raise Failure("give exactly one of --refund and --added: what you found out")
    decision: Decision = "refund" if refund else "added"
    try:
        row = asyncio.run(decide(data, order, decision, name_of(by)))
    except Refusal as refusal:
        raise Failure(f"{order}: {refusal.message}", exit_code=1) from None
    print_line(f"{row.id} is {row.status}" + ("" if row.refund is None else f", its refund {row.refund}"))


async def decide(data: Path | None, order: str, decision: Decision, by: str) -> OrderRow:
    """The row as it is then."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        now = service.clock.now()
        return await service.store.write(settle_order, deps=service.pipeline.deps, order=order, decision=decision, by=by, now=now)
    finally:
        await service.stop()
