"""Calls about invoices."""

from dataclasses import replace

from clients.sandbox.payments import render_invoice
from clients.sandbox.payments.api_customers import present
from clients.sandbox.payments.call import Call, found, listed, page
from clients.sandbox.payments.entities import Invoice
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.invoice_figures import items_of
from clients.sandbox.payments.invoicing import MOST_LINES, cancel_payment, finalize, put_on, send, void
from clients.sandbox.payments.ledger import DAY
from clients.sandbox.payments.news import tell_invoice
from clients.sandbox.payments.paying import settle_invoice
from clients.sandbox.payments.refusal import Members, Refusal

METHODS = ("charge_automatically", "send_invoice")
LONGEST_NUMBER = 26
NOT_CONNECTED = (
    "Can only apply an application_fee_amount when the request is made on behalf of another account (using an OAuth key or the "
    "Stripe-Account header)."
)


def shown(call: Call, row: Invoice, form: Form | None = None) -> Members:
    """As answered: `payments` only where it was asked for."""
    answer = render_invoice.invoice(call.state, call.account, row)
    if form is not None and "payments" in (form.texts("expand") or []):
        payments = [render_invoice.payment(call.state, call.account, row)] if row.payment else []
        answer["payments"] = page(payments, f"/v1/invoice_payments?invoice={row.id}")
    return answer


def create_invoice(call: Call, form: Form) -> Members:
    """A draft for a customer, without lines unless those that wait are asked for."""
    customer = form.text("customer")
    if customer is None:
        raise form.missing("customer")
    currency, method = form.currency(), form.choice("collection_method", METHODS)
    pending = form.choice("pending_invoice_items_behavior", ("exclude", "include"))
    row = Invoice(call.state.new_id("in_"), call.state.now(), customer, currency or call.owner.currency)
    row.collection_method = method or "charge_automatically"
    read_invoice(call, form, row)
    form.done()
    copy_customer(call, row)
    if row.collection_method == "send_invoice":
        check_sendable(row)
    call.book.invoices[row.id] = row
    owner = call.book.customers[customer]
    owner.currency = owner.currency or row.currency
    if pending == "include":
        for item in call.book.items.values():
            if item.invoice is None and item.customer == customer and item.currency == row.currency:
                put_on(call.state, row, item)
    tell_invoice(call.state, call.account, row, "invoice.created")
    return shown(call, row, form)


def copy_customer(call: Call, row: Invoice) -> None:
    """Who it is for, as they are known now."""
    customer = present(call, row.customer)
    row.customer_name, row.customer_email, row.customer_phone = customer.name, customer.email, customer.phone
    row.customer_address = dict(customer.address) if customer.address else None


def check_sendable(row: Invoice) -> None:
    """An invoice that is mailed says when it is due, and has an address to go to."""
    if row.due_date is None and row.days_until_due is None:
        text = "If invoices are set to `collection_method=send_invoice`, you must specify `days_until_due` or `due_date`."
        raise Refusal(text, param="days_until_due", code="parameter_missing", early=True)
    if row.customer_email is None:
        text = "Missing email. In order to create invoices that are sent to the customer, the customer must have a valid email."
        raise Refusal(text, param="collection_method")


def read_invoice(call: Call, form: Form, row: Invoice) -> None:
    """What may be said of a draft."""
    days, due = form.integer("days_until_due", 0), form.integer("due_date")
    if (days is not None or due is not None) and row.collection_method != "send_invoice":
        name = "due_date" if days is None else "days_until_due"
        raise invalid(f"You can only specify `{name}` if `collection_method` is `send_invoice`.", name)
    if days is not None and due is not None:
        raise invalid("You may only specify one of these parameters: days_until_due, due_date.", "due_date")
    if due is not None and due <= call.state.now():
        raise invalid("`due_date` must be in the future.", "due_date")
    if days is not None:
        row.days_until_due, row.due_date = days, row.created + days * DAY
    row.due_date = due or row.due_date
    fee = form.integer("application_fee_amount", 0)
    if fee is not None and not call.on_behalf:
        raise Refusal(NOT_CONNECTED, param="application_fee_amount", early=True)
    row.fee_amount = row.fee_amount if fee is None else fee
    read_number(call, form, row)
    read_words(form, row)
    row.auto_advance = row.auto_advance if (advance := form.flag("auto_advance")) is None else advance
    row.metadata = form.metadata(row.metadata)


def read_number(call: Call, form: Form, row: Invoice) -> None:
    """The caller's own number: used once in an account."""
    number = form.raw("number")
    if number is None:
        return
    if len(number) > LONGEST_NUMBER:
        raise invalid(f"Invalid string: {number}; must be at most {LONGEST_NUMBER} characters", "number")
    if number and any(one.number == number and one.id != row.id for one in call.book.invoices.values()):
        # Choice: the real one refuses a number that is taken, but no document names its code.
        raise Refusal(f"The invoice number '{number}' is already in use.", param="number", code="invoice_number_in_use")
    row.number = number or None


def read_words(form: Form, row: Invoice) -> None:
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
        read_open(form, name)


