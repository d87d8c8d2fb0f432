"""Checkout sessions: the calls about them, the buyer's payment, and how they go over the wire."""

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
from simulators.processor.cards import SimulatedCard
from simulators.processor.charges import PAYMENT_INTENTS, attempt_payment, make_payment_intent
from simulators.processor.customers import find_customer
from simulators.processor.promotions import promotion_usable
from simulators.processor.state import CheckoutSession, JsonObject, PaymentIntent, ProcessorState, PromotionCode, SessionLine

SESSIONS = ApiNoun(
    "checkout.session",
    "checkout/sessions",
    lambda book: book.sessions,
    lambda state, _, row: session_json(state, row),
    "session",
    {"status": "status", "payment_intent": "intent", "customer": "customer"},
    {"status": ("complete", "expired", "open")},
)
SHORTEST_SESSION_SECONDS, LONGEST_SESSION_SECONDS = 1800, 86_400
LEAST_AMOUNTS = {"gbp": 30, "dkk": 250, "nok": 300, "sek": 300, "huf": 17_500, "pln": 200, "czk": 1500, "mxn": 1000, "hkd": 400, "jpy": 50}
USUAL_LEAST_AMOUNT = 50
SESSION_LINE_LIMIT = 100

SESSION_FEE_REFUSED = (
    "Can only apply an application_fee when the request is made on behalf of another account (using an OAuth key, the Stripe-Account "
    "header, or the destination parameter)."
)


def create_session(call: ApiCall, form: CallForm) -> JsonObject:
    """Creates a page on which one buyer pays once."""
    read_session_mode(form)
    lines = form.parts("line_items")
    if not lines:
        raise form.missing("line_items")
    if len(lines) > SESSION_LINE_LIMIT:
        raise invalid_parameter(f"You may specify at most {SESSION_LINE_LIMIT} line items.", "line_items")
    things = [_read_session_line(call, part) for part in lines]
    if len({currency for _, currency in things}) > 1:
        raise invalid_parameter("All line items must be of one currency.", "line_items")
    row = _make_session(call, form, things[0][1])
    row.lines = [line for line, _ in things]
    _read_session_payment(call, form, row)
    read_session_discount(call, form, row)
    form.done()
    check_session_amounts(row)
    call.book.sessions[row.id] = row
    return session_answer(call, row, form)


def read_session_mode(form: CallForm) -> None:
    """Refuses everything but payments on a hosted page: nothing else is simulated."""
    mode, ui = form.choice("mode", ("payment", "setup", "subscription")), form.choice("ui_mode", ("hosted_page", "embedded_page", "form"))
    if form.need("mode", mode) != "payment" or ui not in (None, "hosted_page"):
        raise invalid_parameter("Only hosted pages for payments are simulated.", "ui_mode" if mode == "payment" else "mode")
    methods = form.texts("payment_method_types")
    if methods is not None:
        raise invalid_parameter("Received unknown parameter: payment_method_types", "payment_method_types", "parameter_unknown")


def _make_session(call: ApiCall, form: CallForm, currency: str) -> CheckoutSession:
    success = form.need("success_url", form.url("success_url"))
    now = call.state.now()
    expires = form.integer("expires_at")
    if expires is not None and expires < now + SHORTEST_SESSION_SECONDS:
        raise invalid_parameter("The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation.", "expires_at")
    if expires is not None and expires > now + LONGEST_SESSION_SECONDS:
        raise invalid_parameter("The `expires_at` timestamp must be less than 24 hours from Checkout Session creation.", "expires_at")
    given = form.currency()
    if given not in (None, currency):
        raise invalid_parameter("The session's currency must be that of its line items.", "currency")
    prefix = "cs_live_" if call.state.live else "cs_test_"
    row = CheckoutSession(call.state.new_id(prefix + "a1", 56), now, currency, success, expires or now + LONGEST_SESSION_SECONDS)
    row.cancel_url, row.reference = form.url("cancel_url"), form.text("client_reference_id", 200)
    row.email, row.customer = form.email("customer_email"), form.text("customer")
    if row.customer is not None:
        if row.email is not None:
            raise invalid_parameter("You may only specify one of these parameters: customer, customer_email.", "customer_email")
        row.buyer_email = find_customer(call, row.customer).email
    row.locale, row.submit_type = form.text("locale"), form.choice("submit_type", ("auto", "book", "donate", "pay"))
    row.metadata = form.metadata()
    form.choice("billing_address_collection", ("auto", "required"))
    form.choice("customer_creation", ("always", "if_required"))
    return row


