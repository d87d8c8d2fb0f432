"""The lines of invoices: calls about them, and how they go over the wire."""

from decimal import ROUND_HALF_UP, Decimal

from simulators.processor.call import ApiCall, ApiNoun, CallForm, ProcessorRefusal, find_row, invalid_parameter, labelled_json, null_members
from simulators.processor.customers import find_customer
from simulators.processor.state import Invoice, InvoiceItem, JsonObject, ProcessorState

INVOICE_ITEMS = ApiNoun(
    "invoiceitem",
    "invoiceitems",
    lambda book: book.items,
    lambda state, _, row: _invoice_item_json(state, row),
    "invoiceitem",
    {"customer": "customer", "invoice": "invoice"},
)
INVOICE_LINE_LIMIT = 250


def create_invoice_item(call: ApiCall, form: CallForm) -> JsonObject:
    """A line, on a draft that is named, or waiting for the customer's next invoice."""
    invoice_id, customer = form.text("invoice"), form.text("customer")
    invoice = None if invoice_id is None else find_draft_invoice(call, invoice_id)
    if invoice is None and customer is None:
        raise form.missing("customer")
    owner = find_customer(call, customer or (invoice.customer if invoice else ""))
    if invoice is not None and owner.id != invoice.customer:
        raise ProcessorRefusal(f"The customer of invoice {invoice.id} is not {owner.id}.", param="customer")
    currency = form.currency() or (invoice.currency if invoice else call.owner.currency)
    now = call.state.now()
    row = InvoiceItem(call.state.new_id("ii_"), now, owner.id, 0, currency, period_start=now, period_end=now)
    read_item_amount(form, row)
    _read_item_details(form, row)
    form.done()
    row.product, row.price = call.state.new_id("prod_", 14), call.state.new_id("price_")
    if invoice is not None:
        add_invoice_line(call.state, invoice, row)
    return INVOICE_ITEMS.change(call, row)


def find_draft_invoice(call: ApiCall, invoice: str) -> Invoice:
    """An invoice that lines can still be put on."""
    row = find_row(call.book.invoices, invoice, "invoice", param="invoice", status=400)
    if row.status != "draft":
        raise ProcessorRefusal("This invoice is no longer editable", code="invoice_not_editable", param="invoice")
    return row


def read_item_amount(form: CallForm, row: InvoiceItem) -> None:
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
        raise invalid_parameter("You may only specify one of these parameters: amount, quantity.", "amount")
    if amount is None and unit is None:
        raise form.missing("amount")
    row.quantity = 1 if quantity is None else quantity
    unit = Decimal(amount or 0) if unit is None else unit
    row.unit_decimal = format(unit, "f")
    row.amount = int((unit * row.quantity).quantize(Decimal(1), ROUND_HALF_UP))


def _read_item_details(form: CallForm, row: InvoiceItem) -> None:
    row.description = form.text("description")
    row.discountable = form.flag("discountable") is not False
    period = form.part("period")
    if period is not None:
        row.period_start, row.period_end = period.need_integer("start", 0), period.need_integer("end", 0)
        if row.period_end < row.period_start:
            raise invalid_parameter("The period's end must not be before its start.", "period[end]")
    row.metadata = form.metadata()


def delete_invoice_item(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = INVOICE_ITEMS.find(call)
    if row.invoice is not None:
        find_draft_invoice(call, row.invoice).items.remove(row.id)
    del call.book.items[row.id]
    return {"id": row.id, "object": "invoiceitem", "deleted": True}


def list_invoice_items(call: ApiCall, form: CallForm) -> JsonObject:
    pending = form.flag("pending")
    return INVOICE_ITEMS.list(call, form, lambda row: pending in (None, row.invoice is None))


def invoice_line_json(state: ProcessorState, row: InvoiceItem) -> JsonObject:
    return {
        **labelled_json(state, row, "line_item", "amount currency description discountable invoice quantity"),
        "id": row.line,
        "discount_amounts": [],
        "discounts": [],
        "parent": {
            "invoice_item_details": {"invoice_item": row.id, "proration": False, "proration_details": None, "subscription": None},
            "subscription_item_details": None,
            "type": "invoice_item_details",
        },
        "period": {"end": row.period_end, "start": row.period_start},
        "pretax_credit_amounts": [],
        "pricing": _line_pricing_json(row),
        "quantity_decimal": str(row.quantity),
        "subscription": None,
        "subtotal": row.amount,
        "taxes": [],
    }


def _line_pricing_json(row: InvoiceItem) -> JsonObject:
    details = {"price": row.price, "product": row.product}
    return {"price_details": details, "type": "price_details", "unit_amount_decimal": row.unit_decimal}


def _invoice_item_json(state: ProcessorState, row: InvoiceItem) -> JsonObject:
    return {
        **labelled_json(state, row, "invoiceitem", "id amount currency customer description discountable invoice quantity"),
        **null_members("customer_account parent test_clock"),
        "date": row.created,
        "discounts": [],
        "net_amount": row.amount,
        "period": {"end": row.period_end, "start": row.period_start},
        "pricing": _line_pricing_json(row),
        "proration": False,
        "quantity_decimal": str(row.quantity),
        "tax_rates": [],
    }


def add_invoice_line(state: ProcessorState, invoice: Invoice, item: InvoiceItem) -> None:
    if len(invoice.items) >= INVOICE_LINE_LIMIT:
        text = f"Invoice {invoice.id} has reached the maximum of {INVOICE_LINE_LIMIT} line items."
        raise ProcessorRefusal(text, param="invoice")
    if item.currency != invoice.currency:
        text = f"The currency of the invoice item ({item.currency}) does not match the currency of the invoice ({invoice.currency})."
        raise ProcessorRefusal(text, param="currency")
    invoice.items.append(item.id)
    item.invoice, item.line = invoice.id, item.line or state.new_id("il_")
