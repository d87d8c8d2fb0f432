"""A buyer of one shop: what was ordered under an address, a new link to an order, and erasing the address: what was sold stays."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.ledger.orders import mail_new_link
from operations.letters import open_letter
from operations.storefronts.hosted_storefronts import STOREFRONT_ID_EXAMPLE
from operations.storefronts.orders import ORDER_NUMBER_EXAMPLE, READY_ORDER_EXAMPLE, Order, SoldAtSlug, place_of_order, render_order
from operations.storefronts.storefronts import StorefrontRef, own_storefront
from operations.vocabulary import Email, ListOf, PageLimit, StartingAfter, list_page, normal_email
from registry.caller import Role
from registry.challenge import LOSSES_LIMIT, Challenge, describe_loss, name_losses
from registry.errors import BadRequest, Conflict, NotFound
from registry.ids import ORDER_TOKEN
from registry.operation import Auth, Example, Input, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.fleet_erasure import ErasedBuyer, erase_lines_of_buyer
from storage.mail import WaitingMail, sealed_mails, withdraw_mail
from storage.orders import OrderDetail, OrderRow, end_access, erase_address, find_order, orders_of_buyer, token_digest, token_digests
from storage.sealing import Keyring, WrongSeal
from storage.storefronts import Storefront, find_published_at


class BuyerOrderPage(Input):
    """Whose orders in which shop, and which part of the list."""

    storefront: SoldAtSlug
    email: Email
    limit: PageLimit = 20
    starting_after: StartingAfter = None


async def shop_of_buyer_orders(ctx: Ctx, params: BuyerOrderPage) -> Storefront:
    """A shop that everybody sees, by a slug that it has or had; a draft is not found."""
    shop = await ctx.deps.store.read(find_published_at, slug=params.storefront)
    if shop is None:
        raise NotFound("There is no published storefront with this slug", param="storefront", hint="Name the slug in the shop's address")
    ctx.act_for(shop.organisation)
    return shop


@operation(
    "GET",
    "/api/orders",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT,
    access=shop_of_buyer_orders,
    title="List a buyer's orders",
    raises=[BadRequest, NotFound],
    examples=[
        Example(
            "A buyer's orders",
            {"storefront": "fjord-travel", "email": "ada@example.com"},
            {"object": "list", "data": [{**READY_ORDER_EXAMPLE, "id": ORDER_NUMBER_EXAMPLE}], "has_more": False},
        )
    ],
)
async def list_storefront_buyer_orders(ctx: Ctx, params: BuyerOrderPage, shop: Storefront) -> ListOf[Order]:
    """List the orders that one address paid for in one published shop, newest first.

    The storefront key is needed always: an address alone opens nothing. Make sure that whoever asks owns the address.

    Each is the order itself, with what installs its eSIM. `id` is its number, which the storefront key opens.
    Addresses are compared in lower case.
    """

    def find(connection: Connection) -> list[OrderDetail]:
        after = place_of_order(connection, shop.organisation, params.starting_after)
        named = {"organisation": shop.organisation, "storefront": shop.id, "email": normal_email(params.email)}
        return orders_of_buyer(connection, **named, after=after, most=params.limit + 1)

    rows = await ctx.deps.store.read(find)
    return list_page([render_order(ctx, row) for row in rows], params.limit)


class BuyerToErase(StorefrontRef):
    """Whom to forget, in which shop."""

    email: Email


class BuyerErased(TypedDict):
    """How many orders and top-ups had the address."""

    object: Literal["storefront.erasure"]
    storefront: Annotated[str, Field(description="sf_...")]
    erased: int


async def name_buyer(ctx: Ctx, params: BuyerToErase, _shop: Storefront) -> Challenge:
    """The address, and the orders that it goes from."""
    email = normal_email(params.email)
    orders = await ctx.deps.store.read(
        orders_of_buyer, organisation=ctx.organisation, storefront=params.id, email=email, most=LOSSES_LIMIT + 1
    )
    count = f"more than {LOSSES_LIMIT}" if len(orders) > LOSSES_LIMIT else str(len(orders))
    loss = describe_loss("buyer", params.email, orders=count, newest_order=orders[0].row.id if orders else None)
    return Challenge(
        f"This will erase a buyer from the storefront {params.id}: {name_losses((loss,))}. It cannot be undone.",
        (loss,),
    )


@operation(
    "POST",
    "/v1/storefronts/{id}/erase-buyer",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ANY,
    role=Role.ADMIN,
    tool=False,
    confirm=True,
    access=own_storefront,
    challenge=name_buyer,
    title="Erase buyer",
    raises=[NotFound],
    examples=[
        Example(
            "A buyer asks to be forgotten",
            {"id": STOREFRONT_ID_EXAMPLE, "email": "ada@example.com"},
            {"object": "storefront.erasure", "storefront": STOREFRONT_ID_EXAMPLE, "erased": 2},
        )
    ],
)
async def erase_buyer(ctx: Ctx, params: BuyerToErase, _shop: Storefront) -> BuyerErased:
    """Erase a buyer's address from all orders of a storefront. It cannot be undone.

    Needs the role admin, on any tier. `erased` counts orders and top-ups; 0: the shop knows no such buyer.

    The address is all that we keep of a buyer. It goes from orders, from top-ups and from mails that wait to be sent, and no further
    mail is sent to it, about an order that is on its way either. Amounts, plans, times, eSIM records and refunds stay, for your books
    and because the eSIM goes on working: whoever has the order's link still sees it. Not in our hands, and not erased: what the
    payment processor holds of the payment in your own account there (address, name, card, receipts), which you erase there; mails
    that were sent; what you entered on the line yourself at the charging system; and backups of the database, until they expire. A keyed
    digest of the address stays, from which nobody can read it: by it the buyer's names are not stored with lines of the fleet again.
    """
    named = {"storefront": params.id, "organisation": ctx.organisation, "email": normal_email(params.email)}
    return await ctx.settle_result(erase_buyer_address, **named, keyring=ctx.deps.keyring, new_key=ctx.deps.ids.bytes(32))


def erase_buyer_address(
    connection: Connection, *, storefront: str, organisation: str, email: str, keyring: Keyring, new_key: bytes
) -> BuyerErased:
    """The address, the mails to it that wait, and the names in the read model of lines that have it or were sold to it.

    `new_key`: random bytes, by which the organisation's erased buyers are remembered if this is the first.
    """
    rows = erase_address(connection, storefront=storefront, organisation=organisation, email=email)
    orders = {row.top_up_of or row.id for row in rows}
    iccids = {row.iccid for order in orders if (row := find_order(connection, order=order)) is not None and row.iccid}
    erase_lines_of_buyer(connection, organisation=organisation, buyer=ErasedBuyer(email, iccids, new_key), keyring=keyring)
    if rows:
        links = frozenset[str]().union(*(token_digests(connection, order=order) for order in orders))
        for mail in sealed_mails(connection):
            if is_mail_to_buyer(mail, email, links, keyring):
                withdraw_mail(connection, mail=mail.id)
    return {"object": "storefront.erasure", "storefront": storefront, "erased": len(rows)}


def is_mail_to_buyer(mail: WaitingMail, email: str, links: Collection[str], keyring: Keyring) -> bool:
    """Whether a mail tells this buyer of an order that it links to: `links` are the digests of all tokens of the buyer's orders.

    A mail that was changed is never sent, and nobody can read it. One whose key is not here may be sent by another process: the erasure
    is refused with 503 then, and nothing is changed.
    """
    try:
        letter = open_letter(mail.id, mail.sealed, keyring)
    except (ValueError, WrongSeal):
        return False
    return normal_email(letter.to) == email and any(token_digest(token) in links for token in ORDER_TOKEN.findall(letter.text))


RENEW_ORDER_ACCESS = "renew_storefront_order_access"


class OrderWithoutAddress(Conflict):
    """Nobody could be sent the new link."""

    code = "order_without_address"


def renew_order_access(connection: Connection, *, deps: Deps, order: str, organisation: str | None, now: float) -> OrderRow:
    """Ends every token of the order with the number `order`, cookies included, and queues the mail; the order's row.

    `organisation`: whose order it must be; None for whoever runs the service. Refuses an order that is not there, and one without an
    address, whose buyer would lose it for ever.
    """
    row = find_order(connection, order=order)
    if row is None or row.top_up_of is not None or organisation not in (None, row.organisation):
        raise NotFound(
            "There is no order with this number", param="number", hint="list_storefront_orders shows the numbers of orders, onr_..."
        )
    if row.email is None:
        raise order_without_address(row)
    end_access(connection, order=row.id, now=now)
    mail_new_link(connection, deps, row.id)
    return row


def order_without_address(row: OrderRow) -> OrderWithoutAddress:
    if row.paid_at is None:
        why, hint = "it was not paid for", "The link that opens it stays as it is, and the payment gives it an address"
    else:
        why, hint = "its buyer was erased", "The links that open it stay as they are"
        hint += "" if row.iccid is None else "; rollback_esim_issuance takes the eSIM back"
    return OrderWithoutAddress(f"This order has no address for a new link, because {why}; nothing was changed", param="number", hint=hint)


class OrderNumber(Input):
    """Which order."""

    number: Annotated[str, Field(max_length=64, description="The order's number, onr_...")]


class AccessRenewed(TypedDict):
    """The order whose buyer was sent a new link; the link itself is the buyer's alone."""

    object: Literal["storefront.access_renewal"]
    order: Annotated[str, Field(description="The order's number, onr_...")]


