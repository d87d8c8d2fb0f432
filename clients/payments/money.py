"""Money of connected accounts: balances, charges, refunds, payouts, disputes, and what the service keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from clients.payments.fields import only
from clients.payments.link import PLATFORM, Calls, inside, known
from clients.payments.records import ApplicationFee, Balance, Charge, Dispute, Evidence, Listed, Payout, Refund
from clients.payments.wire.balance import balance_of
from clients.payments.wire.charge import charge_of
from clients.payments.wire.dispute import dispute_of
from clients.payments.wire.fee import fee_of
from clients.payments.wire.payout import payout_of
from clients.payments.wire.refund import refund_of
from registry.payments_errors import PaymentsError

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    from stripe.params import (
        ApplicationFeeListParams,
        ChargeListParams,
        DisputeListParams,
        PayoutListParams,
        RefundCreateParams,
        RefundListParams,
    )


class MoneyCalls(Calls):
    """What is asked of the processor about money."""

    async def balance_of(self, account: str) -> Balance:
        """By currency."""
        return await self._link.read(account, "balance", lambda to: to.v1.balance.retrieve_async(options=inside(account)), balance_of)

    async def own_balance(self) -> Balance:
        """Of the service itself: the cheapest question there is, and it tells whether the key is accepted and for what money."""
        return await self._link.read(PLATFORM, "balance", lambda to: to.v1.balance.retrieve_async(), balance_of)

    async def find_charge(self, account: str, charge: str) -> Charge:
        """The charge as it stands."""
        which = known(charge, "charge")
        return await self._link.read(
            account, "charge", lambda to: to.v1.charges.retrieve_async(which, options=inside(account)), only(which, charge_of)
        )

    async def list_charges(
        self, account: str, *, limit: int, starting_after: str | None = None, payment_intent: str | None = None
    ) -> Listed[Charge]:
        """Newest first; of all payments or of one."""
        params = cast("ChargeListParams", page(limit, starting_after))
        if payment_intent is not None:
            params["payment_intent"] = known(payment_intent, "payment")
        return await self._link.page(account, "charge", lambda to: to.v1.charges.list_async(params, inside(account)), charge_of)

    async def refund(self, account: str, *, charge: str, amount: int, reason: str | None, key: str, metadata: Mapping[str, str]) -> Refund:
        """Asks for the charge first: the processor refuses to give a fee back where none was taken, and a charge's fee never changes."""
        params: RefundCreateParams = {"charge": known(charge, "charge"), "amount": amount, "metadata": dict(metadata)}
        if await self._has_fee(account, charge):
            params["refund_application_fee"] = True
        if reason is not None:
            params["reason"] = reason
        return await self._link.write(
            account,
            "charge",
            lambda to: to.v1.refunds.create_async(params, inside(account, key)),
            refund_of,
            words=frozenset({"amount", "reason"}),
        )

    async def _has_fee(self, account: str, charge: str) -> bool:
        """Whether the service kept something of a charge. A question that fails comes before the write, which is then never sent."""
        try:
            return (await self.find_charge(account, charge)).application_fee is not None
        except PaymentsError as error:
            error.before_execution = True
            raise

    async def find_refund(self, account: str, refund: str) -> Refund:
        """The refund as it stands."""
        which = known(refund, "refund")
        return await self._link.read(
            account, "refund", lambda to: to.v1.refunds.retrieve_async(which, options=inside(account)), only(which, refund_of)
        )

    async def list_refunds(
        self, account: str, *, limit: int, starting_after: str | None = None, charge: str | None = None
    ) -> Listed[Refund]:
        """Newest first; of all charges or of one."""
        params = cast("RefundListParams", page(limit, starting_after, charge))
        return await self._link.page(account, "refund", lambda to: to.v1.refunds.list_async(params, inside(account)), refund_of)

    async def pay_out(self, account: str, *, amount: int, currency: str, key: str, metadata: Mapping[str, str]) -> Payout:
        """To the account's own bank."""
        return await self._link.write(
            account,
            "bank account",
            lambda to: to.v1.payouts.create_async(
                {"amount": amount, "currency": currency.lower(), "metadata": dict(metadata)}, inside(account, key)
            ),
            payout_of,
            words=frozenset({"amount", "currency"}),
        )

    async def list_payouts(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[Payout]:
        """Newest first."""
        params = cast("PayoutListParams", page(limit, starting_after))
        return await self._link.page(account, "payout", lambda to: to.v1.payouts.list_async(params, inside(account)), payout_of)

    async def find_dispute(self, account: str, dispute: str) -> Dispute:
        """The dispute as it stands."""
        which = known(dispute, "dispute")
        return await self._link.read(
            account, "dispute", lambda to: to.v1.disputes.retrieve_async(which, options=inside(account)), only(which, dispute_of)
        )

    async def list_disputes(self, account: str, *, limit: int, starting_after: str | None = None) -> Listed[Dispute]:
        """Newest first."""
        params = cast("DisputeListParams", page(limit, starting_after))
        return await self._link.page(account, "dispute", lambda to: to.v1.disputes.list_async(params, inside(account)), dispute_of)

    async def answer_dispute(self, account: str, dispute: str, evidence: Evidence, *, submit: bool, key: str) -> Dispute:
        """What is not named stays as it is. Without `submit` it is kept as a draft."""
        which = known(dispute, "dispute")
        return await self._link.write(
            account,
            "dispute",
            lambda to: to.v1.disputes.update_async(which, {"evidence": {**evidence}, "submit": submit}, inside(account, key)),
            only(which, dispute_of),
            words=frozenset(Evidence.__optional_keys__),
        )

    async def list_fees(self, *, limit: int, starting_after: str | None = None, charge: str | None = None) -> Listed[ApplicationFee]:
        """The service's own list."""
        params = cast("ApplicationFeeListParams", page(limit, starting_after, charge))
        return await self._link.page(PLATFORM, "fee", lambda to: to.v1.application_fees.list_async(params), fee_of)


def page(limit: int, starting_after: str | None, charge: str | None = None) -> dict[str, object]:
    """Which part of a list."""
    asked: dict[str, object] = {"limit": limit}
    if starting_after is not None:
        asked["starting_after"] = starting_after
    if charge is not None:
        asked["charge"] = charge
    return asked
