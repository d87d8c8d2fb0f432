"""Calls about checkout sessions."""

from clients.sandbox.payments import render_shop
from clients.sandbox.payments.api_customers import present
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Session, SessionLine
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.news import tell_session
from clients.sandbox.payments.paying import apply_coupon, fits
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.render_shop import subtotal_of, total_of, usable

SHORTEST_SECONDS, LONGEST_SECONDS = 1800, 86_400
LEAST = {"gbp": 30, "dkk": 250, "nok": 300, "sek": 300, "huf": 17_500, "pln": 200, "czk": 1500, "mxn": 1000, "hkd": 400, "jpy": 50}
USUAL_LEAST = 50
MOST_LINES = 100
NOT_CONNECTED = (
    "Can only apply an application_fee when the request is made on behalf of another account (using an OAuth key, the Stripe-Account "
    "header, or the destination parameter)."
)


def create_session(call: Call, form: Form) -> Members:
    """A page on which one buyer pays once."""
    read_mode(form)
    lines = form.parts("line_items")
    if not lines:
        raise form.missing("line_items")
    if len(lines) > MOST_LINES:
        raise invalid(f"You may specify at most {MOST_LINES} line items.", "line_items")
    things = [read_line(call, part) for part in lines]
    if len({currency for _, currency in things}) > 1:
        raise invalid("All line items must be of one currency.", "line_items")
    row = new_session(call, form, things[0][1])
    row.lines = [line for line, _ in things]
    read_payment(call, form, row)
    read_discount(call, form, row)
    form.done()
    check_amounts(row)
    call.book.sessions[row.id] = row
    return shown(call, row, form)


def read_mode(form: Form) -> None:
    """Payments on a page of the processor's; nothing else is simulated."""
    mode, ui = form.choice("mode", ("payment", "setup", "subscription")), form.choice("ui_mode", ("hosted_page", "embedded_page", "form"))
    if mode is None:
        raise form.missing("mode")
    if mode != "payment" or ui not in (None, "hosted_page"):
        raise invalid("Only hosted pages for payments are simulated.", "ui_mode" if mode == "payment" else "mode")
    methods = form.texts("payment_method_types")
    if methods is not None:
        raise invalid("Received unknown parameter: payment_method_types", "payment_method_types", "parameter_unknown")


def new_session(call: Call, form: Form, currency: str) -> Session:
    """What is said of the page itself."""
    success = form.url("success_url")
    if success is None:
        raise form.missing("success_url")
    now = call.state.now()
    expires = form.integer("expires_at")
    if expires is not None and expires < now + SHORTEST_SECONDS:
        raise invalid("The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation.", "expires_at")
    if expires is not None and expires > now + LONGEST_SECONDS:
        raise invalid("The `expires_at` timestamp must be less than 24 hours from Checkout Session creation.", "expires_at")
    given = form.currency()
    if given not in (None, currency):
        raise invalid("The session's currency must be that of its line items.", "currency")
    prefix = "cs_live_" if call.state.live else "cs_test_"
    row = Session(call.state.new_id(prefix + "a1", 56), now, currency, success, expires or now + LONGEST_SECONDS)
    row.cancel_url, row.reference = form.url("cancel_url"), form.text("client_reference_id", 200)
    row.email, row.customer = form.email("customer_email"), form.text("customer")
    if row.customer is not None:
        if row.email is not None:
            raise invalid("You may only specify one of these parameters: customer, customer_email.", "customer_email")
        row.buyer_email = present(call, row.customer).email
    row.locale, row.submit_type = form.text("locale"), form.choice("submit_type", ("auto", "book", "donate", "pay"))
    row.metadata = form.metadata()
    form.choice("billing_address_collection", ("auto", "required"))
    form.choice("customer_creation", ("always", "if_required"))
    return row


def read_line(call: Call, part: Form) -> tuple[SessionLine, str]:
    """One thing, its price made for this page."""
    data, quantity = part.part("price_data"), part.integer("quantity", 1)
    if part.text("price") is not None:
        raise Refusal("No such price", code="resource_missing", param=part.at("price"), early=True)
    if data is None:
        raise part.missing("price_data")
    if quantity is None:
        raise part.missing("quantity")
    currency, amount = data.need_currency(), data.integer("unit_amount", 0)
    product = data.part("product_data")
    if product is None:
        raise data.missing("product_data")
    if amount is None:
        raise data.missing("unit_amount")
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


