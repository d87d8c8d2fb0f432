"""Invoices and their lines: the calls about them, what they come to, how they are paid, and how they go over the wire."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

from simulators.processor.call import (
    ApiCall,
    ApiNoun,
    CallForm,
    ProcessorRefusal,
    find_row,
    invalid_parameter,
    labelled_json,
    list_object,
    list_page,
    null_members,
    row_members,
)
from simulators.processor.cards import SimulatedCard, card_verdict
from simulators.processor.charges import PAYMENT_INTENTS, attempt_payment, make_payment_intent
from simulators.processor.customers import find_customer
from simulators.processor.state import PROCESSOR_DAY_SECONDS, Charge, Invoice, InvoiceItem, JsonObject, ProcessorState, emit_event

COLLECTION_METHODS = ("charge_automatically", "send_invoice")
INVOICES = ApiNoun(
    "invoice",
    "invoices",
    lambda book: book.invoices,
    lambda state, account, row: invoice_json(state, account, row),
    "invoice",
    {"status": "status", "customer": "customer", "collection_method": "collection_method"},
    {"status": ("draft", "open", "paid", "uncollectible", "void"), "collection_method": COLLECTION_METHODS},
)
INVOICE_ITEMS = ApiNoun(
    "invoiceitem",
    "invoiceitems",
    lambda book: book.items,
    lambda state, _, row: _invoice_item_json(state, row),
    "invoiceitem",
    {"customer": "customer", "invoice": "invoice"},
)
INVOICE_LINE_LIMIT = 250
SHOWN_INVOICE_LINES = 10
INVOICE_NUMBER_LIMIT = 26
INVOICE_FEE_REFUSED = (
    "Can only apply an application_fee_amount when the request is made on behalf of another account (using an OAuth key or the "
    "Stripe-Account header)."
)


def finalize_draft(state: ProcessorState, account: str, row: Invoice) -> None:
    """Freezes the figures of a draft, and gives it a number and a pay page. With nothing to pay it is paid."""
    if row.status != "draft":
        raise ProcessorRefusal("This invoice is already finalized, you can't re-finalize a non-draft invoice.")
    total = invoice_total(state, account, row)
    if row.fee_amount is not None and row.fee_amount > max(total, 0):
        raise ProcessorRefusal("The application fee cannot be larger than the invoice's total.", param="application_fee_amount")
    row.status, row.finalized_at = "open", state.now()
    row.number = row.number or next_invoice_number(state, account, row)
    row.slug = state.new_id("inv_slug_")[len("inv_slug_") :]
    if row.due_date is None and row.days_until_due is not None:
        row.due_date = state.now() + row.days_until_due * PROCESSOR_DAY_SECONDS
    if total > 0:
        amount = invoice_due(state, account, row)
        intent = make_payment_intent(state, account, amount=amount, currency=row.currency, fee_amount=row.fee_amount, metadata={})
        intent.customer, intent.description = row.customer, f"Payment for Invoice {row.number}"
        row.intent, row.payment = intent.id, state.new_id("inpay_")
        PAYMENT_INTENTS.notify(state, account, intent, "payment_intent.created")
    INVOICES.notify(state, account, row, "invoice.updated", "invoice.finalized")
    if total <= 0:
        mark_invoice_paid(state, account, row)


def next_invoice_number(state: ProcessorState, account: str, row: Invoice) -> str:
    """The customer's prefix, and the first count that is free."""
    book = state.book(account)
    taken = {one.number for one in book.invoices.values()}
    prefix = book.customers[row.customer].prefix
    count = 1
    while f"{prefix}-{count:04d}" in taken:
        count += 1
    return f"{prefix}-{count:04d}"


def _cancel_invoice_payment(state: ProcessorState, account: str, row: Invoice) -> None:
    intent = state.book(account).intents.get(row.intent or "")
    if intent is not None and intent.status == "requires_payment_method":
        intent.status, intent.canceled_at, intent.cancellation_reason = "canceled", state.now(), "void_invoice"
        PAYMENT_INTENTS.notify(state, account, intent, "payment_intent.canceled")


