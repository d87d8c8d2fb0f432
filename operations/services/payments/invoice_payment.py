"""The processor says that an invoice was paid."""

from clients.payments.records import ProcessorInvoice
from storage.connection import Connection
from storage.money.invoices import find_at_processor, pay_invoice


def take_payment(connection: Connection, *, account: str, invoice: ProcessorInvoice, now: float) -> bool:
    """Mark our invoice paid; told again it has no effect. To be called inside the webhook's transaction.

    Choice: paid is what the processor calls paid, also by credit or by money that came past it. The platform fee is earned when the
    processor tells that it collected one, not here.

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
    return True
