"""Invoices that the processor was given to collect and that nobody is known to have paid."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import InvoiceTable
from storage.statement import Query, table

INVOICE = table(InvoiceTable)


class SentInvoice(NamedTuple):
    """Our id, and the processor's."""

    id: str
    processor_invoice: str


UNPAID = Query(
    SentInvoice,
    sa.select(INVOICE.c.id, INVOICE.c.processor_invoice)
    .where(
        INVOICE.c.organisation == sa.bindparam("organisation"),
        INVOICE.c.connect_account == sa.bindparam("account"),
        INVOICE.c.status == "sent",
        INVOICE.c.processor_invoice.is_not(None),
    )
    .order_by(INVOICE.c.id.desc())
    .limit(sa.bindparam("most")),
)


def sent_invoices(connection: Connection, *, organisation: str, account: str, most: int) -> list[SentInvoice]:
    """The organisation's in this account, newest first."""
    return connection.all(UNPAID, organisation=organisation, account=account, most=most)
