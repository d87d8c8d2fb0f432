"""Reviews and value lists of the fraud rules on the wire."""

from clients.payments.fields import Json, count, id_of, id_or_none, is_so, term, text
from clients.payments.records import Review, ValueList, ValueListItem


def review_of(found: Json) -> Review:
    """A charge that waits for a person's look."""
    return Review(
        id=id_of(found),
        open=is_so(found, "open"),
        reason=term(found, "reason"),
        charge=id_or_none(found, "charge"),
        payment_intent=id_or_none(found, "payment_intent"),
        created=count(found, "created"),
    )


def value_list_of(found: Json) -> ValueList:
    """A list that the fraud rules name."""
    return ValueList(
        id=id_of(found),
        alias=term(found, "alias"),
        name=text(found, "name"),
        item_type=term(found, "item_type"),
        created=count(found, "created"),
    )


def value_list_item_of(found: Json) -> ValueListItem:
    """One value of it."""
    return ValueListItem(id_of(found), id_of(found, "value_list"), text(found, "value"), count(found, "created"))
