"""Invoices that the processor sends and collects."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from clients.payments.fields import id_of, only
from clients.payments.link import Calls, inside, known
from clients.payments.outcome import unknown
from clients.payments.records import InvoiceLine, NewInvoice, ProcessorInvoice
from clients.payments.wire.invoice import invoice_of
from registry.errors import NotFound
from registry.payments_errors import PaymentsError, PaymentsRefused

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    from stripe.params import InvoiceCreateParams

LONGEST_NUMBER = 26
MOST_LINES = 50
"""The processor takes 250 on an invoice, and each is a call of its own."""


class InvoiceCalls(Calls):
    """What is asked of the processor about invoices."""

    async def draft_invoice(self, account: str, invoice: NewInvoice) -> ProcessorInvoice:
        """Every call under a key made from the invoice's: whatever broke off is gone through again, and is there once."""
        customer = await self._recipient(account, invoice)
        draft = await self._begun(account, invoice, customer)
        try:
            with begun():
                for place, line in enumerate(shortened(invoice.lines)):
                    await self._add(account, invoice, line, place, customer, draft)
                return await self.find_invoice(account, draft)
        except (PaymentsRefused, NotFound) as error:
            refused = error
        with begun():  # else it would stay there, and keep its number from the next one
            await self._discard(account, draft)
        if isinstance(refused, NotFound):
            refused = PaymentsRefused(
                "The payment processor refused this invoice before. Nothing was done.", processor_code="resource_missing"
            )
        raise refused

    async def _recipient(self, account: str, invoice: NewInvoice) -> str:
        return await self._link.write(
            account,
            "customer",
            lambda to: to.v1.customers.create_async(
                {"name": invoice.recipient_name, "email": invoice.recipient_email, "metadata": dict(invoice.metadata)},
                inside(account, f"{invoice.key}-customer"),
            ),
            id_of,
        )

    async def _begun(self, account: str, invoice: NewInvoice, customer: str) -> str:
        params: InvoiceCreateParams = {
            "customer": customer,
            "currency": invoice.currency.lower(),
            "collection_method": "send_invoice",
            "due_date": invoice.due_at,
            "auto_advance": False,
            "pending_invoice_items_behavior": "exclude",
            "metadata": dict(invoice.metadata),
        }
        if len(invoice.number) <= LONGEST_NUMBER:  # the processor gives one of its own otherwise
            params["number"] = invoice.number
        if invoice.fee:
            params["application_fee_amount"] = invoice.fee
        options = inside(account, f"{invoice.key}-invoice")
        return await self._link.write(account, "invoice", lambda to: to.v1.invoices.create_async(params, options), id_of)

    async def _add(self, account: str, invoice: NewInvoice, line: InvoiceLine, place: int, customer: str, draft: str) -> str:
        return await self._link.write(
            account,
            "invoice",
            lambda to: to.v1.invoice_items.create_async(
                {
                    "customer": customer,
                    "invoice": draft,
                    "currency": invoice.currency.lower(),
                    "amount": line.amount,
                    "description": line.text,
                },
                inside(account, f"{invoice.key}-line-{place + 1}"),
            ),
            id_of,
        )

    async def send_invoice(self, account: str, invoice: str, *, key: str) -> ProcessorInvoice:
        """Choice: one that is open is sent again under the same key, which does nothing where it was sent, and sends it where the call
        broke off after it was finalised.
        """
        found = await self.find_invoice(account, invoice)
        if found.status == "draft":
            found = await self._finalized(account, found.id)
        if found.status != "open":
            return found
        which, options = found.id, inside(account, f"{key}-send")
        with begun():
            return await self._link.write(
                account, "invoice", lambda to: to.v1.invoices.send_invoice_async(which, options=options), only(which, invoice_of)
            )

    async def _finalized(self, account: str, draft: str) -> ProcessorInvoice:
        """Under no key of ours: it can be done once only, and a key would repeat a refusal whose cause is gone."""
        try:
            return await self._link.write(
                account,
                "invoice",
                lambda to: to.v1.invoices.finalize_invoice_async(draft, {"auto_advance": False}, inside(account)),
                only(draft, invoice_of),
            )
        except PaymentsRefused as error:
            refused = error
        found = await self.find_invoice(account, draft)
        if found.status == "draft":
            raise refused
        return found

    async def void_invoice(self, account: str, invoice: str, *, key: str) -> ProcessorInvoice:
        """One that is void is answered as it is; one that is paid the processor refuses."""
        found = await self.find_invoice(account, invoice)
        if found.status == "void":
            return found
        if found.status == "draft":
            await self._discard(account, found.id)
            return replace(found, status="void")
        options = inside(account, key)
        return await self._link.write(
            account, "invoice", lambda to: to.v1.invoices.void_invoice_async(found.id, options=options), only(found.id, invoice_of)
        )

    async def _discard(self, account: str, draft: str) -> None:
        """A deletion has no key; when the first try was heard, the next finds nothing, and that is what was asked for."""
        with suppress(NotFound):
            await self._link.write(account, "invoice", lambda to: to.v1.invoices.delete_async(draft, options=inside(account)), id_of)

    async def find_invoice(self, account: str, invoice: str) -> ProcessorInvoice:
        """The invoice as it stands."""
        which = known(invoice, "invoice")
        return await self._link.read(
            account, "invoice", lambda to: to.v1.invoices.retrieve_async(which, options=inside(account)), only(which, invoice_of)
        )


@contextmanager
def begun() -> Generator[None]:
    """The calls before were heard: what fails now may say for itself alone that nothing was done."""
    try:
        yield
    except PaymentsError as error:
        if not error.before_execution:
            raise
    else:
        return
    raise unknown("The payment processor failed half-way.").error


def shortened(lines: tuple[InvoiceLine, ...]) -> tuple[InvoiceLine, ...]:
    """Choice: beyond what the processor takes, the rest is one line; the document of the invoice has them all."""
    if len(lines) <= MOST_LINES:
        return lines
    rest = lines[MOST_LINES - 1 :]
    return (*lines[: MOST_LINES - 1], InvoiceLine(f"{len(rest)} more lines", sum(line.amount for line in rest)))
