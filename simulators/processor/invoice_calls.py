"""Calls about invoices."""

from dataclasses import replace

from simulators.processor.balance import BALANCE_DAY_SECONDS
from simulators.processor.call import ApiCall, find_row, list_object, list_page
from simulators.processor.customers import find_customer
from simulators.processor.entities import Invoice
from simulators.processor.form import CallForm, invalid_parameter
from simulators.processor.invoice_items import INVOICE_LINE_LIMIT, add_invoice_line, invoice_line_json
from simulators.processor.invoices import (
    cancel_invoice_payment,
    finalize_draft,
    invoice_json,
    invoice_lines,
    invoice_payment_json,
    mail_invoice,
    mark_invoice_paid,
    notify_invoice,
    void_open_invoice,
)
from simulators.processor.refusal import JsonObject, ProcessorRefusal

COLLECTION_METHODS = ("charge_automatically", "send_invoice")
INVOICE_NUMBER_LIMIT = 26
INVOICE_FEE_REFUSED = (
    "Can only apply an application_fee_amount when the request is made on behalf of another account (using an OAuth key or the "
    "Stripe-Account header)."
)


def invoice_answer(call: ApiCall, row: Invoice, form: CallForm | None = None) -> JsonObject:
    """As answered: `payments` only where it was asked for."""
    answer = invoice_json(call.state, call.account, row)
    if form is not None and "payments" in (form.texts("expand") or []):
        payments = [invoice_payment_json(call.state, call.account, row)] if row.payment else []
        answer["payments"] = list_object(payments, f"/v1/invoice_payments?invoice={row.id}")
    return answer


def create_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """A draft for a customer, without lines unless those that wait are asked for."""
    customer = form.text("customer")
    if customer is None:
        raise form.missing("customer")
    currency, method = form.currency(), form.choice("collection_method", COLLECTION_METHODS)
    pending = form.choice("pending_invoice_items_behavior", ("exclude", "include"))
    row = Invoice(call.state.new_id("in_"), call.state.now(), customer, currency or call.owner.currency)
    row.collection_method = method or "charge_automatically"
    read_invoice(call, form, row)
    form.done()
    copy_invoice_customer(call, row)
    if row.collection_method == "send_invoice":
        check_invoice_sendable(row)
    call.book.invoices[row.id] = row
    owner = call.book.customers[customer]
    owner.currency = owner.currency or row.currency
    if pending == "include":
        for item in call.book.items.values():
            if item.invoice is None and item.customer == customer and item.currency == row.currency:
                add_invoice_line(call.state, row, item)
    notify_invoice(call.state, call.account, row, "invoice.created")
    return invoice_answer(call, row, form)


def copy_invoice_customer(call: ApiCall, row: Invoice) -> None:
    """Who it is for, as they are known now."""
    customer = find_customer(call, row.customer)
    row.customer_name, row.customer_email, row.customer_phone = customer.name, customer.email, customer.phone
    row.customer_address = dict(customer.address) if customer.address else None


def check_invoice_sendable(row: Invoice) -> None:
    """An invoice that is mailed says when it is due, and has an address to go to."""
    if row.due_date is None and row.days_until_due is None:
        text = "If invoices are set to `collection_method=send_invoice`, you must specify `days_until_due` or `due_date`."
        raise ProcessorRefusal(text, param="days_until_due", code="parameter_missing", early=True)
    if row.customer_email is None:
        text = "Missing email. In order to create invoices that are sent to the customer, the customer must have a valid email."
        raise ProcessorRefusal(text, param="collection_method")


def read_invoice(call: ApiCall, form: CallForm, row: Invoice) -> None:
    """What may be said of a draft."""
    days, due = form.integer("days_until_due", 0), form.integer("due_date")
    if (days is not None or due is not None) and row.collection_method != "send_invoice":
        name = "due_date" if days is None else "days_until_due"
        raise invalid_parameter(f"You can only specify `{name}` if `collection_method` is `send_invoice`.", name)
    if days is not None and due is not None:
        raise invalid_parameter("You may only specify one of these parameters: days_until_due, due_date.", "due_date")
    if due is not None and due <= call.state.now():
        raise invalid_parameter("`due_date` must be in the future.", "due_date")
    if days is not None:
        row.days_until_due, row.due_date = days, row.created + days * BALANCE_DAY_SECONDS
    row.due_date = due or row.due_date
    fee = form.integer("application_fee_amount", 0)
    if fee is not None and not call.on_behalf:
        raise ProcessorRefusal(INVOICE_FEE_REFUSED, param="application_fee_amount", early=True)
    row.fee_amount = row.fee_amount if fee is None else fee
    read_invoice_number(call, form, row)
    read_invoice_texts(form, row)
    row.auto_advance = row.auto_advance if (advance := form.flag("auto_advance")) is None else advance
    row.metadata = form.metadata(row.metadata)


def read_invoice_number(call: ApiCall, form: CallForm, row: Invoice) -> None:
    """The caller's own number: used once in an account."""
    number = form.raw("number")
    if number is None:
        return
    if len(number) > INVOICE_NUMBER_LIMIT:
        raise invalid_parameter(f"Invalid string: {number}; must be at most {INVOICE_NUMBER_LIMIT} characters", "number")
    if number and any(one.number == number and one.id != row.id for one in call.book.invoices.values()):
        # Choice: the real one refuses a number that is taken, but no document names its code.
        raise ProcessorRefusal(f"The invoice number '{number}' is already in use.", param="number", code="invoice_number_in_use")
    row.number = number or None