def _read_session_line(call: ApiCall, part: CallForm) -> tuple[SessionLine, str]:
    data, quantity = part.part("price_data"), part.integer("quantity", 1)
    if part.text("price") is not None:
        raise ProcessorRefusal("No such price", code="resource_missing", param=part.at("price"), early=True)
    data, quantity = part.need("price_data", data), part.need("quantity", quantity)
    currency, amount = data.need_currency(), data.integer("unit_amount", 0)
    product, amount = data.need("product_data", data.part("product_data")), data.need("unit_amount", amount)
    name, description = product.need_text("name"), product.text("description")
    product.metadata()
    product.text("tax_code")
    data.choice("tax_behavior", ("exclusive", "inclusive", "unspecified"))
    ids = call.state
    line = SessionLine(
        id=ids.new_id("li_"),
        price=ids.new_id("price_"),
        product=ids.new_id("prod_", 14),
        name=name,
        description=description,
        unit_amount=amount,
        quantity=quantity,
    )
    return line, currency


def _read_session_payment(call: ApiCall, form: CallForm, row: CheckoutSession) -> None:
    data = form.part("payment_intent_data")
    if data is None:
        return
    row.fee_amount = data.integer("application_fee_amount", 0)
    if row.fee_amount is not None and not call.on_behalf:
        raise ProcessorRefusal(SESSION_FEE_REFUSED, param="payment_intent_data[application_fee_amount]", early=True)
    row.intent_metadata, row.intent_description = data.metadata(), data.text("description", 1000)
    data.email("receipt_email")
    data.text("statement_descriptor", 22)
    data.text("statement_descriptor_suffix", 22)
    data.choice("capture_method", ("automatic", "automatic_async"))


def read_session_discount(call: ApiCall, form: CallForm, row: CheckoutSession) -> None:
    """Reads either a discount of the session, or whether the buyer may type in codes."""
    row.promotions = form.flag("allow_promotion_codes") or False
    discounts = form.parts("discounts")
    if not discounts:
        return
    if row.promotions:
        raise invalid_parameter("You may only specify one of these parameters: allow_promotion_codes, discounts.", "allow_promotion_codes")
    if len(discounts) > 1:
        raise invalid_parameter("You may specify at most one discount.", "discounts")
    coupon, promotion = discounts[0].text("coupon"), discounts[0].text("promotion_code")
    if promotion is not None:
        one = find_row(call.book.promotions, promotion, "promotion code", param="discounts[0][promotion_code]", status=400)
        if not promotion_usable(call.state, one) or not _promotion_fits(row, one):
            raise ProcessorRefusal("This promotion code cannot be redeemed.", param="discounts[0][promotion_code]")
        row.promotion, coupon = one.id, one.coupon
    coupon = discounts[0].need("coupon", coupon)
    find_row(call.book.coupons, coupon, "coupon", param="discounts[0][coupon]", status=400)
    _apply_coupon(call.state, call.account, row, coupon)


def check_session_amounts(row: CheckoutSession) -> None:
    """Refuses a total below the least amount of the currency, and an application fee above the total."""
    total, least = session_total(row), LEAST_AMOUNTS.get(row.currency, USUAL_LEAST_AMOUNT)
    if 0 < total < least:
        text = f"The Checkout Session's total amount due must add up to at least {least} minor units of {row.currency}."
        raise ProcessorRefusal(text, code="amount_too_small", early=True)
    if row.fee_amount is not None and row.fee_amount > _session_subtotal(row):
        raise ProcessorRefusal(
            "The application fee cannot be larger than the total.", param="payment_intent_data[application_fee_amount]", early=True
        )


def session_answer(call: ApiCall, row: CheckoutSession, form: CallForm) -> JsonObject:
    """The session as an answer; its lines only where `expand` asks for them."""
    answer = session_json(call.state, row)
    if "line_items" in (form.texts("expand") or []):
        answer["line_items"] = _session_lines_json(call.state, row)
    return answer


