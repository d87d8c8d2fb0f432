"""What the control API does to the state: people, banks and fraud rules, at a word."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from clients.sandbox.payments import acts, render_account, render_charge, render_invoice, render_money_out, render_shop
from clients.sandbox.payments import control_models as models
from clients.sandbox.payments.acts import Card
from clients.sandbox.payments.call import found
from clients.sandbox.payments.demo import demo_account
from clients.sandbox.payments.onboarding import attach, restrict_account
from clients.sandbox.payments.passing import settle_payout
from clients.sandbox.payments.paying import enter_promotion, find_session
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.state import State

M = TypeVar("M", bound=BaseModel)
Act: TypeAlias = Callable[[State, str, object], object]


def read(model: type[M], body: object) -> M:
    """What was told, or why it was not understood."""
    try:
        return model.model_validate({} if body is None else body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Refusal(f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}") from None


def counts(state: State, _id: str, _body: object) -> Members:
    """The state in numbers, and where each account stands."""
    return {
        "now": state.now(),
        "platform": state.platform,
        "client_id": state.client_id,
        "accounts": [account_line(state, id) for id in state.accounts if id != state.platform],
        "events": len(state.events),
        "hooks_waiting": len(state.pending) + len(state.hooks.waiting),
    }


def account_line(state: State, id: str) -> Members:
    """An account in one line."""
    account, book = state.accounts[id], state.book(id)
    kinds = {
        "charges": book.charges,
        "refunds": book.refunds,
        "payouts": book.payouts,
        "disputes": book.disputes,
        "invoices": book.invoices,
    }
    return {
        "id": id,
        "kind": account.kind,
        "connected": account.attached,
        "charges_enabled": account.charges_enabled,
        **{name: len(rows) for name, rows in kinds.items()},
    }


def inside(state: State, account: str) -> str:
    """An account that there is."""
    return found(state.accounts, account, "account", param="account").id


def charge(state: State, _id: str, body: object) -> Members:
    """A buyer's payment into an account; a declined one is a charge too."""
    told = read(models.NewCharge, body)
    account = inside(state, told.account)
    if told.fee > told.amount:
        raise Refusal("fee: must not be more than the amount")
    try:
        made = acts.make_charge(
            state,
            account,
            amount=told.amount,
            currency=told.currency.lower(),
            card=Card(models.NUMBERS[told.outcome], None, told.email),
            fee_amount=told.fee or None,
            metadata=told.metadata,
            description=told.description,
        ).id
    except Refusal as refusal:
        made = str(refusal.more.get("charge", ""))
        if not made:
            raise
    return render_charge.charge(state, state.book(account).charges[made])


def new_account(state: State, _id: str, body: object) -> Members:
    """A Standard account."""
    told = read(models.NewAccount, body)
    row = acts.open_standard_account(state, name=told.name, country=told.country, email=told.email)
    if told.connected:
        attach(state, row.id)
    return render_account.account(state, row)


def account_with_past(state: State, _id: str, body: object) -> Members:
    """An account with weeks of payments, to look at and to fill screens with."""
    told = read(models.NewPast, body)
    row = demo_account(state, email=told.email, country=told.country, name=told.name, days=told.days, told=told.told)
    return render_account.account(state, row)


def change_account(state: State, id: str, body: object) -> Members:
    """What its owner, its bank or the processor does."""
    told, row = read(models.AccountChange, body), state.accounts[inside(state, id)]
    if told.do == "authorize":
        return {"code": acts.authorize_oauth(state, id)}
    if told.do == "enable":
        acts.complete_onboarding(state, id)
    elif told.do == "restrict":
        restrict_account(state, id, told.due or None)
    elif told.do == "deauthorize":
        acts.release_account(state, id)
    else:
        row.bank_fails = told.do == "bank_fails"
    return render_account.account(state, row)


def dispute(state: State, _id: str, body: object) -> Members:
    """A payer's bank asks for the money back."""
    told = read(models.NewDispute, body)
    account = inside(state, told.account)
    row = acts.open_dispute(state, account, told.charge, told.reason, inquiry=told.inquiry, amount=told.amount)
    return render_money_out.dispute(state, row, state.book(account))


