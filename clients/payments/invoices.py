"""Invoices that the processor sends and collects."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from clients.payments.fields import id_member, record_parser
from clients.payments.link import ProcessorCalls, request_options
from clients.payments.outcome import processor_outcome_unknown
from clients.payments.records import InvoiceLine, NewInvoice, ProcessorInvoice
from registry.errors import NotFound, PaymentsError, PaymentsRefused

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    from stripe.params import InvoiceCreateParams

PROCESSOR_NUMBER_LIMIT = 26
PROCESSOR_LINES_LIMIT = 50
"""The processor takes 250 on an invoice, and each is a call of its own."""


class InvoiceCalls(ProcessorCalls):
    async def draft_invoice(self, account: str, invoice: NewInvoice) -> ProcessorInvoice:
        """Every call under a key made from the invoice's: whatever broke off is gone through again, and is there once."""
        customer = await self._recipient(account, invoice)
        draft = await self._begun(account, invoice, customer)
        try:
            with after_first_call():
                for place, line in enumerate(shortened_lines(invoice.lines)):
                    await self._add(account, invoice, line, place, customer, draft)
                return await self.find_invoice(account, draft)
        except (PaymentsRefused, NotFound) as error:
            refused = error
        with after_first_call():  # else it would stay there, and keep its number from the next one
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
                request_options(account, f"{invoice.key}-customer"),
            ),
            id_member,
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
        if len(invoice.number) <= PROCESSOR_NUMBER_LIMIT:  # the processor gives one of its own otherwise
            params["number"] = invoice.number
        if invoice.fee:
            params["application_fee_amount"] = invoice.fee
        options = request_options(account, f"{invoice.key}-invoice")
        return await self._link.write(account, "invoice", lambda to: to.v1.invoices.create_async(params, options), id_member)

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
                request_options(account, f"{invoice.key}-line-{place + 1}"),
            ),
            id_member,
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
        which, options = found.id, request_options(account, f"{key}-send")
        with after_first_call():
            return await self._link.write(
                account,
                "invoice",
                lambda to: to.v1.invoices.send_invoice_async(which, options=options),
                record_parser(ProcessorInvoice, id=which),
            )

    async def _finalized(self, account: str, draft: str) -> ProcessorInvoice:
        """Under no key of ours: it can be done once only, and a key would repeat a refusal whose cause is gone."""
        try:
            return await self._link.write(
                account,
                "invoice",
                lambda to: to.v1.invoices.finalize_invoice_async(draft, {"auto_advance": False}, request_options(account)),
                record_parser(ProcessorInvoice, id=draft),
            )
        except PaymentsRefused as error:
            refused = error
        found = await self.find_invoice(account, draft)
        if found.status == "draft":
            raise refused
        return found

    async def void_invoice(self, account: str, invoice: str, *, key: str) -> ProcessorInvoice:
        found = await self.find_invoice(account, invoice)
        if found.status == "draft":
            try:
                await self._discard(account, found.id)
                return replace(found, status="void")
            except PaymentsRefused:
                found = await self.find_invoice(account, invoice)
                if found.status == "draft":
                    raise  # else it was made final since it was looked at
        if found.status == "void":
            return found
        options = request_options(account, key)
        return await self._link.write(
            account,
            "invoice",
            lambda to: to.v1.invoices.void_invoice_async(found.id, options=options),
            record_parser(ProcessorInvoice, id=found.id),
        )

    async def _discard(self, account: str, draft: str) -> None:
        """Deletes a draft. A deletion has no key: where an earlier attempt was executed, the next one finds nothing, which is as good."""
        with suppress(NotFound):
            await self._link.write(
                account, "invoice", lambda to: to.v1.invoices.delete_async(draft, options=request_options(account)), id_member
            )

    async def find_invoice(self, account: str, invoice: str) -> ProcessorInvoice:
        return await self._find(
            account, "invoice", invoice, ProcessorInvoice, lambda to, id, options: to.v1.invoices.retrieve_async(id, options=options)
        )


@contextmanager
def after_first_call() -> Generator[None]:
    """Earlier calls have changed something, so an error "before execution" in the block becomes one with an unknown outcome."""
    try:
        yield
    except PaymentsError as error:
        if not error.before_execution:
            raise
    else:
        return
    raise processor_outcome_unknown("The payment processor failed half-way.").error


def shortened_lines(lines: tuple[InvoiceLine, ...]) -> tuple[InvoiceLine, ...]:
    """Choice: beyond what the processor takes, the rest is one line; the document of the invoice has them all."""
    if len(lines) <= PROCESSOR_LINES_LIMIT:
        return lines
    rest = lines[PROCESSOR_LINES_LIMIT - 1 :]
    return (*lines[: PROCESSOR_LINES_LIMIT - 1], InvoiceLine(f"{len(rest)} more lines", sum(line.amount for line in rest)))