ACCESS_RENEWED_EXAMPLE: AccessRenewed = {"object": "storefront.access_renewal", "order": ORDER_NUMBER_EXAMPLE}


@operation(
    "POST",
    "/v1/storefronts/orders/{number}/renew-access",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    role=Role.ADMIN,
    tool=False,
    title="Renew order access",
    raises=[NotFound, OrderWithoutAddress],
    examples=[Example("A link got into wrong hands", {"number": ORDER_NUMBER_EXAMPLE}, ACCESS_RENEWED_EXAMPLE)],
)
async def renew_storefront_order_access(ctx: Ctx, params: OrderNumber) -> AccessRenewed:
    """End every link that opens an order, and mail its buyer a new one.

    Needs the role admin, on any tier. The mail goes to the address that the order was paid with, and to no other.

    From then on the links in earlier mails and the browser that the order was begun in open it no more. The order, its eSIM and its
    data stay as they are; what somebody has seen meanwhile, such as the activation code, is not undone by it. An order without an
    address, which was not paid for or whose buyer was erased, is 409 `order_without_address`.
    """

    def renew(connection: Connection, *, deps: Deps, now: float) -> AccessRenewed:
        row = renew_order_access(connection, deps=deps, order=params.number, organisation=ctx.organisation, now=now)
        return {"object": "storefront.access_renewal", "order": row.id}

    renewed = await ctx.settle_result(renew, deps=ctx.deps, now=ctx.now)
    ctx.deps.post()
    return renewed