def read_invoice_texts(form: CallForm, row: Invoice) -> None:
    """What is printed on it."""
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


def find_call_invoice(call: ApiCall) -> Invoice:
    """The invoice of the path."""
    return find_row(call.book.invoices, call.ids[0], "invoice", param="invoice")


def retrieve_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """One invoice."""
    answer = invoice_answer(call, find_call_invoice(call), form)
    form.done()
    return answer


def update_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """A draft; of a finalised one only the caller's own words."""
    row = find_call_invoice(call)
    if row.status != "draft" and any(name not in ("metadata", "expand", "auto_advance") for name in form.names()):
        raise ProcessorRefusal("Finalized invoices can't be updated in this way", code="invoice_not_editable")
    row = replace(row, collection_method=form.choice("collection_method", COLLECTION_METHODS) or row.collection_method)
    read_invoice(call, form, row)
    form.done()
    call.book.invoices[row.id] = row
    notify_invoice(call.state, call.account, row, "invoice.updated")
    return invoice_answer(call, row, form)


def delete_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """A draft, with its lines."""
    form.done()
    row = find_call_invoice(call)
    if row.status != "draft":
        raise ProcessorRefusal("You can only delete draft invoices.", code="invoice_not_editable")
    notify_invoice(call.state, call.account, row, "invoice.deleted")
    for item in row.items:
        del call.book.items[item]
    del call.book.invoices[row.id]
    return {"id": row.id, "object": "invoice", "deleted": True}


def finalize_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """From now on it can be paid."""
    row = find_call_invoice(call)
    advance = form.flag("auto_advance")
    form.done()
    row.auto_advance = row.auto_advance if advance is None else advance
    finalize_draft(call.state, call.account, row)
    return invoice_answer(call, row, form)


def send_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """To the customer's mail address."""
    row = find_call_invoice(call)
    form.done()
    mail_invoice(call.state, call.account, row)
    return invoice_answer(call, row, form)


def void_invoice(call: ApiCall, form: CallForm) -> JsonObject:
    """Taken back."""
    row = find_call_invoice(call)
    form.done()
    void_open_invoice(call.state, call.account, row)
    return invoice_answer(call, row, form)


def mark_uncollectible(call: ApiCall, form: CallForm) -> JsonObject:
    """Given up."""
    row = find_call_invoice(call)
    form.done()
    if row.status != "open":
        raise ProcessorRefusal("You can only mark open invoices as uncollectible.")
    row.status, row.uncollectible_at = "uncollectible", call.state.now()
    notify_invoice(call.state, call.account, row, "invoice.updated", "invoice.marked_uncollectible")
    return invoice_answer(call, row, form)


def pay_invoice_out_of_band(call: ApiCall, form: CallForm) -> JsonObject:
    """Paid outside of the processor; nobody's card is on file here."""
    row = find_call_invoice(call)
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
    cancel_invoice_payment(call.state, call.account, row)
    mark_invoice_paid(call.state, call.account, row)
    return invoice_answer(call, row, form)


def list_invoices(call: ApiCall, form: CallForm) -> JsonObject:
    """Newest first."""
    status = form.choice("status", ("draft", "open", "paid", "uncollectible", "void"))
    customer, method = form.text("customer"), form.choice("collection_method", COLLECTION_METHODS)
    rows = {
        id: row
        for id, row in call.book.invoices.items()
        if status in (None, row.status) and customer in (None, row.customer) and method in (None, row.collection_method)
    }
    return list_page(form, rows, lambda row: invoice_answer(call, row), url="/v1/invoices", kind="invoice", when=lambda row: row.created)


def list_invoice_lines(call: ApiCall, form: CallForm) -> JsonObject:
    """In order."""
    row = find_call_invoice(call)
    limit, after = form.integer("limit", 1, 100) or 10, form.text("starting_after")
    form.text("ending_before")
    form.done()
    items = invoice_lines(call.state, call.account, row)
    start = next((place + 1 for place, item in enumerate(items) if item.line == after), 0)
    part = items[start : start + limit]
    lines = [invoice_line_json(call.state, item) for item in part]
    return list_object(lines, f"/v1/invoices/{row.id}/lines", more=start + len(part) < min(len(items), INVOICE_LINE_LIMIT))


def list_invoice_payments(call: ApiCall, form: CallForm) -> JsonObject:
    """Payments that invoices ask for."""
    invoice, status = form.text("invoice"), form.choice("status", ("canceled", "open", "paid"))
    rows = {row.payment: row for row in call.book.invoices.values() if row.payment and invoice in (None, row.id)}
    if status is not None:
        rows = {id: row for id, row in rows.items() if invoice_payment_json(call.state, call.account, row)["status"] == status}
    return list_page(
        form,
        rows,
        lambda row: invoice_payment_json(call.state, call.account, row),
        url="/v1/invoice_payments",
        kind="invoice_payment",
        when=lambda row: row.finalized_at or 0,
    )
