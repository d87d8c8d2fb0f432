"""Forgetting a buyer: their address, on orders and in mails that wait. What was paid, and which eSIM was drawn, stays."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.mail import MAIL
from storage.shop.orders import ORDER
from storage.statement import Command, Query


class Erased(NamedTuple):
    """An order or a top-up that is nobody's in particular from now on."""

    id: str
    top_up_of: str | None


class SealedMail(NamedTuple):
    """A mail that waits."""

    id: str
    sealed: str


ERASE = Query(
    Erased,
    sa.update(ORDER)
    .where(
        ORDER.c.storefront == sa.bindparam("shop"),
        ORDER.c.organisation == sa.bindparam("of"),
        ORDER.c.email == sa.bindparam("address"),
    )
    .values(email=None)
    .returning(ORDER.c.id, ORDER.c.top_up_of),
)
WAITING = Query(SealedMail, sa.select(MAIL.c.id, MAIL.c.sealed))
DROP = Command(sa.delete(MAIL).where(MAIL.c.id == sa.bindparam("mail")))


def erase_address(connection: Connection, *, storefront: str, organisation: str, email: str) -> list[Erased]:
    """The rows that had the address."""
    return connection.all(ERASE, shop=storefront, of=organisation, address=email)


def sealed_mails(connection: Connection) -> list[SealedMail]:
    """Every mail that waits, whosever: only what is inside tells to whom it goes."""
    return connection.all(WAITING)


def withdraw_mail(connection: Connection, *, mail: str) -> None:
    """It is not sent any more."""
    connection.run(DROP, mail=mail)