def read_open(form: Form, name: str) -> None:
    """Settings that change nothing here: taken as they come."""
    part = form.part(name)
    if part is not None:
        part.take_all()


def invoice_of(call: Call) -> Invoice:
    """The invoice of the path."""
    return found(call.book.invoices, call.ids[0], "invoice", param="invoice")


def retrieve_invoice(call: Call, form: Form) -> Members:
    """One invoice."""
    answer = shown(call, invoice_of(call), form)
    form.done()
    return answer


def update_invoice(call: Call, form: Form) -> Members:
    """A draft; of a finalised one only the caller's own words."""
    row = invoice_of(call)
    if row.status != "draft" and any(name not in ("metadata", "expand", "auto_advance") for name in form.names()):
        raise Refusal("Finalized invoices can't be updated in this way", code="invoice_not_editable")
    row = replace(row, collection_method=form.choice("collection_method", METHODS) or row.collection_method)
    read_invoice(call, form, row)
    form.done()
    call.book.invoices[row.id] = row
    tell_invoice(call.state, call.account, row, "invoice.updated")
    return shown(call, row, form)


def delete_invoice(call: Call, form: Form) -> Members:
    """A draft, with its lines."""
    form.done()
    row = invoice_of(call)
    if row.status != "draft":
        raise Refusal("You can only delete draft invoices.", code="invoice_not_editable")
    tell_invoice(call.state, call.account, row, "invoice.deleted")
    for item in row.items:
        del call.book.items[item]
    del call.book.invoices[row.id]
    return {"id": row.id, "object": "invoice", "deleted": True}


def finalize_invoice(call: Call, form: Form) -> Members:
    """From now on it can be paid."""
    row = invoice_of(call)
    advance = form.flag("auto_advance")
    form.done()
    row.auto_advance = row.auto_advance if advance is None else advance
    finalize(call.state, call.account, row)
    return shown(call, row, form)


def send_invoice(call: Call, form: Form) -> Members:
    """To the customer's mail address."""
    row = invoice_of(call)
    form.done()
    send(call.state, call.account, row)
    return shown(call, row, form)


def void_invoice(call: Call, form: Form) -> Members:
    """Taken back."""
    row = invoice_of(call)
    form.done()
    void(call.state, call.account, row)
    return shown(call, row, form)


def mark_uncollectible(call: Call, form: Form) -> Members:
    """Given up."""
    row = invoice_of(call)
    form.done()
    if row.status != "open":
        raise Refusal("You can only mark open invoices as uncollectible.")
    row.status, row.uncollectible_at = "uncollectible", call.state.now()
    tell_invoice(call.state, call.account, row, "invoice.updated", "invoice.marked_uncollectible")
    return shown(call, row, form)


def pay_invoice(call: Call, form: Form) -> Members:
    """Paid outside of the processor; nobody's card is on file here."""
    row = invoice_of(call)
    out_of_band = form.flag("paid_out_of_band")
    form.done()
    if row.status == "paid":
        raise Refusal("Invoice is already paid")
    if row.status not in ("open", "uncollectible"):
        raise Refusal(f"This invoice cannot be paid: it is {row.status}.")
    if not out_of_band:
        text = "Cannot charge a customer that has no active card"
        raise Refusal(text, status=402, type="card_error", code="missing", param="customer")
    row.out_of_band = True
    cancel_payment(call.state, call.account, row)
    settle_invoice(call.state, call.account, row)
    return shown(call, row, form)


def list_invoices(call: Call, form: Form) -> Members:
    """Newest first."""
    status = form.choice("status", ("draft", "open", "paid", "uncollectible", "void"))
    customer, method = form.text("customer"), form.choice("collection_method", METHODS)
    rows = {
        id: row
        for id, row in call.book.invoices.items()
        if status in (None, row.status) and customer in (None, row.customer) and method in (None, row.collection_method)
    }
    return listed(form, rows, lambda row: shown(call, row), url="/v1/invoices", kind="invoice", when=lambda row: row.created)


def list_invoice_lines(call: Call, form: Form) -> Members:
    """In order."""
    row = invoice_of(call)
    limit, after = form.integer("limit", 1, 100) or 10, form.text("starting_after")
    form.text("ending_before")
    form.done()
    items = items_of(call.state, call.account, row)
    start = next((place + 1 for place, item in enumerate(items) if item.line == after), 0)
    part = items[start : start + limit]
    lines = [render_invoice.line(call.state, item) for item in part]
    return page(lines, f"/v1/invoices/{row.id}/lines", more=start + len(part) < min(len(items), MOST_LINES))


def list_invoice_payments(call: Call, form: Form) -> Members:
    """Payments that invoices ask for."""
    invoice, status = form.text("invoice"), form.choice("status", ("canceled", "open", "paid"))
    rows = {row.payment: row for row in call.book.invoices.values() if row.payment and invoice in (None, row.id)}
    if status is not None:
        rows = {id: row for id, row in rows.items() if render_invoice.payment(call.state, call.account, row)["status"] == status}
    return listed(
        form,
        rows,
        lambda row: render_invoice.payment(call.state, call.account, row),
        url="/v1/invoice_payments",
        kind="invoice_payment",
        when=lambda row: row.finalized_at or 0,
    )