def find_invoice_by_slug(state: ProcessorState, slug: str) -> tuple[str, Invoice] | None:
    """The account and the invoice of a pay page's address."""
    for account, book in state.books.items():
        for invoice in book.invoices.values():
            if invoice.slug == slug:
                return account, invoice
    return None


def pay_invoice_by_card(state: ProcessorState, account: str, invoice: str, card: SimulatedCard) -> Charge:
    """The recipient pays all of it with a card. A declined card raises ProcessorRefusal (402): the invoice stays open."""
    book = state.book(account)
    row = find_row(book.invoices, invoice, "invoice")
    if row.status == "paid":
        raise ProcessorRefusal("Invoice is already paid")
    if row.status != "open" or row.intent is None:
        raise ProcessorRefusal(f"This invoice cannot be paid: it is {row.status}.")
    card_verdict(card.number)
    row.attempts += 1
    try:
        charge = attempt_payment(state, account, book.intents[row.intent], card)
    except ProcessorRefusal:
        INVOICES.notify(state, account, row, "invoice.payment_failed", "invoice.updated")
        raise
    mark_invoice_paid(state, account, row)
    return charge


def mark_invoice_paid(state: ProcessorState, account: str, row: Invoice) -> None:
    """Marks an invoice as paid: by a charge, out of band, or because there is nothing to pay."""
    row.amount_paid += invoice_remaining(state, account, row)
    row.status, row.paid_at = "paid", state.now()
    INVOICES.notify(state, account, row, "invoice.updated", "invoice.paid", "invoice.payment_succeeded")
    if row.payment is not None:
        emit_event(state, "invoice_payment.paid", _invoice_payment_json(state, account, row), account)


def invoice_lines(state: ProcessorState, account: str, invoice: Invoice) -> list[InvoiceItem]:
    rows = state.book(account).items
    return [rows[id] for id in invoice.items]


def invoice_total(state: ProcessorState, account: str, invoice: Invoice) -> int:
    """The sum of the lines, which may be negative."""
    return sum(item.amount for item in invoice_lines(state, account, invoice))


def invoice_due(state: ProcessorState, account: str, invoice: Invoice) -> int:
    """What there is to pay before any payment: never negative."""
    return max(0, invoice_total(state, account, invoice))


def invoice_remaining(state: ProcessorState, account: str, invoice: Invoice) -> int:
    return invoice_due(state, account, invoice) - invoice.amount_paid


def invoice_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    total, due = invoice_total(state, account, row), invoice_due(state, account, row)
    return {
        **labelled_json(state, row, "invoice", "id auto_advance collection_method created currency description due_date footer number"),
        **row_members(row, "statement_descriptor status"),
        **invoice_amounts_json(row, total, due, invoice_remaining(state, account, row)),
        **_invoice_parties_json(state, account, row),
        **null_members("account_tax_ids default_payment_method default_source from_invoice last_finalization_error latest_revision"),
        **null_members("next_payment_attempt on_behalf_of parent receipt_number rendering shipping_cost shipping_details test_clock"),
        "attempt_count": row.attempts,
        "attempted": row.attempts > 0,
        "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None, "provider": None, "status": None},
        "automatically_finalizes_at": row.created + 3600 if row.auto_advance and row.status == "draft" else None,
        "billing_reason": "manual",
        "custom_fields": [dict(one) for one in row.custom_fields] or None,
        "default_tax_rates": [],
        "discounts": [],
        "effective_at": row.effective_at or row.finalized_at,
        "ending_balance": None if row.status == "draft" else 0,
        "hosted_invoice_url": f"{state.pages_url}/invoices/{row.slug}" if row.slug else None,
        "invoice_pdf": f"{state.pages_url}/invoices/{row.slug}/pdf" if row.slug else None,
        "issuer": {"type": "self"},
        "lines": _invoice_lines_json(state, account, row),
        "payment_settings": null_members("default_mandate payment_method_options payment_method_types"),
        "period_end": row.created,
        "period_start": row.created,
        "status_transitions": {
            **row_members(row, "finalized_at paid_at voided_at"),
            "marked_uncollectible_at": row.uncollectible_at,
        },
        "webhooks_delivered_at": row.created,
    }


