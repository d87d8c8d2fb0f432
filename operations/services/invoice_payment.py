"""The processor says that an invoice was paid."""

from datetime import UTC, datetime

from clients.payments.records import ProcessorInvoice
from operations.services.commissions import record_platform_fee
from registry.ids import Ids
from storage.connection import Connection
from storage.invoices import find_at_processor, pay_invoice


def take_payment(connection: Connection, *, account: str, invoice: ProcessorInvoice, now: float, ids: Ids) -> bool:
    """Mark our invoice paid, and earn the platform fee; told again it has no effect. To be called inside the webhook's transaction.

    False: the account has no such invoice of ours, or it is void, or comes to another amount. One that was being handed over when we
    lost sight of it is found by the id that it carries.
    """
    if invoice.status != "paid":
        return False
    named = invoice.metadata.get("invoice", "")
    found = find_at_processor(connection, account=account, processor_invoice=invoice.id, invoice=named)
    if found is None or (found.total_cents, found.currency) != (invoice.total, invoice.currency):
        return False
    moment = int(now) if invoice.paid_at is None else invoice.paid_at
    row = pay_invoice(connection, invoice=found.id, processor_invoice=invoice.id, pay_url=invoice.pay_url, paid_at=moment, now=now)
    if row is None:
        return found.status == "paid"
    if row.platform_fee_cents:
        # Choice: the fee is of the month in which it was paid.
        month = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m")
        record_platform_fee(
            connection,
            ref=row.id,
            organisation=row.organisation,
            month=month,
            currency=row.currency,
            amount=row.platform_fee_cents,
            now=now,
            ids=ids,
        )
    return True
