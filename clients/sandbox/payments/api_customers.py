"""Calls about those who pay."""

from dataclasses import replace

from clients.sandbox.payments import render_account
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Customer
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.state import emit

ADDRESS = ("city", "country", "line1", "line2", "postal_code", "state")
PREFIX_LENGTH = 8


def create_customer(call: Call, form: Form) -> Members:
    """Nothing is required."""
    row = Customer(call.state.new_id("cus_", 14), call.state.now())
    read_customer(form, row)
    form.done()
    row.prefix = row.id[-PREFIX_LENGTH:].upper()
    call.book.customers[row.id] = row
    answer = render_account.customer(call.state, row)
    emit(call.state, "customer.created", answer, call.account)
    return answer


def read_customer(form: Form, row: Customer) -> None:
    """What is known of somebody; "" forgets it."""
    for name in ("name", "phone", "description"):
        if form.has(name):
            setattr(row, name, form.raw(name) or None)
    if form.raw("email") == "":
        row.email = None
    else:
        row.email = form.email() or row.email
    address = form.part("address")
    if address is not None:
        row.address = {name: address.raw(name) or None for name in ADDRESS}
    languages = form.texts("preferred_locales")
    if languages is not None and any(not language for language in languages):
        raise invalid("Invalid locale", "preferred_locales")
    row.metadata = form.metadata(row.metadata)


def customer_of(call: Call) -> Customer:
    """The customer of the path."""
    return found(call.book.customers, call.ids[0], "customer")


def retrieve_customer(call: Call, form: Form) -> Members:
    """One customer, also one that was deleted."""
    form.done()
    return render_account.customer(call.state, customer_of(call))


def update_customer(call: Call, form: Form) -> Members:
    """What is given is changed."""
    row = replace(present(call, call.ids[0], "id", 404))
    read_customer(form, row)
    form.done()
    call.book.customers[row.id] = row
    answer = render_account.customer(call.state, row)
    emit(call.state, "customer.updated", answer, call.account)
    return answer


def delete_customer(call: Call, form: Form) -> Members:
    """For good; their charges stay."""
    form.done()
    row = present(call, call.ids[0], "id", 404)
    before = render_account.customer(call.state, row)
    row.deleted = True
    emit(call.state, "customer.deleted", before, call.account)
    return render_account.customer(call.state, row)


def list_customers(call: Call, form: Form) -> Members:
    """Newest first."""
    email = form.text("email")
    rows = {id: row for id, row in call.book.customers.items() if not row.deleted and email in (None, row.email)}
    return listed(
        form, rows, lambda row: render_account.customer(call.state, row), url="/v1/customers", kind="customer", when=lambda row: row.created
    )


def present(call: Call, customer: str, param: str = "customer", status: int = 400) -> Customer:
    """A customer named by a parameter."""
    rows = {id: row for id, row in call.book.customers.items() if not row.deleted}
    return found(rows, customer, "customer", param=param, status=status)
