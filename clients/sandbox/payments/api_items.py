"""Calls about the lines of invoices."""

from decimal import ROUND_HALF_UP, Decimal

from clients.sandbox.payments import render_invoice
from clients.sandbox.payments.api_customers import present
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Invoice, InvoiceItem
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.invoicing import put_on
from clients.sandbox.payments.refusal import Members, Refusal


def create_item(call: Call, form: Form) -> Members:
    """A line, on a draft that is named, or waiting for the customer's next invoice."""
    invoice_id, customer = form.text("invoice"), form.text("customer")
    invoice = None if invoice_id is None else draft(call, invoice_id)
    if invoice is None and customer is None:
        raise form.missing("customer")
    owner = present(call, customer or (invoice.customer if invoice else ""))
    if invoice is not None and owner.id != invoice.customer:
        raise Refusal(f"The customer of invoice {invoice.id} is not {owner.id}.", param="customer")
    currency = form.currency() or (invoice.currency if invoice else call.owner.currency)
    now = call.state.now()
    row = InvoiceItem(call.state.new_id("ii_"), now, owner.id, 0, currency, period_start=now, period_end=now)
    read_amount(form, row)
    read_rest(form, row)
    form.done()
    row.product, row.price = call.state.new_id("prod_", 14), call.state.new_id("price_")
    if invoice is not None:
        put_on(call.state, invoice, row)
    call.book.items[row.id] = row
    return render_invoice.item(call.state, row)


def draft(call: Call, invoice: str) -> Invoice:
    """An invoice that lines can still be put on."""
    row = found(call.book.invoices, invoice, "invoice", param="invoice", status=400)
    if row.status != "draft":
        raise Refusal("This invoice is no longer editable", code="invoice_not_editable", param="invoice")
    return row


def read_amount(form: Form, row: InvoiceItem) -> None:
    """Either a whole amount, or a price of one and how many; not both."""
    amount, quantity, unit = form.integer("amount"), form.integer("quantity", 0), form.number("unit_amount_decimal")
    data = form.part("price_data")
    if data is not None:
        row.currency = data.need_currency()
        data.need_text("product")
        data.choice("tax_behavior", ("exclusive", "inclusive", "unspecified"))
        one, exact = data.integer("unit_amount"), data.number("unit_amount_decimal")
        unit = exact if one is None else Decimal(one)
    if amount is not None and (quantity is not None or unit is not None):
        raise invalid("You may only specify one of these parameters: amount, quantity.", "amount")
    if amount is None and unit is None:
        raise form.missing("amount")
    row.quantity = 1 if quantity is None else quantity
    unit = Decimal(amount or 0) if unit is None else unit
    row.unit_decimal = format(unit, "f")
    row.amount = int((unit * row.quantity).quantize(Decimal(1), ROUND_HALF_UP))


def read_rest(form: Form, row: InvoiceItem) -> None:
    """What is said of the line."""
    row.description = form.text("description")
    row.discountable = form.flag("discountable") is not False
    period = form.part("period")
    if period is not None:
        row.period_start, row.period_end = period.need_integer("start", 0), period.need_integer("end", 0)
        if row.period_end < row.period_start:
            raise invalid("The period's end must not be before its start.", "period[end]")
    row.metadata = form.metadata()


def retrieve_item(call: Call, form: Form) -> Members:
    """One line."""
    form.done()
    return render_invoice.item(call.state, found(call.book.items, call.ids[0], "invoiceitem", param="invoiceitem"))


def delete_item(call: Call, form: Form) -> Members:
    """Off its draft, or waiting no more."""
    form.done()
    row = found(call.book.items, call.ids[0], "invoiceitem", param="invoiceitem")
    if row.invoice is not None:
        draft(call, row.invoice).items.remove(row.id)
    del call.book.items[row.id]
    return {"id": row.id, "object": "invoiceitem", "deleted": True}


def list_items(call: Call, form: Form) -> Members:
    """Newest first."""
    customer, invoice, pending = form.text("customer"), form.text("invoice"), form.flag("pending")
    rows = {
        id: row
        for id, row in call.book.items.items()
        if customer in (None, row.customer) and invoice in (None, row.invoice) and pending in (None, row.invoice is None)
    }
    return listed(
        form,
        rows,
        lambda row: render_invoice.item(call.state, row),
        url="/v1/invoiceitems",
        kind="invoiceitem",
        when=lambda row: row.created,
    )
