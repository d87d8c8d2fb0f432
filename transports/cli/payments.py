"""`reseller payments`: have what the payment processor holds read again."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from operations.ledger.payment_intake import sync_payments
from registry.errors import Refusal
from storage.connect_accounts import find_connect_account
from storage.engine.sql import Connection
from storage.organisations import list_organisations
from transports.cli.target import DatabaseOption, open_local, unknown_organisation
from transports.cli.terminal import Failure, command_settings, print_line

payments_app = typer.Typer(no_args_is_help=True, help="Read from the payment processor what its events did not tell.")


@payments_app.command("sync")
def sync_processor_accounts(
    organisation: Annotated[str | None, typer.Argument(metavar="[ORG]", help="Only this organisation, org_...; without it, all.")] = None,
    data: DatabaseOption = None,
) -> None:
    """Bring the records of charges, refunds, disputes, payouts and fees up to date, and what depends on them.

    Up to 1,000 of each kind and account, the newest first. Refunds and payouts whose outcome is unknown are settled by what is there,
    and sent invoices that were paid become paid. Nothing is changed at the processor, and it may be repeated at any time.
    """
    if not asyncio.run(sync_every_account(data, organisation)):
        raise Failure("not every account could be read; repeat it later", exit_code=1)


async def sync_every_account(data: Path | None, organisation: str | None) -> bool:
    """Whether all went well; after a failure at one account the next is tried all the same."""
    settings = command_settings(data=data)
    async with open_local(settings) as service:
        accounts = await service.store.read(connected_accounts, organisation=organisation)
        if settings.simulates_payments:
            raise Failure("the payment processor is simulated inside the running server, whose events are never lost: nothing to do here")
        if not accounts:
            print_line("No organisation has an account at the payment processor.")
        failed = False
        for organisation, account in accounts:
            try:
                updated = await sync_payments(service.pipeline.deps, organisation=organisation, account=account)
            except Refusal as refusal:
                failed = True
                print_line(f"{organisation}: failed at {account}: {refusal.message}")
            else:
                records = "1 record" if updated == 1 else f"{updated:,} records"
                print_line(f"{organisation}: {records} brought up to date at {account}")
        return not failed


def connected_accounts(connection: Connection, *, organisation: str | None) -> list[tuple[str, str]]:
    """Organisation and account, of all organisations or of one. Raises Failure for an unknown id."""
    known = [row.id for row in list_organisations(connection)]
    if organisation is not None and organisation not in known:
        raise unknown_organisation(organisation)
    organisations = known if organisation is None else [organisation]
    found = [find_connect_account(connection, organisation=each) for each in organisations]
    return [(each.organisation, each.account) for each in found if each is not None]
