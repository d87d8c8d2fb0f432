"""A page of what the processor told of an organisation's money, from our own records."""

from operations.deps import Ctx
from operations.services.payments.connect import account_of
from operations.services.payments.processor_ids import After
from operations.vocabulary import Limit
from registry.errors import BadRequest
from registry.model import Input
from storage.connection import Connection
from storage.money.connect import Connected
from storage.money.payment_records import FIRST, Kind, PaymentRecord, list_records, place_of


class RecordPage(Input):
    """Which part of the list."""

    limit: Limit = 20
    starting_after: After = None


async def read_page(ctx: Ctx, kind: Kind, params: RecordPage) -> list[PaymentRecord]:
    """The rows, with one more than the limit. Without an account there are none; what a former account had is not shown."""
    account = await account_of(ctx)
    if account is None:
        return []
    return await ctx.deps.store.read(page_of, account=account, kind=kind, starting_after=params.starting_after, most=params.limit + 1)


def page_of(connection: Connection, *, account: Connected, kind: Kind, starting_after: str | None, most: int) -> list[PaymentRecord]:
    """The rows behind the one that the caller saw last."""
    named = {"account": account.account, "organisation": account.organisation}
    after = FIRST if starting_after is None else place_of(connection, **named, kind=kind, id=starting_after)
    if after is None:
        raise BadRequest(
            f"starting_after: none of your {kind}s has this id",
            param="starting_after",
            hint=f"Give the `id` of the last {kind} of the page before, or leave it out for the newest",
        )
    return list_records(connection, **named, kind=kind, after=after, most=most)
