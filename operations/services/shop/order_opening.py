"""Who gets to an order by what they name: a buyer by a token, whoever shows a credential by the number, or by a token of before."""

from registry.idempotency_key import spellings
from registry.ids import Ids
from registry.order_numbers import IS_NUMBER, IS_TOKEN, TOKEN
from storage.connection import Connection
from storage.issuing.issuance import IssuanceRow, find_spelled
from storage.shop.order_access import insert_access, order_of_token
from storage.shop.order_lists import WholeOrder, whole_order


def new_token(connection: Connection, *, ids: Ids, order: str, now: float) -> str:
    """A token that opens the order with the number `order`. It is nowhere but in what is returned."""
    token = ids.secret(TOKEN)
    insert_access(connection, order=order, token=token, now=now)
    return token


def opened_order(connection: Connection, *, named: str) -> WholeOrder | None:
    """What somebody without a credential sees: the order of a token that was not ended. A number opens nothing."""
    number = order_of_token(connection, token=named) if IS_TOKEN.fullmatch(named) else None
    return None if number is None else whole_order(connection, order=number)


def known_order(connection: Connection, *, named: str) -> WholeOrder | None:
    """What the holder of the storefront key sees: the order with this number, or of any token that it ever had."""
    number = number_of(connection, named=named)
    return whole_order(connection, order=number) if IS_NUMBER.fullmatch(number) else None


def number_of(connection: Connection, *, named: str) -> str:
    """The number where a token of an order is named, an ended one included; else `named` as it is.

    Only for callers that may name the order by its number: to them a token opens nothing more.
    """
    found = order_of_token(connection, token=named, ended=True) if IS_TOKEN.fullmatch(named) else None
    return named if found is None else found


def issuance_named(connection: Connection, *, organisation: str, named: str) -> IssuanceRow | None:
    """The organisation's row of the issuance ledger: by its key in any spelling, and by the id that its order had before it had a
    number."""
    keys = spellings(named)
    return find_spelled(connection, organisation=organisation, keys=(*keys, number_of(connection, named=keys[-1])))
