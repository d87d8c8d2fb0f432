"""The balance of an account: the sum of its transactions, the newest of which cannot be paid out for some days; calls about it."""

from typing import NamedTuple

from simulators.processor.call import ApiCall, ApiNoun, CallForm, null_members, row_members
from simulators.processor.state import PROCESSOR_DAY_SECONDS, BalanceTransaction, JsonObject, ProcessorState

TRANSACTIONS = ApiNoun(
    "balance transaction",
    "balance_transactions",
    lambda book: book.txns,
    lambda state, _, row: balance_transaction_json(state, row),
    filters={"source": "source", "type": "type"},
)


class BalanceFunds(NamedTuple):
    """The funds of one currency, in minor units."""

    available: int
    pending: int


def book_transaction(
    state: ProcessorState,
    account: str,
    *,
    amount: int,
    currency: str,
    type: str,
    source: str,
    fee: int = 0,
    application_fee: int = 0,
    rests: int = 0,
) -> BalanceTransaction:
    """Book one movement; it counts as available after `rests` days."""
    txn = BalanceTransaction(
        id=state.new_id("txn_"),
        created=state.now(),
        amount=amount,
        currency=currency,
        fee=fee,
        application_fee=application_fee,
        available_on=state.now() + rests * PROCESSOR_DAY_SECONDS,
        type=type,
        source=source,
    )
    state.book(account).txns[txn.id] = txn
    return txn


def account_funds(state: ProcessorState, account: str) -> dict[str, BalanceFunds]:
    """The funds by currency. The account's own currency comes first, even without funds."""
    owner = state.accounts[account]
    sums: dict[str, BalanceFunds] = {owner.currency: BalanceFunds(0, 0)}
    for txn in state.book(account).txns.values():
        available, pending = sums.get(txn.currency, BalanceFunds(0, 0))
        net = txn.amount - txn.fee
        rests = txn.available_on > state.now()
        sums[txn.currency] = BalanceFunds(available, pending + net) if rests else BalanceFunds(available + net, pending)
    return sums


def balance_transaction_json(state: ProcessorState, row: BalanceTransaction) -> JsonObject:
    own = row.fee - row.application_fee
    details: list[JsonObject] = []
    if row.application_fee:
        details.append(_fee_detail_json(row, row.application_fee, "application_fee", state.client_id))
    if own:
        details.append(_fee_detail_json(row, own, "stripe_fee", None))
    return {
        **row_members(row, "id amount available_on created currency fee source type"),
        "object": "balance_transaction",
        "balance_type": "payments",
        **null_members("description exchange_rate"),
        "fee_details": details,
        "net": row.amount - row.fee,
        "reporting_category": "dispute" if row.type == "adjustment" else row.type,
        "status": "pending" if row.available_on > state.now() else "available",
    }


def _fee_detail_json(row: BalanceTransaction, amount: int, type: str, application: str | None) -> JsonObject:
    words = "Application fee" if application else "Processing fees"
    return {"amount": amount, "application": application, "currency": row.currency, "description": words, "type": type}


def _balance_json(state: ProcessorState, account: str) -> JsonObject:
    sums = account_funds(state, account)

    def amounts(place: int) -> list[JsonObject]:
        rows: list[tuple[str, BalanceFunds]] = sorted(sums.items())
        return [{"amount": one[place], "currency": currency, "source_types": {"card": one[place]}} for currency, one in rows]

    found: JsonObject = {"object": "balance", "available": amounts(0), "livemode": state.live, "pending": amounts(1)}
    if account == state.platform:
        found["connect_reserved"] = [{"amount": 0, "currency": currency} for currency in sorted(sums)]
    return found


def list_balance_transactions(call: ApiCall, form: CallForm) -> JsonObject:
    currency = form.currency()
    form.text("payout")
    return TRANSACTIONS.list(call, form, lambda row: currency in (None, row.currency))


def retrieve_balance(call: ApiCall, form: CallForm) -> JsonObject:
    form.done()
    return _balance_json(call.state, call.account)