def retrieve_session(call: ApiCall, form: CallForm) -> JsonObject:
    answer = session_answer(call, SESSIONS.find(call), form)
    form.done()
    return answer


def list_session_lines(call: ApiCall, form: CallForm) -> JsonObject:
    form.integer("limit", 1, 100)
    form.done()
    return _session_lines_json(call.state, SESSIONS.find(call))


def expire_session(call: ApiCall, form: CallForm) -> JsonObject:
    row = SESSIONS.find(call)
    form.done()
    if row.status != "open":
        text = 'Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of `%s`.'
        raise ProcessorRefusal(text % row.status)
    row.status = "expired"
    SESSIONS.notify(call.state, call.account, row, "checkout.session.expired")
    return session_answer(call, row, form)


def find_checkout_session(state: ProcessorState, session: str) -> tuple[str, CheckoutSession] | None:
    """The account and the session of a checkout page's address."""
    for account, book in state.books.items():
        if session in book.sessions:
            return account, book.sessions[session]
    return None


def enter_promotion(state: ProcessorState, account: str, session: str, code: str) -> PromotionCode:
    """Applies a code that the buyer typed in. Raises ProcessorRefusal for a code that cannot be used."""
    book = state.book(account)
    row = find_row(book.sessions, session, "checkout.session")
    promotion = next((one for one in book.promotions.values() if one.code.lower() == code.lower() and promotion_usable(state, one)), None)
    if not row.promotions or promotion is None or not _promotion_fits(row, promotion):
        raise ProcessorRefusal("This code is invalid.", param="promotion_code")
    _apply_coupon(state, account, row, promotion.coupon)
    row.promotion = promotion.id
    return promotion


def _promotion_fits(row: CheckoutSession, promotion: PromotionCode) -> bool:
    least = promotion.minimum_amount
    return least is None or (promotion.minimum_currency == row.currency and _session_subtotal(row) >= least)


def _apply_coupon(state: ProcessorState, account: str, row: CheckoutSession, coupon: str) -> None:
    found_coupon = state.book(account).coupons[coupon]
    total = _session_subtotal(row)
    if found_coupon.amount_off is not None:
        if found_coupon.currency != row.currency:
            raise ProcessorRefusal("This code is invalid.", param="promotion_code")
        row.discount = min(total, found_coupon.amount_off)
    else:
        hundredths = round((found_coupon.percent_off or 0) * 100)
        row.discount = (total * hundredths + 5000) // 10_000
    row.coupon = coupon


def complete_checkout(state: ProcessorState, account: str, session: str, card: SimulatedCard | None) -> CheckoutSession:
    """The buyer pays; no card is needed where nothing is to be paid. A declined card raises ProcessorRefusal (402): it stays open."""
    book = state.book(account)
    row = find_row(book.sessions, session, "checkout.session")
    if row.status != "open":
        raise ProcessorRefusal(f"This Checkout Session is {row.status}.")
    if session_total(row) > 0:
        if card is None:
            raise ProcessorRefusal(
                "Your card number is incomplete.", status=402, type="card_error", code="incorrect_number", param="number"
            )
        attempt_payment(state, account, session_intent(state, account, row), card)
        row.payment_status = "paid"
    else:
        row.payment_status = "no_payment_required"
    _redeem_discount(state, account, row)
    row.status = "complete"
    row.buyer_email, row.buyer_name = row.email or (card and card.email), card and card.name
    SESSIONS.notify(state, account, row, "checkout.session.completed")
    return row


def session_intent(state: ProcessorState, account: str, row: CheckoutSession) -> PaymentIntent:
    """The payment of a session, which is made when the buyer first tries to pay."""
    book = state.book(account)
    intent = book.intents.get(row.intent or "")
    if intent is None:
        intent = make_payment_intent(
            state, account, amount=session_total(row), currency=row.currency, fee_amount=row.fee_amount, metadata=row.intent_metadata
        )
        intent.customer, intent.description = row.customer, row.intent_description
        row.intent = intent.id
        PAYMENT_INTENTS.notify(state, account, intent, "payment_intent.created")
    intent.amount = session_total(row)
    intent.fee_amount = None if row.fee_amount is None else min(row.fee_amount, intent.amount)
    return intent


