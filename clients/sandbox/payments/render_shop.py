"""Checkout sessions, coupons and promotion codes, as they go over the wire."""

from clients.sandbox.payments.call import nulls, page
from clients.sandbox.payments.entities import Coupon, Promotion, Session, SessionLine
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.state import State


def subtotal_of(row: Session) -> int:
    """Before any discount."""
    return sum(line["unit_amount"] * line["quantity"] for line in row.lines)


def total_of(row: Session) -> int:
    """What the buyer pays."""
    return subtotal_of(row) - row.discount


def session(state: State, row: Session) -> Members:
    """A page on which one buyer pays."""
    is_open = row.status == "open"
    return {
        "id": row.id,
        "object": "checkout.session",
        "adaptive_pricing": {"enabled": False},
        "after_expiration": None,
        "allow_promotion_codes": row.promotions or None,
        "amount_subtotal": subtotal_of(row),
        "amount_total": total_of(row),
        "automatic_tax": {"enabled": False, "liability": None, "provider": None, "status": None},
        "billing_address_collection": None,
        "cancel_url": row.cancel_url,
        "client_reference_id": row.reference,
        "client_secret": None,
        "collected_information": nulls("business_name individual_name shipping_details"),
        **nulls("consent consent_collection"),
        "created": row.created,
        "currency": row.currency,
        "currency_conversion": None,
        "custom_fields": [],
        "custom_text": nulls("after_submit shipping_address submit terms_of_service_acceptance"),
        **customer(row),
        "discounts": [{"coupon": row.coupon, "promotion_code": row.promotion}] if row.coupon else [],
        "expires_at": row.expires_at,
        "invoice": None,
        "invoice_creation": {"enabled": False, "invoice_data": no_invoice()},
        "livemode": state.live,
        "locale": row.locale,
        "metadata": dict(row.metadata),
        "mode": "payment",
        "origin_context": None,
        **payment(row),
        "permissions": None,
        "phone_number_collection": {"enabled": False},
        **nulls("recovered_from saved_payment_method_options setup_intent shipping_address_collection shipping_cost"),
        "shipping_options": [],
        "status": row.status,
        "submit_type": row.submit_type,
        "subscription": None,
        "success_url": row.success_url,
        "total_details": {"amount_discount": row.discount, "amount_shipping": 0, "amount_tax": 0},
        "ui_mode": "hosted_page",
        "url": f"{state.pages_url}/checkout/{row.id}" if is_open else None,
        "wallet_options": None,
    }


def customer(row: Session) -> Members:
    """Who buys."""
    return {
        "customer": row.customer,
        "customer_account": None,
        "customer_creation": None if row.customer else "if_required",
        "customer_details": buyer(row),
        "customer_email": row.email,
    }


def payment(row: Session) -> Members:
    """How it is paid, and whether it was."""
    return {
        "payment_intent": row.intent,
        "payment_link": None,
        "payment_method_collection": "if_required",
        "payment_method_configuration_details": None,
        "payment_method_options": {"card": {"request_three_d_secure": "automatic"}},
        "payment_method_types": ["card"],
        "payment_status": row.payment_status,
    }


def no_invoice() -> Members:
    """What an invoice of it would hold."""
    return {**nulls("account_tax_ids custom_fields description footer issuer rendering_options"), "metadata": {}}


def buyer(row: Session) -> Members | None:
    """Who pays, as far as that is known."""
    email = row.buyer_email or row.email
    if email is None and row.status != "complete":
        return None
    return {
        **nulls("address business_name individual_name phone"),
        "email": email,
        "name": row.buyer_name,
        "tax_exempt": "none",
        "tax_ids": [] if row.status == "complete" else None,
    }


def session_lines(state: State, row: Session) -> Members:
    """What is bought."""
    return page([session_line(state, row, one) for one in row.lines], f"/v1/checkout/sessions/{row.id}/line_items")


def session_line(state: State, row: Session, one: SessionLine) -> Members:
    """One thing; a discount is shown on the first."""
    subtotal = one["unit_amount"] * one["quantity"]
    discount = row.discount if one is row.lines[0] else 0
    return {
        "id": one["id"],
        "object": "item",
        "adjustable_quantity": None,
        "amount_discount": discount,
        "amount_subtotal": subtotal,
        "amount_tax": 0,
        "amount_total": subtotal - discount,
        "currency": row.currency,
        "description": one["description"] or one["name"],
        "metadata": {},
        "price": price(state, row, one),
        "quantity": one["quantity"],
    }


def price(state: State, row: Session, one: SessionLine) -> Members:
    """The price that was made for this line alone."""
    return {
        "id": one["price"],
        "object": "price",
        "active": False,
        "billing_scheme": "per_unit",
        "created": row.created,
        "currency": row.currency,
        "custom_unit_amount": None,
        "livemode": state.live,
        "lookup_key": None,
        "metadata": {},
        "nickname": None,
        "product": one["product"],
        "recurring": None,
        "tax_behavior": "unspecified",
        **nulls("tiers_mode transform_quantity"),
        "type": "one_time",
        "unit_amount": one["unit_amount"],
        "unit_amount_decimal": str(one["unit_amount"]),
    }


def coupon(state: State, row: Coupon) -> Members:
    """Money off."""
    used_up = row.max_redemptions is not None and row.times_redeemed >= row.max_redemptions
    over = row.redeem_by is not None and row.redeem_by <= state.now()
    return {
        "id": row.id,
        "object": "coupon",
        "amount_off": row.amount_off,
        "created": row.created,
        "currency": row.currency,
        "duration": row.duration,
        "duration_in_months": row.duration_in_months,
        "livemode": state.live,
        "max_redemptions": row.max_redemptions,
        "metadata": dict(row.metadata),
        "name": row.name,
        "percent_off": row.percent_off,
        "redeem_by": row.redeem_by,
        "times_redeemed": row.times_redeemed,
        "valid": not (used_up or over or row.deleted),
    }


def promotion(state: State, row: Promotion) -> Members:
    """A code that buyers type in."""
    return {
        "id": row.id,
        "object": "promotion_code",
        "active": usable(state, row),
        "code": row.code,
        "created": row.created,
        "customer": row.customer,
        "customer_account": None,
        "expires_at": row.expires_at,
        "livemode": state.live,
        "max_redemptions": row.max_redemptions,
        "metadata": dict(row.metadata),
        "promotion": {"coupon": row.coupon, "type": "coupon"},
        "restrictions": {
            "first_time_transaction": row.first_time,
            "minimum_amount": row.minimum_amount,
            "minimum_amount_currency": row.minimum_currency,
        },
        "times_redeemed": row.times_redeemed,
    }


def usable(state: State, row: Promotion) -> bool:
    """It may be typed in now."""
    used_up = row.max_redemptions is not None and row.times_redeemed >= row.max_redemptions
    over = row.expires_at is not None and row.expires_at <= state.now()
    return row.active and not used_up and not over
