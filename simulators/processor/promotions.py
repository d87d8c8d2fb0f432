"""Coupons and the codes for them: calls about them, and how they go over the wire."""

from simulators.processor.call import ApiCall, ApiNoun, CallForm, ProcessorRefusal, find_row, invalid_parameter, labelled_json, row_members
from simulators.processor.customers import find_customer
from simulators.processor.state import Coupon, JsonObject, ProcessorState, PromotionCode

COUPONS = ApiNoun("coupon", "coupons", lambda book: book.coupons, lambda state, _, row: _coupon_json(state, row), "coupon")
PROMOTIONS = ApiNoun(
    "promotion code",
    "promotion_codes",
    lambda book: book.promotions,
    lambda state, _, row: _promotion_json(state, row),
    "promotion_code",
    {"coupon": "coupon"},
)
PROMOTION_CODE_LIMIT = 500
PROMOTION_CODE_LETTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


def create_coupon(call: ApiCall, form: CallForm) -> JsonObject:
    percent, amount, currency = form.number("percent_off"), form.integer("amount_off", 1), form.currency()
    if (percent is None) == (amount is None):
        raise invalid_parameter("You must pass either `percent_off` or `amount_off`, and not both.", "percent_off", "parameter_missing")
    if percent is not None and not (0 < percent <= 100 and percent == round(percent, 2)):
        raise invalid_parameter("Percent off must be a number greater than 0 and at most 100, with at most two decimals.", "percent_off")
    if amount is not None and currency is None:
        raise invalid_parameter("You must pass `currency` when passing `amount_off`", "currency", "parameter_missing")
    id, duration = form.text("id", 200), form.choice("duration", ("forever", "once", "repeating"))
    months, limit = form.integer("duration_in_months", 1), form.integer("max_redemptions", 1)
    if (duration == "repeating") != (months is not None):
        raise invalid_parameter("`duration_in_months` goes with a `duration` of `repeating`, and only with it.", "duration_in_months")
    name, until, metadata = form.text("name", 40), form.integer("redeem_by"), form.metadata()
    form.done()
    if until is not None and until <= call.state.now():
        raise ProcessorRefusal("`redeem_by` must be in the future.", param="redeem_by", early=True)
    if id is not None and id in call.book.coupons:
        raise ProcessorRefusal("Coupon already exists.", code="resource_already_exists")
    off = None if percent is None else float(percent)
    row = Coupon(id or call.state.new_id("", 8), call.state.now(), duration or "once", months, off, amount, currency, name)
    row.max_redemptions, row.redeem_by, row.metadata = limit, until, metadata
    return COUPONS.change(call, row, "coupon.created")


def create_promotion(call: ApiCall, form: CallForm) -> JsonObject:
    """A code; among those that are active, each is there once, whatever its case."""
    given = form.need("promotion", form.part("promotion"))
    given.need("type", given.choice("type", ("coupon",)))
    coupon = given.need_text("coupon")
    code, customer = form.text("code", PROMOTION_CODE_LIMIT), form.text("customer")
    if code is not None and not PROMOTION_CODE_LETTERS.issuperset(code):
        raise invalid_parameter("Promotion codes may hold letters, digits and dashes only.", "code")
    row = PromotionCode("", call.state.now(), code or "", coupon, active=form.flag("active") is not False, customer=customer)
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
    _check_promotion(call, row)
    row.id, row.code = call.state.new_id("promo_"), row.code or call.state.new_id("promotion", 8).removeprefix("promotion").upper()
    return PROMOTIONS.change(call, row, "promotion_code.created")


def _check_promotion(call: ApiCall, row: PromotionCode) -> None:
    coupon = find_row(call.book.coupons, row.coupon, "coupon", param="promotion[coupon]", status=400)
    if row.customer is not None:
        find_customer(call, row.customer)
    if row.expires_at is not None and row.expires_at <= call.state.now():
        raise ProcessorRefusal("`expires_at` must be in the future.", param="expires_at", early=True)
    if row.expires_at is not None and coupon.redeem_by is not None and row.expires_at > coupon.redeem_by:
        raise ProcessorRefusal("`expires_at` cannot be after the coupon's `redeem_by`.", param="expires_at", early=True)
    if row.max_redemptions is not None and coupon.max_redemptions is not None and row.max_redemptions > coupon.max_redemptions:
        raise ProcessorRefusal("`max_redemptions` cannot be larger than the coupon's.", param="max_redemptions", early=True)
    taken = {one.code.lower() for one in call.book.promotions.values() if promotion_usable(call.state, one)}
    if row.active and row.code and row.code.lower() in taken:
        raise ProcessorRefusal(
            f"An active promotion code with `code: {row.code}` already exists.", code="resource_already_exists", param="code"
        )


def update_promotion(call: ApiCall, form: CallForm) -> JsonObject:
    row = PROMOTIONS.find(call)
    active, metadata = form.flag("active"), form.metadata(row.metadata)
    form.done()
    row.active, row.metadata = row.active if active is None else active, metadata
    return PROMOTIONS.change(call, row, "promotion_code.updated")


def list_promotions(call: ApiCall, form: CallForm) -> JsonObject:
    """Codes by `code` (whatever its case), and whether they can be used now."""
    code, active = form.text("code"), form.flag("active")

    def fits(row: PromotionCode) -> bool:
        return (code is None or row.code.lower() == code.lower()) and active in (None, promotion_usable(call.state, row))

    return PROMOTIONS.list(call, form, fits)


def _coupon_json(state: ProcessorState, row: Coupon) -> JsonObject:
    used_up = row.max_redemptions is not None and row.times_redeemed >= row.max_redemptions
    over = row.redeem_by is not None and row.redeem_by <= state.now()
    return {
        **labelled_json(state, row, "coupon", "id amount_off created currency duration duration_in_months max_redemptions name"),
        **row_members(row, "percent_off redeem_by times_redeemed"),
        "valid": not (used_up or over or row.deleted),
    }


def _promotion_json(state: ProcessorState, row: PromotionCode) -> JsonObject:
    return {
        **labelled_json(state, row, "promotion_code", "id code created customer expires_at max_redemptions times_redeemed"),
        "active": promotion_usable(state, row),
        "customer_account": None,
        "promotion": {"coupon": row.coupon, "type": "coupon"},
        "restrictions": {
            "first_time_transaction": row.first_time,
            "minimum_amount": row.minimum_amount,
            "minimum_amount_currency": row.minimum_currency,
        },
    }


def promotion_usable(state: ProcessorState, row: PromotionCode) -> bool:
    """Whether the code can be used now."""
    used_up = row.max_redemptions is not None and row.times_redeemed >= row.max_redemptions
    over = row.expires_at is not None and row.expires_at <= state.now()
    return row.active and not used_up and not over
