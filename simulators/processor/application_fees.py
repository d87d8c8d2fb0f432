"""Application fees: what the platform keeps of a connected account's charge, and gives back with a refund."""

from simulators.processor.balance import book_transaction
from simulators.processor.call import ApiCall, CallForm, find_row, list_page
from simulators.processor.entities import ApplicationFee, Charge, FeeRefund, JsonObject
from simulators.processor.state import ProcessorState, emit_event


def application_fee_json(state: ProcessorState, row: ApplicationFee) -> JsonObject:
    """What the platform kept."""
    given = [one for one in state.book(state.platform).fee_refunds.values() if one.fee == row.id]
    refunds: JsonObject = {
        "object": "list",
        "data": [fee_refund_json(one) for one in reversed(given)][:10],
        "has_more": len(given) > 10,
        "url": f"/v1/application_fees/{row.id}/refunds",
    }
    return {
        "id": row.id,
        "object": "application_fee",
        "account": row.account,
        "amount": row.amount,
        "amount_refunded": row.amount_refunded,
        "application": state.client_id,
        "balance_transaction": row.txn,
        "charge": row.charge,
        "created": row.created,
        "currency": row.currency,
        "fee_source": {"charge": row.charge, "type": "charge"},
        "livemode": state.live,
        "originating_transaction": None,
        "refunded": row.amount_refunded == row.amount,
        "refunds": refunds,
    }


def fee_refund_json(row: FeeRefund) -> JsonObject:
    """A part of it that went back."""
    return {
        "id": row.id,
        "object": "fee_refund",
        "amount": row.amount,
        "balance_transaction": row.txn,
        "created": row.created,
        "currency": row.currency,
        "fee": row.fee,
        "metadata": {},
    }


def find_call_fee(call: ApiCall) -> ApplicationFee:
    """The fee of the path; the platform's own."""
    return find_row(call.book.fees, call.ids[0], "application_fee")


def retrieve_application_fee(call: ApiCall, form: CallForm) -> JsonObject:
    """One fee."""
    form.done()
    return application_fee_json(call.state, find_call_fee(call))


def list_application_fees(call: ApiCall, form: CallForm) -> JsonObject:
    """Newest first, of all connected accounts."""
    charge = form.text("charge")
    rows = {id: row for id, row in call.book.fees.items() if charge in (None, row.charge)}
    return list_page(
        form,
        rows,
        lambda row: application_fee_json(call.state, row),
        url="/v1/application_fees",
        kind="application_fee",
        when=lambda row: row.created,
    )


def list_fee_refunds(call: ApiCall, form: CallForm) -> JsonObject:
    """Of one fee, newest first."""
    fee = find_call_fee(call)
    rows = {id: row for id, row in call.book.fee_refunds.items() if row.fee == fee.id}
    url = f"/v1/application_fees/{fee.id}/refunds"
    return list_page(form, rows, fee_refund_json, url=url, kind="fee_refund", when=lambda row: row.created)


def keep_application_fee(state: ProcessorState, account: str, charge: Charge, rests: int) -> None:
    """The platform's part of a connected account's charge."""
    fee = ApplicationFee(state.new_id("fee_"), state.now(), account, charge.id, charge.fee_amount or 0, charge.currency)
    platform = state.platform
    txn = book_transaction(state, platform, amount=fee.amount, currency=fee.currency, type="application_fee", source=fee.id, rests=rests)
    fee.txn, charge.fee = txn.id, fee.id
    state.book(platform).fees[fee.id] = fee
    emit_event(state, "application_fee.created", application_fee_json(state, fee), platform)


def refund_application_fee(state: ProcessorState, account: str, charge: Charge) -> None:
    """In proportion to all that was refunded so far; nothing is lost or won by rounding."""
    platform = state.book(state.platform)
    fee = platform.fees.get(charge.fee or "")
    if fee is None:
        return
    amount = fee.amount * charge.amount_refunded // charge.amount - fee.amount_refunded
    if amount <= 0:
        return
    given = FeeRefund(state.new_id("fr_"), state.now(), fee.id, amount, fee.currency)
    txn = book_transaction(state, state.platform, amount=-amount, currency=fee.currency, type="application_fee_refund", source=given.id)
    given.txn = txn.id
    platform.fee_refunds[given.id] = given
    fee.amount_refunded += amount
    book_transaction(state, account, amount=amount, currency=fee.currency, type="application_fee_refund", source=given.id)
    emit_event(state, "application_fee.refunded", application_fee_json(state, fee), state.platform)
