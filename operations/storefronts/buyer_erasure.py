"""Erasing a buyer: what we keep of a person goes, what was sold stays."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.people.addresses import Email, normal
from operations.services.people.letters import open_letter
from registry.errors import NotFound
from registry.limits import Role, Scope
from registry.model import Input
from registry.operation import Example, operation
from registry.order_numbers import IS_TOKEN
from storage.connection import Connection
from storage.secrets.sealing import Keyring
from storage.shop.buyer_erasure import SealedMail, erase_address, sealed_mails, withdraw_mail
from storage.shop.order_access import token_digest, token_digests
from storage.shop.storefronts import Storefront, find_storefront


class BuyerToErase(Input):
    """Whom to forget, in which shop."""

    id: Annotated[str, Field(max_length=64, description="Storefront id, sf_...")]
    email: Email


class BuyerErased(TypedDict):
    """How many orders and top-ups had the address."""

    object: Literal["storefront.erasure"]
    storefront: Annotated[str, Field(description="sf_...")]
    erased: int


async def own_shop(ctx: Ctx, params: BuyerToErase) -> Storefront:
    """A shop of the organisation's; another's is not found."""
    shop = await ctx.deps.store.read(find_storefront, storefront=params.id, organisation=ctx.organisation)
    if shop is None:
        raise NotFound("Your organisation has no storefront with this id", param="id", hint="list_storefronts names yours")
    return shop


SHOP = "sf_01k0a8w7zv6q4k3m2n1p0r9s8t"


@operation(
    "POST",
    "/v1/storefronts/{id}/erase-buyer",
    scope=Scope.ANY,
    role=Role.ADMIN,
    tool=False,
    confirm=True,
    access=own_shop,
    title="Erase buyer",
    raises=[NotFound],
    examples=[
        Example(
            "A buyer asks to be forgotten",
            {"id": SHOP, "email": "ada@example.com"},
            {"object": "storefront.erasure", "storefront": SHOP, "erased": 2},
        )
    ],
)
async def erase_buyer(ctx: Ctx, params: BuyerToErase, shop: Storefront) -> BuyerErased:
    """Erase a buyer's address from all orders of a storefront. It cannot be undone.

    Needs the role admin, on any tier. `erased` counts orders and top-ups; 0: the shop knows no such buyer.

    The address is all that we keep of a buyer. It goes from orders, from top-ups and from mails that wait to be sent, and no further
    mail is sent to it, about an order that is on its way either. Amounts, plans, times, eSIM records and refunds stay, for your books
    and because the eSIM goes on working: whoever has the order's link still sees it. Not in our hands, and not erased: what the
    payment processor holds of the payment in your own account there (address, name, card, receipts), which you erase there; mails
    that were sent; what you entered on the line yourself at the charging system; and backups of the database, until they expire.
    """
    del shop
    address = normal(params.email)
    return await ctx.settle_result(erase, storefront=params.id, organisation=ctx.organisation, email=address, keyring=ctx.deps.keyring)


def erase(connection: Connection, *, storefront: str, organisation: str, email: str, keyring: Keyring) -> BuyerErased:
    """The address, and the mails to it that wait."""
    rows = erase_address(connection, storefront=storefront, organisation=organisation, email=email)
    if rows:
        orders = {row.top_up_of or row.id for row in rows}
        links = frozenset[str]().union(*(token_digests(connection, order=order) for order in orders))
        for mail in sealed_mails(connection):
            if is_about(mail, email, links, keyring):
                withdraw_mail(connection, mail=mail.id)
    return {"object": "storefront.erasure", "storefront": storefront, "erased": len(rows)}


def is_about(mail: SealedMail, email: str, links: Collection[str], keyring: Keyring) -> bool:
    """Whether a mail tells this buyer of an order that it links to: `links` are the digests of all tokens of the buyer's orders.

    A mail that was changed is never sent, and nobody can read it. One whose key is not here may be sent by another process: the erasure
    is refused with 503 then, and nothing is changed.
    """
    from cryptography.exceptions import InvalidTag  # slow to import

    try:
        letter = open_letter(mail.id, mail.sealed, keyring)
    except (ValueError, InvalidTag):
        return False
    return normal(letter.to) == email and any(token_digest(token) in links for token in IS_TOKEN.findall(letter.text))
