"""Fraud: reviews and the lists that the fraud rules name."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from clients.payments.fields import only
from clients.payments.link import Calls, inside, known
from clients.payments.money import page
from clients.payments.records import Listed, Review, ValueList, ValueListItem
from clients.payments.wire.review import review_of, value_list_item_of, value_list_of

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    from stripe.params import ReviewListParams
    from stripe.params.radar import ValueListListParams


class FraudCalls(Calls):
    """What is asked of the processor about fraud."""

    async def list_reviews(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[Review]:
        """Those that are open, newest first."""
        params = cast("ReviewListParams", page(limit, starting_after))
        return await self._link.page(account, "review", lambda to: to.v1.reviews.list_async(params, inside(account)), review_of)

    async def approve_review(self, account: str, review: str, *, key: str) -> Review:
        """Closes it."""
        which = known(review, "review")
        return await self._link.write(
            account, "review", lambda to: to.v1.reviews.approve_async(which, options=inside(account, key)), only(which, review_of)
        )

    async def list_value_lists(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[ValueList]:
        """Newest first."""
        params = cast("ValueListListParams", page(limit, starting_after))
        return await self._link.page(
            account, "value list", lambda to: to.v1.radar.value_lists.list_async(params, inside(account)), value_list_of
        )

    async def add_to_value_list(self, account: str, value_list: str, value: str, *, key: str) -> ValueListItem:
        """What the list blocks or lets pass from now on."""
        which = known(value_list, "value list")
        return await self._link.write(
            account,
            "value list",
            lambda to: to.v1.radar.value_list_items.create_async({"value_list": which, "value": value}, inside(account, key)),
            value_list_item_of,
            words=frozenset({"value"}),
        )
