"""How an organisation's account at the payment processor stands, from the processor's word for it."""

from typing import Literal

from clients.payments.records import Account
from storage.connection import Connection
from storage.money.connect import forget_account, write_status


def status_of(account: Account) -> Literal["pending", "active"]:
    """Active: its owner has told the processor everything it needs, and it takes payments.

    Choice: an account whose payouts alone are held back stays active, since its invoices can be paid; `payouts_enabled` says the rest.
    """
    return "active" if account.details_submitted and account.charges_enabled else "pending"


def kind_of(account: Account) -> Literal["express", "standard"]:
    """Whether the service made the account, or its owner brought it: what is no Express account has pages of its own at the processor."""
    return "express" if account.kind == "express" else "standard"


def take_account(connection: Connection, *, account: Account, as_of: float, now: float) -> None:
    """Keep what the processor says of an account, unless something newer is known. One that nobody has changes nothing."""
    write_status(connection, account=account.id, status=status_of(account), as_of=as_of, now=now)


def detach(connection: Connection, *, account: str, as_of: float, now: float) -> None:
    """Its owner has let the service out of it: the organisation has no account any more, and may connect another."""
    forget_account(connection, account=account, as_of=as_of, now=now)