def invoice_amounts_json(row: Invoice, total: int, due: int, remaining: int) -> JsonObject:
    """All amounts; nothing here is taxed, shipped or credited."""
    return {
        "amount_due": due,
        "amount_overpaid": 0,
        "amount_paid": row.amount_paid,
        "amount_paid_off_stripe": row.amount_paid if row.out_of_band else 0,
        "amount_remaining": remaining,
        "amount_shipping": 0,
        "post_payment_credit_notes_amount": 0,
        "pre_payment_credit_notes_amount": 0,
        "starting_balance": 0,
        "subtotal": total,
        "subtotal_excluding_tax": total,
        "total": total,
        "total_discount_amounts": [],
        "total_excluding_tax": total,
        "total_pretax_credit_amounts": [],
        "total_taxes": [],
    }


def _invoice_parties_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    owner = state.accounts[account]
    return {
        "account_country": owner.country,
        "account_name": owner.name,
        "application": state.client_id if account != state.platform else None,
        **row_members(row, "customer customer_address customer_email customer_name customer_phone"),
        **null_members("customer_account customer_shipping"),
        "customer_tax_exempt": "none",
        "customer_tax_ids": [],
    }


def _invoice_lines_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    items = invoice_lines(state, account, row)
    shown = [invoice_line_json(state, item) for item in items[:SHOWN_INVOICE_LINES]]
    found = list_object(shown, f"/v1/invoices/{row.id}/lines", more=len(items) > SHOWN_INVOICE_LINES)
    return {**found, "total_count": len(items)}


def _invoice_payment_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    status = {"paid": "paid", "void": "canceled"}.get(row.status, "open")
    return {
        "id": row.payment,
        "object": "invoice_payment",
        "amount_paid": row.amount_paid if status == "paid" else None,
        "amount_requested": invoice_due(state, account, row),
        "created": row.finalized_at,
        "currency": row.currency,
        "invoice": row.id,
        "is_default": True,
        "livemode": state.live,
        "payment": {"payment_intent": row.intent, "type": "payment_intent"},
        "status": status,
        "status_transitions": {"canceled_at": row.voided_at, "paid_at": row.paid_at},
    }


def invoice_answer(call: ApiCall, row: Invoice, form: CallForm, *types: str) -> JsonObject:
    """The invoice as an answer, after an event of each type; its payments only where `expand` asks for them."""
    INVOICES.notify(call.state, call.account, row, *types)
    answer = INVOICES.answer(call, row)
    if "payments" in (form.texts("expand") or []):
        payments = [_invoice_payment_json(call.state, call.account, row)] if row.payment else []
        answer["payments"] = list_object(payments, f"/v1/invoice_payments?invoice={row.id}")
    return answer


def create_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """A draft for a customer, without lines unless those that wait are asked for."""
    customer = form.need_text("customer")
    currency, method = form.currency(), form.choice("collection_method", COLLECTION_METHODS)
    pending = form.choice("pending_invoice_items_behavior", ("exclude", "include"))
    row = Invoice(call.state.new_id("in_"), call.state.now(), customer, currency or call.owner.currency)
    row.collection_method = method or "charge_automatically"
    _read_invoice(call, form, row)
    form.done()
    _copy_invoice_customer(call, row)
    if row.collection_method == "send_invoice":
        check_invoice_sendable(row)
    call.book.invoices[row.id] = row
    owner = call.book.customers[customer]
    owner.currency = owner.currency or row.currency
    if pending == "include":
        for item in call.book.items.values():
            if item.invoice is None and item.customer == customer and item.currency == row.currency:
                add_invoice_line(call.state, row, item)
    return invoice_answer(call, row, form, "invoice.created")


def _copy_invoice_customer(call: ApiCall, row: Invoice) -> None:
    customer = find_customer(call, row.customer)
    row.customer_name, row.customer_email, row.customer_phone = customer.name, customer.email, customer.phone
    row.customer_address = dict(customer.address) if customer.address else None


