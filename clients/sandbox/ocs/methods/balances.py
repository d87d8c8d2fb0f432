"""Balances changed by hand: never below zero, always logged."""

from typing import Literal, NamedTuple

from clients.sandbox.ocs.entities import Account, Line, Refused, Reseller, Token, Transaction
from clients.sandbox.ocs.params import Fields, flag, integer, money, text
from clients.sandbox.ocs.resolve import find_account, find_reseller, nested_line
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING

READ_ONLY = 12


class Change(NamedTuple):
    """What is asked for, in micro-euro."""

    amount: int
    replace: bool
    description: str


def read_change(fields: Fields) -> Change:
    """The members that all three methods share."""
    amount, replace = fields.need("amount", money), fields.maybe("setBalance", flag) or False
    return Change(amount, replace, fields.maybe("description", text) or "")


def apply(world: World, owner: Literal["reseller", "account", "line"], record: Reseller | Account | Line, change: Change) -> None:
    """Change the balance; a result below zero is zero."""
    before = record.balance
    record.balance = max(0, change.amount if change.replace else before + change.amount)
    row = Transaction(world.now, owner, record.id, record.balance - before, record.balance, change.description)
    world.transactions.append(row)


def modify_account_balance(world: World, caller: Token, params: object) -> object:
    """An account's balance. Choice: an account that only takes packages has none to change."""
    fields = Fields(params)
    change, number = read_change(fields), fields.need("accountId", integer)
    fields.done()
    account = find_account(world, caller, number)
    if account.package_only:
        raise Refused(READ_ONLY, "the account only takes packages")
    apply(world, "account", account, change)
    return NOTHING


def modify_reseller_balance(world: World, caller: Token, params: object) -> object:
    """A reseller's balance. Choice: a reseller that has a parent cannot change its own."""
    fields = Fields(params)
    change, number = read_change(fields), fields.need("resellerId", integer)
    fields.need("type", text)
    fields.done()
    reseller = find_reseller(world, caller, number)
    if reseller.id == caller.reseller_id and reseller.parent_id in world.resellers:
        raise Refused(READ_ONLY, "only the parent reseller may change this balance")
    apply(world, "reseller", reseller, change)
    return NOTHING


def modify_subscriber_balance(world: World, caller: Token, params: object) -> object:
    """A line's balance."""
    fields = Fields(params)
    change = read_change(fields)
    apply(world, "line", nested_line(world, caller, fields), change)
    return NOTHING
