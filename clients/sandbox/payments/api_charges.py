"""Calls about charges, their payments, fees and the balance's movements."""

from clients.sandbox.payments import render_charge
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Fee
from clients.sandbox.payments.form import Form
from clients.sandbox.payments.refusal import Members, Refusal


def retrieve_charge(call: Call, form: Form) -> Members:
    """One charge."""
    form.done()
    return render_charge.charge(call.state, found(call.book.charges, call.ids[0], "charge"))


def update_charge(call: Call, form: Form) -> Members:
    """The account's words about it."""
    row = found(call.book.charges, call.ids[0], "charge")
    metadata, description = form.metadata(row.metadata), form.text("description")
    form.done()
    row.metadata, row.description = metadata, description or row.description
    return render_charge.charge(call.state, row)


def list_charges(call: Call, form: Form) -> Members:
    """Newest first, also those that failed."""
    customer, intent = form.text("customer"), form.text("payment_intent")
    rows = {
        id: row
        for id, row in call.book.charges.items()
        if (customer is None or row.customer == customer) and (intent is None or row.intent == intent)
    }
    return listed(
        form, rows, lambda row: render_charge.charge(call.state, row), url="/v1/charges", kind="charge", when=lambda row: row.created
    )


def retrieve_payment_intent(call: Call, form: Form) -> Members:
    """One payment."""
    form.text("client_secret")
    form.done()
    return render_charge.intent(call.state, found(call.book.intents, call.ids[0], "payment_intent", param="intent"))


def list_payment_intents(call: Call, form: Form) -> Members:
    """Newest first."""
    customer = form.text("customer")
    rows = {id: row for id, row in call.book.intents.items() if customer in (None, row.customer)}
    return listed(
        form,
        rows,
        lambda row: render_charge.intent(call.state, row),
        url="/v1/payment_intents",
        kind="payment_intent",
        when=lambda row: row.created,
    )


def fee_of(call: Call) -> Fee:
    """The fee of the path; the platform's own."""
    return found(call.book.fees, call.ids[0], "application_fee")


def retrieve_application_fee(call: Call, form: Form) -> Members:
    """One fee."""
    form.done()
    return render_charge.fee(call.state, fee_of(call))


def list_application_fees(call: Call, form: Form) -> Members:
    """Newest first, of all connected accounts."""
    charge = form.text("charge")
    rows = {id: row for id, row in call.book.fees.items() if charge in (None, row.charge)}
    return listed(
        form,
        rows,
        lambda row: render_charge.fee(call.state, row),
        url="/v1/application_fees",
        kind="application_fee",
        when=lambda row: row.created,
    )


def list_fee_refunds(call: Call, form: Form) -> Members:
    """Of one fee, newest first."""
    fee = fee_of(call)
    rows = {id: row for id, row in call.book.fee_refunds.items() if row.fee == fee.id}
    url = f"/v1/application_fees/{fee.id}/refunds"
    return listed(form, rows, render_charge.fee_refund, url=url, kind="fee_refund", when=lambda row: row.created)


def retrieve_balance_transaction(call: Call, form: Form) -> Members:
    """One movement."""
    form.done()
    return render_charge.txn(call.state, found(call.book.txns, call.ids[0], "balance transaction"))


def list_balance_transactions(call: Call, form: Form) -> Members:
    """Newest first."""
    source, type, currency = form.text("source"), form.text("type"), form.currency()
    form.text("payout")
    rows = {
        id: row
        for id, row in call.book.txns.items()
        if source in (None, row.source) and type in (None, row.type) and currency in (None, row.currency)
    }
    return listed(
        form,
        rows,
        lambda row: render_charge.txn(call.state, row),
        url="/v1/balance_transactions",
        kind="balance transaction",
        when=lambda row: row.created,
    )


def list_events(call: Call, form: Form) -> Members:
    """What happened in the account, newest first; in the platform's, its own events."""
    type, types = form.text("type"), form.texts("types")
    form.flag("delivery_success")
    if type is not None and types is not None:
        raise Refusal("You may only specify one of these parameters: type, types.", param="type", early=True)
    own = None if not call.on_behalf else call.account
    rows = {
        id: event
        for id, event in call.state.events.items()
        if event.get("account") == own and fits(str(event["type"]), [type] if type else types)
    }
    return listed(form, rows, dict, url="/v1/events", kind="event", when=lambda event: int(str(event["created"])))


def fits(type: str, wanted: list[str] | None) -> bool:
    """Of one of the types; the last part may be *."""
    if wanted is None:
        return True
    return any(one == type or (one.endswith(".*") and type.startswith(one[:-1])) for one in wanted)


def retrieve_event(call: Call, form: Form) -> Members:
    """One event of the account."""
    form.done()
    event = call.state.events.get(call.ids[0])
    if event is None or event.get("account") != (call.account if call.on_behalf else None):
        raise Refusal(f"No such event: '{call.ids[0]}'", status=404, code="resource_missing", param="id", early=True)
    return dict(event)
