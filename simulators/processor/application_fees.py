"""Application fees: what the platform keeps of a connected account's charge, and gives back with a refund."""

from simulators.processor.balance import book_transaction
from simulators.processor.call import USUAL_LIST_LENGTH, ApiCall, ApiNoun, CallForm, list_object, list_page, row_members
from simulators.processor.state import ApplicationFee, Charge, FeeRefund, JsonObject, ProcessorState

APPLICATION_FEES = ApiNoun(
    "application_fee",
    "application_fees",
    lambda book: book.fees,
    lambda state, _, row: _application_fee_json(state, row),
    filters={"charge": "charge"},
)


def _application_fee_json(state: ProcessorState, row: ApplicationFee) -> JsonObject:
    given = [one for one in state.book(state.platform).fee_refunds.values() if one.fee == row.id]
    newest = [_fee_refund_json(one) for one in reversed(given)][:USUAL_LIST_LENGTH]
    refunds = list_object(newest, f"/v1/application_fees/{row.id}/refunds", more=len(given) > USUAL_LIST_LENGTH)
    return {
        **row_members(row, "id account amount amount_refunded charge created currency"),
        "object": "application_fee",
        "application": state.client_id,
        "balance_transaction": row.txn,
        "fee_source": {"charge": row.charge, "type": "charge"},
        "livemode": state.live,
        "originating_transaction": None,
        "refunded": row.amount_refunded == row.amount,
        "refunds": refunds,
    }


def _fee_refund_json(row: FeeRefund) -> JsonObject:
    return {
        **row_members(row, "id amount created currency fee"),
        "object": "fee_refund",
        "balance_transaction": row.txn,
        "metadata": {},
    }


def list_fee_refunds(call: ApiCall, form: CallForm) -> JsonObject:
    fee = APPLICATION_FEES.find(call)
    rows = {id: row for id, row in call.book.fee_refunds.items() if row.fee == fee.id}
    url = f"/v1/application_fees/{fee.id}/refunds"
    return list_page(form, rows, _fee_refund_json, url=url, kind="fee_refund", when=lambda row: row.created)


def keep_application_fee(state: ProcessorState, account: str, charge: Charge, rests: int) -> None:
    """Books the platform's fee of a connected account's charge."""
    fee = ApplicationFee(state.new_id("fee_"), state.now(), account, charge.id, charge.fee_amount or 0, charge.currency)
    platform = state.platform
    txn = book_transaction(state, platform, amount=fee.amount, currency=fee.currency, type="application_fee", source=fee.id, rests=rests)
    fee.txn, charge.fee = txn.id, fee.id
    state.book(platform).fees[fee.id] = fee
    APPLICATION_FEES.notify(state, platform, fee, "application_fee.created")


def refund_application_fee(state: ProcessorState, account: str, charge: Charge) -> None:
    """Gives the fee back in proportion to all refunds of the charge so far, so that rounding adds up."""
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
    APPLICATION_FEES.notify(state, state.platform, fee, "application_fee.refunded")
