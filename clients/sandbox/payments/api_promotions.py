"""Calls about coupons and the codes for them."""

from decimal import Decimal

from clients.sandbox.payments import render_shop
from clients.sandbox.payments.api_customers import present
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Coupon, Promotion
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.render_shop import usable
from clients.sandbox.payments.state import emit

LONGEST_CODE = 500
CODE_ALPHABET = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


def create_coupon(call: Call, form: Form) -> Members:
    """Either per cent or an amount."""
    percent, amount, currency = form.number("percent_off"), form.integer("amount_off", 1), form.currency()
    if (percent is None) == (amount is None):
        raise invalid("You must pass either `percent_off` or `amount_off`, and not both.", "percent_off", "parameter_missing")
    if percent is not None and not (0 < percent <= 100 and percent == round(percent, 2)):
        raise invalid("Percent off must be a number greater than 0 and at most 100, with at most two decimals.", "percent_off")
    if amount is not None and currency is None:
        raise invalid("You must pass `currency` when passing `amount_off`", "currency", "parameter_missing")
    id, duration = form.text("id", 200), form.choice("duration", ("forever", "once", "repeating"))
    months, limit = form.integer("duration_in_months", 1), form.integer("max_redemptions", 1)
    if (duration == "repeating") != (months is not None):
        raise invalid("`duration_in_months` goes with a `duration` of `repeating`, and only with it.", "duration_in_months")
    name, until, metadata = form.text("name", 40), form.integer("redeem_by"), form.metadata()
    form.done()
    if until is not None and until <= call.state.now():
        raise Refusal("`redeem_by` must be in the future.", param="redeem_by", early=True)
    if id is not None and id in call.book.coupons:
        raise Refusal("Coupon already exists.", code="resource_already_exists")
    row = Coupon(id or call.state.new_id("", 8), call.state.now(), duration or "once", months, as_float(percent), amount, currency, name)
    row.max_redemptions, row.redeem_by, row.metadata = limit, until, metadata
    call.book.coupons[row.id] = row
    emit(call.state, "coupon.created", render_shop.coupon(call.state, row), call.account)
    return render_shop.coupon(call.state, row)


def as_float(percent: Decimal | None) -> float | None:
    """As it is on the wire."""
    return None if percent is None else float(percent)


def retrieve_coupon(call: Call, form: Form) -> Members:
    """One coupon."""
    form.done()
    return render_shop.coupon(call.state, found(call.book.coupons, call.ids[0], "coupon", param="coupon"))


def list_coupons(call: Call, form: Form) -> Members:
    """Newest first."""
    return listed(
        form,
        call.book.coupons,
        lambda row: render_shop.coupon(call.state, row),
        url="/v1/coupons",
        kind="coupon",
        when=lambda row: row.created,
    )


def create_promotion(call: Call, form: Form) -> Members:
    """A code; among those that are active, each is there once, whatever its case."""
    given = form.part("promotion")
    if given is None:
        raise form.missing("promotion")
    kind, coupon = given.choice("type", ("coupon",)), given.text("coupon")
    if kind is None or coupon is None:
        raise given.missing("type" if kind is None else "coupon")
    code, customer = form.text("code", LONGEST_CODE), form.text("customer")
    if code is not None and not CODE_ALPHABET.issuperset(code):
        raise invalid("Promotion codes may hold letters, digits and dashes only.", "code")
    row = Promotion("", call.state.now(), code or "", coupon, active=form.flag("active") is not False, customer=customer)
    row.max_redemptions, row.expires_at = form.integer("max_redemptions", 1), form.integer("expires_at")
    restrictions = form.part("restrictions")
    if restrictions is not None:
        row.first_time = restrictions.flag("first_time_transaction") or False
        row.minimum_amount, row.minimum_currency = (
            restrictions.integer("minimum_amount", 1),
            restrictions.currency("minimum_amount_currency"),
        )
    row.metadata = form.metadata()
    form.done()
    check_promotion(call, row)
    row.id, row.code = call.state.new_id("promo_"), row.code or call.state.new_id("promotion", 8).removeprefix("promotion").upper()
    call.book.promotions[row.id] = row
    emit(call.state, "promotion_code.created", render_shop.promotion(call.state, row), call.account)
    return render_shop.promotion(call.state, row)


def check_promotion(call: Call, row: Promotion) -> None:
    """It fits its coupon, its time and its neighbours."""
    coupon = found(call.book.coupons, row.coupon, "coupon", param="promotion[coupon]", status=400)
    if row.customer is not None:
        present(call, row.customer)
    if row.expires_at is not None and row.expires_at <= call.state.now():
        raise Refusal("`expires_at` must be in the future.", param="expires_at", early=True)
    if row.expires_at is not None and coupon.redeem_by is not None and row.expires_at > coupon.redeem_by:
        raise Refusal("`expires_at` cannot be after the coupon's `redeem_by`.", param="expires_at", early=True)
    if row.max_redemptions is not None and coupon.max_redemptions is not None and row.max_redemptions > coupon.max_redemptions:
        raise Refusal("`max_redemptions` cannot be larger than the coupon's.", param="max_redemptions", early=True)
    taken = {one.code.lower() for one in call.book.promotions.values() if usable(call.state, one)}
    if row.active and row.code and row.code.lower() in taken:
        raise Refusal(f"An active promotion code with `code: {row.code}` already exists.", code="resource_already_exists", param="code")


def retrieve_promotion(call: Call, form: Form) -> Members:
    """One code."""
    form.done()
    row = found(call.book.promotions, call.ids[0], "promotion code", param="promotion_code")
    return render_shop.promotion(call.state, row)


def update_promotion(call: Call, form: Form) -> Members:
    """Switch it on or off."""
    row = found(call.book.promotions, call.ids[0], "promotion code", param="promotion_code")
    active, metadata = form.flag("active"), form.metadata(row.metadata)
    form.done()
    row.active, row.metadata = row.active if active is None else active, metadata
    emit(call.state, "promotion_code.updated", render_shop.promotion(call.state, row), call.account)
    return render_shop.promotion(call.state, row)


def list_promotions(call: Call, form: Form) -> Members:
    """Newest first."""
    code, coupon, active = form.text("code"), form.text("coupon"), form.flag("active")
    rows = {
        id: row
        for id, row in call.book.promotions.items()
        if (code is None or row.code.lower() == code.lower()) and coupon in (None, row.coupon) and active in (None, usable(call.state, row))
    }
    return listed(
        form,
        rows,
        lambda row: render_shop.promotion(call.state, row),
        url="/v1/promotion_codes",
        kind="promotion code",
        when=lambda row: row.created,
    )
