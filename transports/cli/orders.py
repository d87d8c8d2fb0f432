"""`reseller orders` and `reseller storefront settle`: what whoever runs the service does about buyers' orders."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from operations.deps import Deps
from operations.ledger.orders import order_number_of
from operations.storefronts.buyers import RENEW_ORDER_ACCESS, renew_order_access
from operations.storefronts.sales.order_fulfilment import OrderDecision, fulfil_by_decision
from registry.errors import Refusal
from registry.ports import AuditRecord
from storage.audit import append_audit_record
from storage.engine.sql import Connection
from storage.orders import OrderRow
from transports.cli.target import DatabaseOption, decider_name, open_local
from transports.cli.terminal import Failure, command_settings, print_line


def decide_order(
    order: Annotated[str, typer.Argument(metavar="ID", help="The number of the order, onr_..., or of the top-up, tuc_...")],
    refund: Annotated[bool, typer.Option("--refund", help="Nothing was delivered, or its refund failed: the money goes back.")] = False,
    added: Annotated[bool, typer.Option("--added", help="The top-up's package is on its line.")] = False,
    by: Annotated[str | None, typer.Option("--by", help="Who decides, for the audit log; without it, your user name.")] = None,
    data: DatabaseOption = None,
) -> None:
    """Settle a top-up that needs review, or have a refund tried again that failed, after looking at what happened yourself.

    It is for good: the buyer is told, and the running service sends the money. An order whose eSIM may have been drawn is settled with
    `reseller issuance settle` instead, under the order's number as key.
    """
    if refund == added:
        raise Failure("give exactly one of --refund and --added: what you found out")
    decision: OrderDecision = "refund" if refund else "added"
    try:
        row = asyncio.run(apply_order_decision(data, order, decision, decider_name(by)))
    except Refusal as refusal:
        raise Failure(f"{order}: {refusal.message}", exit_code=1) from None
    print_line(f"{row.id} is {row.status}" + ("" if row.refund is None else f", its refund {row.refund}"))


async def apply_order_decision(data: Path | None, order: str, decision: OrderDecision, by: str) -> OrderRow:
    async with open_local(command_settings(data=data)) as service:
        now = service.clock.now()
        return await service.store.write(fulfil_by_decision, deps=service.pipeline.deps, order=order, decision=decision, by=by, now=now)


orders_app = typer.Typer(no_args_is_help=True, help="Look after the orders of buyers.")


@orders_app.command("renew-access")
def renew_orders(
    orders: Annotated[list[str], typer.Argument(metavar="NUMBER...", help="Numbers of orders, onr_...; an id of before, ord_..., too.")],
    by: Annotated[str | None, typer.Option("--by", help="Who decides, for the audit log; without it, your user name.")] = None,
    data: DatabaseOption = None,
) -> None:
    """End every link that opens an order, and mail its buyer a new one.

    The mails go to the addresses that the orders were paid with. Works on the service's own database, wherever RESELLER_URL leads: run it
    with the service's settings, SERVICE_BASE_URL among them, of which the links are made. An order that is refused is named, and the
    others are renewed all the same.
    """
    refused = asyncio.run(renew_each(data, orders, decider_name(by)))
    if refused:
        raise Failure("\n".join(refused), exit_code=1)


async def renew_each(data: Path | None, orders: list[str], by: str) -> list[str]:
    """Renews each order in its own transaction; returns why some were refused."""
    settings = command_settings(data=data)
    if not settings.base_url:  # the address that `serve` would listen on by default need not be the one where it does
        raise Failure(
            "SERVICE_BASE_URL: not set, and the links in the mails are made of it; nothing was done. Set it to the address at which buyers "
            "reach the service, for example SERVICE_BASE_URL=http://127.0.0.1:8000"
        )
    refused: list[str] = []
    async with open_local(settings) as service:
        for place, order in enumerate(orders, start=1):
            try:
                row = await service.store.write(
                    renew_and_record,
                    deps=service.pipeline.deps,
                    named=order,
                    by=by,
                    request=service.ids.new("req_"),
                    now=service.clock.now(),
                )
            except Refusal as refusal:
                refused.append(f"order {place} of {len(orders)}: {refusal.message}")
            else:
                print_line(f"{row.id}: its links are ended, and a new one is mailed to its buyer")
    return refused


def renew_and_record(connection: Connection, *, deps: Deps, named: str, by: str, request: str, now: float) -> OrderRow:
    row = renew_order_access(connection, deps=deps, order=order_number_of(connection, named=named), organisation=None, now=now)
    append_audit_record(connection, AuditRecord(now, row.organisation, "cli", RENEW_ORDER_ACCESS, by, "", "renewed", 200, 0.0, request))
    return row
