"""Customers: calls about those who pay, and how they go over the wire."""

from dataclasses import replace

from simulators.processor.call import ApiCall, ApiNoun, CallForm, find_row, invalid_parameter, labelled_json, null_members
from simulators.processor.state import Customer, JsonObject, ProcessorState

ADDRESS_MEMBERS = ("city", "country", "line1", "line2", "postal_code", "state")
INVOICE_PREFIX_LENGTH = 8
CUSTOMERS = ApiNoun(
    "customer",
    "customers",
    lambda book: book.customers,
    lambda state, _, row: _customer_json(state, row),
    filters={"email": "email"},
)


def create_customer(call: ApiCall, form: CallForm) -> JsonObject:
    row = Customer(call.state.new_id("cus_", 14), call.state.now())
    read_customer(form, row)
    form.done()
    row.prefix = row.id[-INVOICE_PREFIX_LENGTH:].upper()
    return CUSTOMERS.change(call, row, "customer.created")


def read_customer(form: CallForm, row: Customer) -> None:
    """Reads what is given of a customer; an empty text removes a value."""
    for name in ("name", "phone", "description"):
        if form.has(name):
            setattr(row, name, form.raw(name) or None)
    if form.raw("email") == "":
        row.email = None
    else:
        row.email = form.email() or row.email
    address = form.part("address")
    if address is not None:
        row.address = {name: address.raw(name) or None for name in ADDRESS_MEMBERS}
    languages = form.texts("preferred_locales")
    if languages is not None and any(not language for language in languages):
        raise invalid_parameter("Invalid locale", "preferred_locales")
    row.metadata = form.metadata(row.metadata)


def update_customer(call: ApiCall, form: CallForm) -> JsonObject:
    row = replace(find_customer(call, call.ids[0], "id", 404))
    read_customer(form, row)
    form.done()
    return CUSTOMERS.change(call, row, "customer.updated")


def delete_customer(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = find_customer(call, call.ids[0], "id", 404)
    CUSTOMERS.notify(call.state, call.account, row, "customer.deleted")
    row.deleted = True
    return CUSTOMERS.answer(call, row)


def list_customers(call: ApiCall, form: CallForm) -> JsonObject:
    return CUSTOMERS.list(call, form, lambda row: not row.deleted)


def find_customer(call: ApiCall, customer: str, param: str = "customer", status: int = 400) -> Customer:
    """A customer that a parameter names and that is not deleted. Raises ProcessorRefusal with `status` where there is none."""
    rows = {id: row for id, row in call.book.customers.items() if not row.deleted}
    return find_row(rows, customer, "customer", param=param, status=status)


def _customer_json(state: ProcessorState, row: Customer) -> JsonObject:
    if row.deleted:
        return {"id": row.id, "object": "customer", "deleted": True}
    return {
        **labelled_json(state, row, "customer", "id address created currency description email name phone"),
        "balance": 0,
        **null_members("default_source discount shipping test_clock"),
        "delinquent": False,
        "invoice_prefix": row.prefix,
        "invoice_settings": null_members("custom_fields default_payment_method footer rendering_options"),
        "next_invoice_sequence": 1,
        "preferred_locales": [],
        "tax_exempt": "none",
    }
