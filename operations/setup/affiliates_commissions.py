"""Commissions of the caller's organisation."""

from typing import Literal

from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.errors import BadRequest
from registry.model import Input
from registry.operation import Example, operation
from storage.connection import Connection
from storage.money.commissions import LAST, RATE_BPS, Commission, Place, list_commissions, place_of


class CommissionPage(Input):
    """Which part of the list."""

    limit: Limit = 20
    starting_after: StartingAfter = None


class CommissionOfMonth(TypedDict):
    """The share of one referred organisation's platform fees of one month; amounts in minor units of `currency`.

    `period` is a calendar month in UTC, `YYYY-MM`; `rate_bps` is in hundredths of a percent.
    """

    # Choice: a referred organisation is named by its id, which tells months of one apart from those of another and nothing else.
    id: str
    object: Literal["commission"]
    period: str
    organization: str
    currency: str
    platform_fees: int
    amount: int
    rate_bps: int


EXAMPLE: CommissionOfMonth = {
    "id": "com_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "commission",
    "period": "2026-11",
    "organization": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "currency": "EUR",
    "platform_fees": 14900,
    "amount": 1490,
    "rate_bps": RATE_BPS,
}


@operation(
    "GET",
    "/v1/affiliates/me/commissions",
    title="List commissions",
    raises=[BadRequest],
    examples=[Example("What did each month earn?", {}, {"object": "list", "data": [EXAMPLE], "has_more": False})],
)
async def affiliates_me_commissions_list(ctx: Ctx, params: CommissionPage) -> ListOf[CommissionOfMonth]:
    """List the commissions your organisation earned, newest month first.

    One row per month, referred organisation and currency; `amount` is 10 % of `platform_fees`, rounded half up.

    A referred organisation earns you a commission in the month in which it was referred and in the eleven after it. A month's row
    grows until its invoices are final, and shrinks when a fee is taken back, never below zero.
    """
    rows = await ctx.deps.store.read(read_page, affiliate=ctx.organisation, starting_after=params.starting_after, most=params.limit + 1)
    return page([commission_of(row) for row in rows], params.limit)


def read_page(connection: Connection, *, affiliate: str, starting_after: str | None, most: int) -> list[Commission]:
    """The rows behind the one that the caller saw last."""
    return list_commissions(connection, affiliate=affiliate, after=place(connection, affiliate, starting_after), most=most)


def place(connection: Connection, affiliate: str, starting_after: str | None) -> Place:
    """Where the page begins."""
    if starting_after is None:
        return LAST
    found = place_of(connection, affiliate=affiliate, commission=starting_after)
    if found is None:
        raise BadRequest(
            "starting_after: none of your commissions has this id",
            param="starting_after",
            hint="Give the `id` of the last commission of the page before, or leave it out for the newest",
        )
    return found


def commission_of(row: Commission) -> CommissionOfMonth:
    """The row as it is shown."""
    return {
        "id": row.id,
        "object": "commission",
        "period": row.month,
        "organization": row.organisation,
        "currency": row.currency,
        "platform_fees": row.fees,
        "amount": row.amount,
        "rate_bps": RATE_BPS,
    }
