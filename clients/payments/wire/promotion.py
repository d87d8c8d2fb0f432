"""Promotion codes on the wire."""

from clients.payments.fields import Json, id_of, inner, is_so, text
from clients.payments.records import PromotionCode


def promotion_of(found: Json) -> PromotionCode:
    """A code and the coupon behind it, which the wire has one level deeper than it once did."""
    return PromotionCode(
        id=id_of(found), coupon=id_of(inner(found, "promotion"), "coupon"), code=text(found, "code"), active=is_so(found, "active")
    )