def end_dispute(state: State, id: str, body: object) -> Members:
    """The bank has decided."""
    told = read(models.DisputeEnd, body)
    account = inside(state, told.account)
    return render_money_out.dispute(state, acts.close_dispute(state, account, id, told.outcome), state.book(account))


def review(state: State, _id: str, body: object) -> Members:
    """The fraud rules want a person to look at a charge."""
    told = read(models.NewReview, body)
    return render_money_out.review(state, acts.open_review(state, inside(state, told.account), told.charge))


def end_payout(state: State, id: str, body: object) -> Members:
    """The bank has it, or sends it back."""
    told = read(models.PayoutEnd, body)
    end = settle_payout if told.status == "paid" else acts.fail_payout
    return render_money_out.payout(state, end(state, inside(state, told.account), id))


def pay_invoice(state: State, id: str, body: object) -> Members:
    """As its recipient does on its page; `id` is the invoice's."""
    told = read(models.Payment, body)
    for account, book in state.books.items():
        if id in book.invoices:
            acts.pay_invoice(state, account, id, Card(models.NUMBERS[told.outcome], None, told.email))
            return render_invoice.invoice(state, account, book.invoices[id])
    raise Refusal(f"No such invoice: '{id}'", status=404)


def pay_checkout(state: State, id: str, body: object) -> Members:
    """As the buyer does on its page; `id` is the session's."""
    told, where = read(models.Payment, body), find_session(state, id)
    if where is None:
        raise Refusal(f"No such checkout.session: '{id}'", status=404)
    account, session = where
    if told.promotion:
        enter_promotion(state, account, id, told.promotion)
    acts.complete_checkout(state, account, id, Card(models.NUMBERS[told.outcome], None, told.email))
    return render_shop.session(state, session)


def hooks(state: State, _id: str, _body: object) -> Members:
    """What waits to be told, and what was."""
    found = state.hooks
    return {
        "waiting": [*state.pending, *(one.event for one in found.waiting)],
        "told": [{"event": one.event, "type": kind_of(state, one.event), "at": int(one.at), "status": one.status} for one in found.told],
        "hold": found.held,
        "shuffle": found.shuffled,
        "double": found.doubled,
    }


def kind_of(state: State, event: str) -> object:
    """An event's type, as long as it is remembered."""
    return state.events[event]["type"] if event in state.events else None


def change_hooks(state: State, id: str, body: object) -> Members:
    """How events are told from now on."""
    told, known = read(models.HookChange, body), state.hooks
    known.held = known.held if told.hold is None else told.hold
    known.shuffled = known.shuffled if told.shuffle is None else told.shuffle
    known.doubled = known.doubled if told.double is None else told.double
    if told.redeliver is not None:
        known.add(str(found(state.events, told.redeliver, "event", param="redeliver")["id"]), state.at)
    return hooks(state, id, body)


def advance(state: State, _id: str, body: object) -> Members:
    """Time passes here and nowhere else; what falls due in it happens now."""
    told = read(models.ClockChange, body)
    state.offset += told.advance
    state.at += told.advance
    acts.catch_up(state)
    return {"now": state.now()}


ACTS: dict[tuple[str, str], Act] = {
    ("GET", "state"): counts,
    ("POST", "charges"): charge,
    ("POST", "accounts"): new_account,
    ("POST", "past"): account_with_past,
    ("POST", "accounts/{id}"): change_account,
    ("POST", "disputes"): dispute,
    ("POST", "disputes/{id}"): end_dispute,
    ("POST", "reviews"): review,
    ("POST", "payouts/{id}"): end_payout,
    ("POST", "invoices/{id}"): pay_invoice,
    ("POST", "checkouts/{id}"): pay_checkout,
    ("GET", "hooks"): hooks,
    ("POST", "hooks"): change_hooks,
    ("POST", "clock"): advance,
}