def _redeem_discount(state: ProcessorState, account: str, row: CheckoutSession) -> None:
    book = state.book(account)
    if row.coupon is not None:
        book.coupons[row.coupon].times_redeemed += 1
    if row.promotion is not None:
        book.promotions[row.promotion].times_redeemed += 1


def _session_subtotal(row: CheckoutSession) -> int:
    return sum(line["unit_amount"] * line["quantity"] for line in row.lines)


def session_total(row: CheckoutSession) -> int:
    return _session_subtotal(row) - row.discount


def session_json(state: ProcessorState, row: CheckoutSession) -> JsonObject:
    is_open = row.status == "open"
    return {
        **labelled_json(state, row, "checkout.session", "id cancel_url created currency customer expires_at locale payment_status"),
        **row_members(row, "status submit_type success_url"),
        "adaptive_pricing": {"enabled": False},
        **null_members("after_expiration billing_address_collection client_secret consent consent_collection currency_conversion"),
        **null_members("customer_account invoice origin_context payment_link payment_method_configuration_details permissions"),
        **null_members("recovered_from saved_payment_method_options setup_intent shipping_address_collection shipping_cost subscription"),
        **null_members("wallet_options"),
        "allow_promotion_codes": row.promotions or None,
        "amount_subtotal": _session_subtotal(row),
        "amount_total": session_total(row),
        "automatic_tax": {"enabled": False, "liability": None, "provider": None, "status": None},
        "client_reference_id": row.reference,
        "collected_information": null_members("business_name individual_name shipping_details"),
        "custom_fields": [],
        "custom_text": null_members("after_submit shipping_address submit terms_of_service_acceptance"),
        "customer_creation": None if row.customer else "if_required",
        "customer_details": _session_buyer_json(row),
        "customer_email": row.email,
        "discounts": [{"coupon": row.coupon, "promotion_code": row.promotion}] if row.coupon else [],
        "invoice_creation": {
            "enabled": False,
            "invoice_data": {**null_members("account_tax_ids custom_fields description footer issuer rendering_options"), "metadata": {}},
        },
        "mode": "payment",
        "payment_intent": row.intent,
        "payment_method_collection": "if_required",
        "payment_method_options": {"card": {"request_three_d_secure": "automatic"}},
        "payment_method_types": ["card"],
        "phone_number_collection": {"enabled": False},
        "shipping_options": [],
        "total_details": {"amount_discount": row.discount, "amount_shipping": 0, "amount_tax": 0},
        "ui_mode": "hosted_page",
        "url": f"{state.pages_url}/checkout/{row.id}" if is_open else None,
    }


def _session_buyer_json(row: CheckoutSession) -> JsonObject | None:
    email = row.buyer_email or row.email
    if email is None and row.status != "complete":
        return None
    return {
        **null_members("address business_name individual_name phone"),
        "email": email,
        "name": row.buyer_name,
        "tax_exempt": "none",
        "tax_ids": [] if row.status == "complete" else None,
    }


def _session_lines_json(state: ProcessorState, row: CheckoutSession) -> JsonObject:
    return list_object([session_line_json(state, row, one) for one in row.lines], f"/v1/checkout/sessions/{row.id}/line_items")


def session_line_json(state: ProcessorState, row: CheckoutSession, one: SessionLine) -> JsonObject:
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
        "price": session_price_json(state, row, one),
        "quantity": one["quantity"],
    }


def session_price_json(state: ProcessorState, row: CheckoutSession, one: SessionLine) -> JsonObject:
    """The price that was made for this line alone."""
    return {
        "id": one["price"],
        "object": "price",
        "active": False,
        "billing_scheme": "per_unit",
        "created": row.created,
        "currency": row.currency,
        **null_members("custom_unit_amount lookup_key nickname recurring tiers_mode transform_quantity"),
        "livemode": state.live,
        "metadata": {},
        "product": one["product"],
        "tax_behavior": "unspecified",
        "type": "one_time",
        "unit_amount": one["unit_amount"],
        "unit_amount_decimal": str(one["unit_amount"]),
    }