def read_payment(call: Call, form: Form, row: Session) -> None:
    """What is said of the payment."""
    data = form.part("payment_intent_data")
    if data is None:
        return
    row.fee_amount = data.integer("application_fee_amount", 0)
    if row.fee_amount is not None and not call.on_behalf:
        raise Refusal(NOT_CONNECTED, param="payment_intent_data[application_fee_amount]", early=True)
    row.intent_metadata, row.intent_description = data.metadata(), data.text("description", 1000)
    data.email("receipt_email")
    data.text("statement_descriptor", 22)
    data.text("statement_descriptor_suffix", 22)
    data.choice("capture_method", ("automatic", "automatic_async"))


def read_discount(call: Call, form: Form, row: Session) -> None:
    """Either a discount from the beginning, or codes that the buyer may type in."""
    row.promotions = form.flag("allow_promotion_codes") or False
    discounts = form.parts("discounts")
    if not discounts:
        return
    if row.promotions:
        raise invalid("You may only specify one of these parameters: allow_promotion_codes, discounts.", "allow_promotion_codes")
    if len(discounts) > 1:
        raise invalid("You may specify at most one discount.", "discounts")
    coupon, promotion = discounts[0].text("coupon"), discounts[0].text("promotion_code")
    if promotion is not None:
        one = found(call.book.promotions, promotion, "promotion code", param="discounts[0][promotion_code]", status=400)
        if not usable(call.state, one) or not fits(row, one):
            raise Refusal("This promotion code cannot be redeemed.", param="discounts[0][promotion_code]")
        row.promotion, coupon = one.id, one.coupon
    if coupon is None:
        raise discounts[0].missing("coupon")
    found(call.book.coupons, coupon, "coupon", param="discounts[0][coupon]", status=400)
    apply_coupon(call.state, call.account, row, coupon)


def check_amounts(row: Session) -> None:
    """Not less than the processor collects, and not less than the platform keeps."""
    total, least = total_of(row), LEAST.get(row.currency, USUAL_LEAST)
    if 0 < total < least:
        text = f"The Checkout Session's total amount due must add up to at least {least} minor units of {row.currency}."
        raise Refusal(text, code="amount_too_small", early=True)
    if row.fee_amount is not None and row.fee_amount > subtotal_of(row):
        raise Refusal(
            "The application fee cannot be larger than the total.", param="payment_intent_data[application_fee_amount]", early=True
        )


def shown(call: Call, row: Session, form: Form) -> Members:
    """As answered: the lines only where they were asked for."""
    answer = render_shop.session(call.state, row)
    if "line_items" in (form.texts("expand") or []):
        answer["line_items"] = render_shop.session_lines(call.state, row)
    return answer


def session_of(call: Call) -> Session:
    """The session of the path."""
    return found(call.book.sessions, call.ids[0], "checkout.session", param="session")


def retrieve_session(call: Call, form: Form) -> Members:
    """One session."""
    answer = shown(call, session_of(call), form)
    form.done()
    return answer


def list_session_lines(call: Call, form: Form) -> Members:
    """What is bought."""
    form.integer("limit", 1, 100)
    form.done()
    return render_shop.session_lines(call.state, session_of(call))


def expire_session(call: Call, form: Form) -> Members:
    """Nobody can pay there any more."""
    row = session_of(call)
    form.done()
    if row.status != "open":
        text = 'Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of `%s`.'
        raise Refusal(text % row.status)
    row.status = "expired"
    tell_session(call.state, call.account, row, "checkout.session.expired")
    return shown(call, row, form)


def list_sessions(call: Call, form: Form) -> Members:
    """Newest first."""
    status, intent = form.choice("status", ("complete", "expired", "open")), form.text("payment_intent")
    customer = form.text("customer")
    rows = {
        id: row
        for id, row in call.book.sessions.items()
        if status in (None, row.status) and intent in (None, row.intent) and customer in (None, row.customer)
    }
    return listed(
        form,
        rows,
        lambda row: render_shop.session(call.state, row),
        url="/v1/checkout/sessions",
        kind="checkout.session",
        when=lambda row: row.created,
    )
