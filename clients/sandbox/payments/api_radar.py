"""Calls about fraud: reviews, and the values that the rules name."""

import re

from clients.sandbox.payments import render_money_out
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Value, ValueList
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.trouble import close_review

ITEM_TYPES = (
    "account",
    "card_bin",
    "card_fingerprint",
    "case_sensitive_string",
    "country",
    "crypto_fingerprint",
    "customer_id",
    "email",
    "ip_address",
    "sepa_debit_fingerprint",
    "string",
    "us_bank_account_fingerprint",
)
SHAPES = {
    "card_bin": re.compile(r"^[0-9]{6,8}$"),
    "country": re.compile(r"^[A-Za-z]{2}$"),
    "customer_id": re.compile(r"^cus_\w+$"),
    "account": re.compile(r"^acct_\w+$"),
    "email": re.compile(r"^[^@\s]*@?[^@\s]+\.[^@\s]+$"),
    "ip_address": re.compile(r"^[0-9a-fA-F.:/]{3,49}$"),
}
LONGEST_VALUE = 800


def retrieve_review(call: Call, form: Form) -> Members:
    """One review."""
    form.done()
    return render_money_out.review(call.state, found(call.book.reviews, call.ids[0], "review"))


def list_reviews(call: Call, form: Form) -> Members:
    """Those that are open, newest first."""
    rows = {id: row for id, row in call.book.reviews.items() if row.open}
    return listed(
        form, rows, lambda row: render_money_out.review(call.state, row), url="/v1/reviews", kind="review", when=lambda row: row.created
    )


def approve_review(call: Call, form: Form) -> Members:
    """The charge is fine."""
    form.done()
    row = found(call.book.reviews, call.ids[0], "review")
    if not row.open:
        raise Refusal("This review has already been closed.")
    close_review(call.state, call.account, row, "approved")
    return render_money_out.review(call.state, row)


def create_value_list(call: Call, form: Form) -> Members:
    """A list for the rules to name."""
    alias, name = form.need_text("alias", 100), form.need_text("name", 100)
    item_type, metadata = form.choice("item_type", ITEM_TYPES), form.metadata()
    form.done()
    if any(row.alias == alias for row in call.book.value_lists.values()):
        raise Refusal(f"A value list with the alias '{alias}' already exists.", param="alias")
    row = ValueList(call.state.new_id("rsl_"), call.state.now(), alias, name, item_type or "string", metadata)
    call.book.value_lists[row.id] = row
    return render_money_out.value_list(call.state, row, call.book)


def retrieve_value_list(call: Call, form: Form) -> Members:
    """One list."""
    form.done()
    row = found(call.book.value_lists, call.ids[0], "value list", param="value_list")
    return render_money_out.value_list(call.state, row, call.book)


def list_value_lists(call: Call, form: Form) -> Members:
    """Newest first."""
    alias, contains = form.text("alias"), form.text("contains")
    holders = {row.list for row in call.book.values.values() if row.value == contains}
    rows = {id: row for id, row in call.book.value_lists.items() if alias in (None, row.alias) and (contains is None or id in holders)}
    return listed(
        form,
        rows,
        lambda row: render_money_out.value_list(call.state, row, call.book),
        url="/v1/radar/value_lists",
        kind="value list",
        when=lambda row: row.created,
    )


def create_value_list_item(call: Call, form: Form) -> Members:
    """One more value; each value is on a list once."""
    value, name = form.need_text("value", LONGEST_VALUE), form.need_text("value_list")
    form.done()
    row = found(call.book.value_lists, name, "value list", param="value_list", status=400)
    shape = SHAPES.get(row.item_type)
    if shape is not None and not shape.match(value):
        raise invalid(f"The value `{value}` is not a valid {row.item_type}.", "value")
    if row.item_type != "case_sensitive_string":
        value = value.lower() if row.item_type in ("string", "email") else value
    if any(one.list == row.id and one.value == value for one in call.book.values.values()):
        raise Refusal(f"The value `{value}` already exists in this value list.", code="resource_already_exists", param="value")
    item = Value(call.state.new_id("rsli_"), call.state.now(), row.id, value)
    call.book.values[item.id] = item
    return render_money_out.value(call.state, item)


def retrieve_value_list_item(call: Call, form: Form) -> Members:
    """One value."""
    form.done()
    return render_money_out.value(call.state, found(call.book.values, call.ids[0], "value list item", param="item"))


def delete_value_list_item(call: Call, form: Form) -> Members:
    """The rules name it no more."""
    form.done()
    row = found(call.book.values, call.ids[0], "value list item", param="item")
    del call.book.values[row.id]
    return {"id": row.id, "object": "radar.value_list_item", "deleted": True}


def list_value_list_items(call: Call, form: Form) -> Members:
    """Of one list, newest first."""
    name, value = form.need_text("value_list"), form.text("value")
    found(call.book.value_lists, name, "value list", param="value_list", status=400)
    rows = {id: row for id, row in call.book.values.items() if row.list == name and value in (None, row.value)}
    return listed(
        form,
        rows,
        lambda row: render_money_out.value(call.state, row),
        url="/v1/radar/value_list_items",
        kind="value list item",
        when=lambda row: row.created,
    )
