"""Money of connected accounts: balances, charges, refunds, payouts, disputes, what the service keeps, and what fraud rules hold up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from clients.payments.fields import record_parser
from clients.payments.link import PLATFORM_ACCOUNT, ProcessorCalls, request_options, require_processor_id
from clients.payments.records import (
    ApplicationFee,
    Balance,
    Charge,
    Dispute,
    EvidenceTexts,
    Payout,
    ProcessorPage,
    Refund,
    Review,
    ValueList,
    ValueListItem,
)
from registry.errors import PaymentsError

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    from stripe.params import (
        ApplicationFeeListParams,
        ChargeListParams,
        DisputeListParams,
        PayoutListParams,
        RefundCreateParams,
        RefundListParams,
    )
if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    from stripe.params import ReviewListParams
    from stripe.params.radar import ValueListListParams


class MoneyCalls(ProcessorCalls):
    async def balance_of(self, account: str) -> Balance:
        return await self._link.read(
            account, "balance", lambda to: to.v1.balance.retrieve_async(options=request_options(account)), record_parser(Balance)
        )

    async def own_balance(self) -> Balance:
        """The service's own balance: the cheapest call, which shows whether the key is accepted and whether it is for real money."""
        return await self._link.read(PLATFORM_ACCOUNT, "balance", lambda to: to.v1.balance.retrieve_async(), record_parser(Balance))

    async def find_charge(self, account: str, charge: str) -> Charge:
        return await self._find(
            account, "charge", charge, Charge, lambda to, id, options: to.v1.charges.retrieve_async(id, options=options)
        )

    async def list_charges(
        self, account: str, *, limit: int, starting_after: str | None = None, payment_intent: str | None = None
    ) -> ProcessorPage[Charge]:
        params = cast("ChargeListParams", page_params(limit, starting_after))
        if payment_intent is not None:
            params["payment_intent"] = require_processor_id(payment_intent, "payment")
        return await self._list(account, "charge", Charge, lambda to, options: to.v1.charges.list_async(params, options))

    async def refund(self, account: str, *, charge: str, amount: int, reason: str | None, key: str, metadata: Mapping[str, str]) -> Refund:
        """Asks for the charge first: the processor refuses to give a fee back where none was taken, and a charge's fee never changes."""
        params: RefundCreateParams = {"charge": require_processor_id(charge, "charge"), "amount": amount, "metadata": dict(metadata)}
        if await self._has_fee(account, charge):
            params["refund_application_fee"] = True
        if reason is not None:
            params["reason"] = reason
        return await self._link.write(
            account,
            "charge",
            lambda to: to.v1.refunds.create_async(params, request_options(account, key)),
            record_parser(Refund),
            words=frozenset({"amount", "reason"}),
        )

    async def _has_fee(self, account: str, charge: str) -> bool:
        """Whether the service took a fee of `charge`. A failure is one before execution: the write after it is then never sent."""
        try:
            return (await self.find_charge(account, charge)).application_fee is not None
        except PaymentsError as error:
            error.before_execution = True
            raise

    async def find_refund(self, account: str, refund: str) -> Refund:
        return await self._find(
            account, "refund", refund, Refund, lambda to, id, options: to.v1.refunds.retrieve_async(id, options=options)
        )

    async def list_refunds(
        self, account: str, *, limit: int, starting_after: str | None = None, charge: str | None = None
    ) -> ProcessorPage[Refund]:
        params = cast("RefundListParams", page_params(limit, starting_after, charge))
        return await self._list(account, "refund", Refund, lambda to, options: to.v1.refunds.list_async(params, options))

    async def pay_out(self, account: str, *, amount: int, currency: str, key: str, metadata: Mapping[str, str]) -> Payout:
        return await self._link.write(
            account,
            "bank account",
            lambda to: to.v1.payouts.create_async(
                {"amount": amount, "currency": currency.lower(), "metadata": dict(metadata)}, request_options(account, key)
            ),
            record_parser(Payout),
            words=frozenset({"amount", "currency"}),
        )

    async def list_payouts(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Payout]:
        params = cast("PayoutListParams", page_params(limit, starting_after))
        return await self._list(account, "payout", Payout, lambda to, options: to.v1.payouts.list_async(params, options))

    async def find_dispute(self, account: str, dispute: str) -> Dispute:
        return await self._find(
            account, "dispute", dispute, Dispute, lambda to, id, options: to.v1.disputes.retrieve_async(id, options=options)
        )

    async def list_disputes(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Dispute]:
        params = cast("DisputeListParams", page_params(limit, starting_after))
        return await self._list(account, "dispute", Dispute, lambda to, options: to.v1.disputes.list_async(params, options))

    async def answer_dispute(self, account: str, dispute: str, evidence: EvidenceTexts, *, submit: bool, key: str) -> Dispute:
        """Texts that are not given stay as they are. Without `submit` the evidence is a draft."""
        which = require_processor_id(dispute, "dispute")
        return await self._link.write(
            account,
            "dispute",
            lambda to: to.v1.disputes.update_async(which, {"evidence": {**evidence}, "submit": submit}, request_options(account, key)),
            record_parser(Dispute, id=which),
            words=frozenset(EvidenceTexts.__optional_keys__),
        )

    async def list_fees(self, *, limit: int, starting_after: str | None = None, charge: str | None = None) -> ProcessorPage[ApplicationFee]:
        params = cast("ApplicationFeeListParams", page_params(limit, starting_after, charge))
        return await self._link.page(
            PLATFORM_ACCOUNT, "fee", lambda to: to.v1.application_fees.list_async(params), record_parser(ApplicationFee)
        )


def page_params(limit: int, starting_after: str | None, charge: str | None = None) -> dict[str, object]:
    params: dict[str, object] = {"limit": limit}
    if starting_after is not None:
        params["starting_after"] = starting_after
    if charge is not None:
        params["charge"] = charge
    return params


class FraudCalls(ProcessorCalls):
    async def list_reviews(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[Review]:
        params = cast("ReviewListParams", page_params(limit, starting_after))
        return await self._list(account, "review", Review, lambda to, options: to.v1.reviews.list_async(params, options))

    async def approve_review(self, account: str, review: str, *, key: str) -> Review:
        which = require_processor_id(review, "review")
        return await self._link.write(
            account,
            "review",
            lambda to: to.v1.reviews.approve_async(which, options=request_options(account, key)),
            record_parser(Review, id=which),
        )

    async def list_value_lists(self, account: str, *, limit: int, starting_after: str | None = None) -> ProcessorPage[ValueList]:
        params = cast("ValueListListParams", page_params(limit, starting_after))
        return await self._list(account, "value list", ValueList, lambda to, options: to.v1.radar.value_lists.list_async(params, options))

    async def add_to_value_list(self, account: str, value_list: str, value: str, *, key: str) -> ValueListItem:
        which = require_processor_id(value_list, "value list")
        return await self._link.write(
            account,
            "value list",
            lambda to: to.v1.radar.value_list_items.create_async({"value_list": which, "value": value}, request_options(account, key)),
            record_parser(ValueListItem),
            words=frozenset({"value"}),
        )