def check_invoice_sendable(row: Invoice) -> None:
    """Refuses to mail an invoice without a due date or a mail address."""
    if row.due_date is None and row.days_until_due is None:
        text = "If invoices are set to `collection_method=send_invoice`, you must specify `days_until_due` or `due_date`."
        raise ProcessorRefusal(text, param="days_until_due", code="parameter_missing", early=True)
    if row.customer_email is None:
        text = "Missing email. In order to create invoices that are sent to the customer, the customer must have a valid email."
        raise ProcessorRefusal(text, param="collection_method")


def _read_invoice(call: ApiCall, form: CallForm, row: Invoice) -> None:
    days, due = form.integer("days_until_due", 0), form.integer("due_date")
    if (days is not None or due is not None) and row.collection_method != "send_invoice":
        name = "due_date" if days is None else "days_until_due"
        raise invalid_parameter(f"You can only specify `{name}` if `collection_method` is `send_invoice`.", name)
    if days is not None and due is not None:
        raise invalid_parameter("You may only specify one of these parameters: days_until_due, due_date.", "due_date")
    if due is not None and due <= call.state.now():
        raise invalid_parameter("`due_date` must be in the future.", "due_date")
    if days is not None:
        row.days_until_due, row.due_date = days, row.created + days * PROCESSOR_DAY_SECONDS
    row.due_date = due or row.due_date
    fee = form.integer("application_fee_amount", 0)
    if fee is not None and not call.on_behalf:
        raise ProcessorRefusal(INVOICE_FEE_REFUSED, param="application_fee_amount", early=True)
    row.fee_amount = row.fee_amount if fee is None else fee
    read_invoice_number(call, form, row)
    _read_invoice_texts(form, row)
    row.auto_advance = row.auto_advance if (advance := form.flag("auto_advance")) is None else advance
    row.metadata = form.metadata(row.metadata)


def read_invoice_number(call: ApiCall, form: CallForm, row: Invoice) -> None:
    """Reads the caller's own number, which is used once in an account."""
    number = form.raw("number")
    if number is None:
        return
    if len(number) > INVOICE_NUMBER_LIMIT:
        raise invalid_parameter(f"Invalid string: {number}; must be at most {INVOICE_NUMBER_LIMIT} characters", "number")
    if number and any(one.number == number and one.id != row.id for one in call.book.invoices.values()):
        # Choice: the real one refuses a number that is taken, but no document names its code.
        raise ProcessorRefusal(f"The invoice number '{number}' is already in use.", param="number", code="invoice_number_in_use")
    row.number = number or None


def _read_invoice_texts(form: CallForm, row: Invoice) -> None:
    for name in ("description", "footer", "statement_descriptor"):
        if form.has(name):
            setattr(row, name, form.raw(name) or None)
    if form.raw("effective_at") not in (None, ""):
        row.effective_at = form.integer("effective_at")
    if form.has("custom_fields"):
        row.custom_fields = [
            {"name": part.need_text("name", 40), "value": part.need_text("value", 140)} for part in form.parts("custom_fields")
        ]
    for name in ("automatic_tax", "rendering", "payment_settings"):
        read_ignored_settings(form, name)


def read_ignored_settings(form: CallForm, name: str) -> None:
    """Settings that change nothing here: taken as they come."""
    part = form.part(name)
    if part is not None:
        part.take_all()


def retrieve_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    answer = invoice_answer(call, INVOICES.find(call), form)
    form.done()
    return answer


def update_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """Changes a draft; of a finalised invoice only the metadata."""
    row = INVOICES.find(call)
    if row.status != "draft" and any(name not in ("metadata", "expand", "auto_advance") for name in form.names()):
        raise ProcessorRefusal("Finalized invoices can't be updated in this way", code="invoice_not_editable")
    row = replace(row, collection_method=form.choice("collection_method", COLLECTION_METHODS) or row.collection_method)
    _read_invoice(call, form, row)
    form.done()
    call.book.invoices[row.id] = row
    return invoice_answer(call, row, form, "invoice.updated")


def delete_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = INVOICES.find(call)
    if row.status != "draft":
        raise ProcessorRefusal("You can only delete draft invoices.", code="invoice_not_editable")
    INVOICES.notify(call.state, call.account, row, "invoice.deleted")
    for item in row.items:
        del call.book.items[item]
    del call.book.invoices[row.id]
    return {"id": row.id, "object": "invoice", "deleted": True}


