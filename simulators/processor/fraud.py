"""Fraud: reviews of charges, and the lists of values that the fraud rules name."""

import re

from simulators.processor.call import (
    ApiCall,
    ApiNoun,
    CallForm,
    ProcessorRefusal,
    find_row,
    invalid_parameter,
    labelled_json,
    list_object,
    null_members,
    row_members,
)
from simulators.processor.state import Charge, JsonObject, ListValue, ProcessorState, Review, ValueList

VALUE_TYPES = (
    "account card_bin card_fingerprint case_sensitive_string country crypto_fingerprint customer_id email ip_address "
    "sepa_debit_fingerprint string us_bank_account_fingerprint"
)
VALUE_SHAPES = {
    "card_bin": re.compile(r"^[0-9]{6,8}$"),
    "country": re.compile(r"^[A-Za-z]{2}$"),
    "customer_id": re.compile(r"^cus_\w+$"),
    "account": re.compile(r"^acct_\w+$"),
    "email": re.compile(r"^[^@\s]*@?[^@\s]+\.[^@\s]+$"),
    "ip_address": re.compile(r"^[0-9a-fA-F.:/]{3,49}$"),
}
LIST_VALUE_LIMIT = 800
VALUES_IN_LIST = 10
REVIEWS = ApiNoun("review", "reviews", lambda book: book.reviews, lambda state, _, row: review_json(state, row))
VALUE_LISTS = ApiNoun(
    "value list",
    "radar/value_lists",
    lambda book: book.value_lists,
    lambda state, account, row: _value_list_json(state, account, row),
    "value_list",
    {"alias": "alias"},
)
LIST_VALUES = ApiNoun(
    "value list item",
    "radar/value_list_items",
    lambda book: book.values,
    lambda state, _, row: _list_value_json(state, row),
    "item",
    {"value": "value"},
)


def list_reviews(call: ApiCall, form: CallForm) -> JsonObject:
    return REVIEWS.list(call, form, lambda row: row.open)


def approve_review(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = REVIEWS.find(call)
    if not row.open:
        raise ProcessorRefusal("This review has already been closed.")
    close_review(call.state, call.account, row, "approved")
    return REVIEWS.answer(call, row)


def create_value_list(call: ApiCall, form: CallForm) -> JsonObject:
    alias, name = form.need_text("alias", 100), form.need_text("name", 100)
    item_type, metadata = form.choice("item_type", VALUE_TYPES.split()), form.metadata()
    form.done()
    if any(row.alias == alias for row in call.book.value_lists.values()):
        raise ProcessorRefusal(f"A value list with the alias '{alias}' already exists.", param="alias")
    row = ValueList(call.state.new_id("rsl_"), call.state.now(), alias, name, item_type or "string", metadata=metadata)
    return VALUE_LISTS.change(call, row)


def list_value_lists(call: ApiCall, form: CallForm) -> JsonObject:
    contains = form.text("contains")
    holders = {row.list for row in call.book.values.values() if row.value == contains}
    return VALUE_LISTS.list(call, form, lambda row: contains is None or row.id in holders)


def create_value_list_item(call: ApiCall, form: CallForm) -> JsonObject:
    """One more value; each value is on a list once."""
    value, name = form.need_text("value", LIST_VALUE_LIMIT), form.need_text("value_list")
    form.done()
    row = find_row(call.book.value_lists, name, "value list", param="value_list", status=400)
    shape = VALUE_SHAPES.get(row.item_type)
    if shape is not None and not shape.match(value):
        raise invalid_parameter(f"The value `{value}` is not a valid {row.item_type}.", "value")
    if row.item_type != "case_sensitive_string":
        value = value.lower() if row.item_type in ("string", "email") else value
    if any(one.list == row.id and one.value == value for one in call.book.values.values()):
        raise ProcessorRefusal(f"The value `{value}` already exists in this value list.", code="resource_already_exists", param="value")
    return LIST_VALUES.change(call, ListValue(call.state.new_id("rsli_"), call.state.now(), row.id, value))


def delete_value_list_item(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    row = LIST_VALUES.find(call)
    del call.book.values[row.id]
    return {"id": row.id, "object": "radar.value_list_item", "deleted": True}


def list_value_list_items(call: ApiCall, form: CallForm) -> JsonObject:
    name = form.need_text("value_list")
    find_row(call.book.value_lists, name, "value list", param="value_list", status=400)
    return LIST_VALUES.list(call, form, lambda row: row.list == name)


def open_review(state: ProcessorState, account: str, charge: str, *, quiet: bool = False) -> Review:
    """The fraud rules want a person to look at a charge. `quiet`: the caller tells of it."""
    book = state.book(account)
    row = find_row(book.charges, charge, "charge")
    review = Review(state.new_id("prv_"), state.now(), row.id, row.intent, ip_address="203.0.113.7", country=row.country)
    book.reviews[review.id] = review
    row.review = review.id
    if row.intent in book.intents:
        book.intents[row.intent].review = review.id
    if not quiet:
        REVIEWS.notify(state, account, review, "review.opened")
    return review


def close_review(state: ProcessorState, account: str, review: Review, reason: str) -> None:
    """Closes a review because its charge was approved, refunded or disputed."""
    review.open, review.reason, review.closed_reason = False, reason, reason
    book = state.book(account)
    book.charges[review.charge].review = None
    if review.intent in book.intents:
        book.intents[review.intent].review = None
    REVIEWS.notify(state, account, review, "review.closed")


def find_open_review(state: ProcessorState, account: str, charge: Charge) -> Review | None:
    review = state.book(account).reviews.get(charge.review or "")
    return review if review is not None and review.open else None


def review_json(state: ProcessorState, row: Review) -> JsonObject:
    place = {**null_members("city latitude longitude region"), "country": row.country}
    return {
        **row_members(row, "id charge closed_reason created ip_address open opened_reason reason"),
        "object": "review",
        "billing_zip": row.zip,
        "ip_address_location": place if row.country else None,
        "livemode": state.live,
        "payment_intent": row.intent,
        "session": None,
    }


def _value_list_json(state: ProcessorState, account: str, row: ValueList) -> JsonObject:
    values = [_list_value_json(state, one) for one in state.book(account).values.values() if one.list == row.id]
    newest = values[::-1][:VALUES_IN_LIST]
    return {
        **labelled_json(state, row, "radar.value_list", "id alias created item_type name"),
        "created_by": "platform@example.com",
        "list_items": list_object(newest, f"/v1/radar/value_list_items?value_list={row.id}", more=len(values) > VALUES_IN_LIST),
    }


def _list_value_json(state: ProcessorState, row: ListValue) -> JsonObject:
    return {
        **row_members(row, "id created value"),
        "object": "radar.value_list_item",
        "created_by": "platform@example.com",
        "livemode": state.live,
        "value_list": row.list,
    }
