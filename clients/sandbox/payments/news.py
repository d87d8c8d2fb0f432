"""Events about one thing each, with that thing as it is now."""

from clients.sandbox.payments import render_account, render_charge, render_invoice, render_money_out, render_shop
from clients.sandbox.payments.entities import Charge, Dispute, Intent, Invoice, Payout, Refund, Session
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.state import State, emit


def tell_account(state: State, account: str, type: str = "account.updated", previous: Members | None = None) -> None:
    """About a connected account."""
    emit(state, type, render_account.account(state, state.accounts[account]), account, previous)


def tell_charge(state: State, account: str, row: Charge, type: str, previous: Members | None = None) -> None:
    """About an attempt at a payment."""
    emit(state, type, render_charge.charge(state, row), account, previous)


def tell_intent(state: State, account: str, row: Intent, type: str) -> None:
    """About a payment."""
    emit(state, type, render_charge.intent(state, row), account)


def tell_refund(state: State, account: str, row: Refund, *types: str) -> None:
    """About money given back."""
    for type in types:
        emit(state, type, render_charge.refund(state, row), account)


def tell_payout(state: State, account: str, row: Payout, *types: str) -> None:
    """About money sent to a bank."""
    for type in types:
        emit(state, type, render_money_out.payout(state, row), account)


def tell_dispute(state: State, account: str, row: Dispute, type: str) -> None:
    """About money that a payer's bank asks for."""
    emit(state, type, render_money_out.dispute(state, row, state.book(account)), account)


def tell_invoice(state: State, account: str, row: Invoice, *types: str) -> None:
    """About an invoice."""
    for type in types:
        emit(state, type, render_invoice.invoice(state, account, row), account)


def tell_session(state: State, account: str, row: Session, type: str) -> None:
    """About a checkout."""
    emit(state, type, render_shop.session(state, row), account)