def finalize_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    row = INVOICES.find(call)
    advance = form.flag("auto_advance")
    form.done()
    row.auto_advance = row.auto_advance if advance is None else advance
    finalize_draft(call.state, call.account, row)
    return invoice_answer(call, row, form)


def send_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    row = INVOICES.find(call)
    form.done()
    if row.collection_method != "send_invoice":
        raise ProcessorRefusal("You can only manually send an invoice if its collection method is 'send_invoice'.")
    if row.status not in ("draft", "open"):
        raise ProcessorRefusal(f"You can't send an invoice that is {row.status}.")
    if row.customer_email is None:
        raise ProcessorRefusal("This invoice cannot be sent: its customer has no email address.")
    if row.status == "draft":
        finalize_draft(call.state, call.account, row)
    row.sent_at = call.state.now()
    return invoice_answer(call, row, form, "invoice.sent")


def void_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    row = INVOICES.find(call)
    form.done()
    if row.status not in ("open", "uncollectible"):
        text = "You can only pass in open or uncollectible invoices." if row.status == "draft" else f"This invoice is {row.status}."
        raise ProcessorRefusal(f"{text} This invoice cannot be voided.")
    row.status, row.voided_at = "void", call.state.now()
    _cancel_invoice_payment(call.state, call.account, row)
    return invoice_answer(call, row, form, "invoice.updated", "invoice.voided")


def mark_uncollectible(call: ApiCall, form: CallForm) -> JsonObject:
    row = INVOICES.find(call)
    form.done()
    if row.status != "open":
        raise ProcessorRefusal("You can only mark open invoices as uncollectible.")
    row.status, row.uncollectible_at = "uncollectible", call.state.now()
    return invoice_answer(call, row, form, "invoice.updated", "invoice.marked_uncollectible")


def pay_invoice_out_of_band(call: ApiCall, form: CallForm) -> JsonObject:
    """Marks an invoice as paid outside of the processor. No customer has a card on file here."""
    row = INVOICES.find(call)
    out_of_band = form.flag("paid_out_of_band")
    form.done()
    if row.status == "paid":
        raise ProcessorRefusal("Invoice is already paid")
    if row.status not in ("open", "uncollectible"):
        raise ProcessorRefusal(f"This invoice cannot be paid: it is {row.status}.")
    if not out_of_band:
        text = "Cannot charge a customer that has no active card"
        raise ProcessorRefusal(text, status=402, type="card_error", code="missing", param="customer")
    row.out_of_band = True
    _cancel_invoice_payment(call.state, call.account, row)
    mark_invoice_paid(call.state, call.account, row)
    return invoice_answer(call, row, form)


def list_invoice_lines(call: ApiCall, form: CallForm) -> JsonObject:
    row = INVOICES.find(call)
    limit, after = form.integer("limit", 1, 100) or 10, form.text("starting_after")
    form.text("ending_before")
    form.done()
    items = invoice_lines(call.state, call.account, row)
    start = next((place + 1 for place, item in enumerate(items) if item.line == after), 0)
    part = items[start : start + limit]
    lines = [invoice_line_json(call.state, item) for item in part]
    return list_object(lines, f"/v1/invoices/{row.id}/lines", more=start + len(part) < min(len(items), INVOICE_LINE_LIMIT))


def list_invoice_payments(call: ApiCall, form: CallForm) -> JsonObject:
    invoice, status = form.text("invoice"), form.choice("status", ("canceled", "open", "paid"))
    rows = {row.payment: row for row in call.book.invoices.values() if row.payment and invoice in (None, row.id)}
    if status is not None:
        rows = {id: row for id, row in rows.items() if _invoice_payment_json(call.state, call.account, row)["status"] == status}
    return list_page(
        form,
        rows,
        lambda row: _invoice_payment_json(call.state, call.account, row),
        url="/v1/invoice_payments",
        kind="invoice_payment",
        when=lambda row: row.finalized_at or 0,
    )


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
