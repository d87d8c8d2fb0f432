"""Tokens that open an order. A buyer names an order by one; whoever shows a credential, by its number or by any token it ever had."""

from registry.ids import ORDER_NUMBER, ORDER_TOKEN, ORDER_TOKEN_PREFIX, Ids
from registry.policy import key_spellings
from storage.engine.connection import Connection
from storage.issuance import IssuanceRow, find_issuance_spelled
from storage.orders import OrderDetail, find_order_detail, insert_access, order_of_token


def new_order_token(connection: Connection, *, ids: Ids, order: str, now: float) -> str:
    """A token that opens the order with the number `order`. It is nowhere but in what is returned."""
    token = ids.secret(ORDER_TOKEN_PREFIX)
    insert_access(connection, order=order, token=token, now=now)
    return token


def find_opened_order(connection: Connection, *, named: str) -> OrderDetail | None:
    """What somebody without a credential sees: the order of a token that was not ended. A number opens nothing."""
    number = order_of_token(connection, token=named) if ORDER_TOKEN.fullmatch(named) else None
    return None if number is None else find_order_detail(connection, order=number)


def find_known_order(connection: Connection, *, named: str) -> OrderDetail | None:
    """What the holder of the storefront key sees: the order with this number, or of any token that it ever had."""
    number = order_number_of(connection, named=named)
    return find_order_detail(connection, order=number) if ORDER_NUMBER.fullmatch(number) else None


def order_number_of(connection: Connection, *, named: str) -> str:
    """The number where a token of an order is named, an ended one included; else `named` as it is.

    Only for callers that may name the order by its number: to them a token opens nothing more.
    """
    found = order_of_token(connection, token=named, ended=True) if ORDER_TOKEN.fullmatch(named) else None
    return named if found is None else found


def find_issuance_named(connection: Connection, *, organisation: str, named: str) -> IssuanceRow | None:
    """The organisation's row of the issuance ledger: by its key in any spelling, and by the id that its order had before it had a
    number."""
    keys = key_spellings(named)
    return find_issuance_spelled(connection, organisation=organisation, keys=(*keys, order_number_of(connection, named=keys[-1])))
