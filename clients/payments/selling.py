"""Selling to buyers: promotion codes and checkout pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.payments.fields import id_member, record_parser
from clients.payments.link import ProcessorCalls, request_options, require_processor_id
from clients.payments.records import CheckoutSession, NewCheckout, NewPromotion, PromotionCode
from registry.errors import PaymentsRefused

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    from stripe.params import CouponCreateParams, PromotionCodeCreateParams
    from stripe.params.checkout import SessionCreateParams, SessionCreateParamsPaymentIntentData


class SellingCalls(ProcessorCalls):
    """What is asked of the processor about codes and checkout pages."""

    async def create_promotion(self, account: str, promotion: NewPromotion) -> PromotionCode:
        """A coupon says how much, a code is how buyers name it; the code carries the limits."""
        terms = coupon_params(promotion)
        coupon = await self._link.write(
            account,
            "coupon",
            lambda to: to.v1.coupons.create_async(terms, request_options(account, f"{promotion.key}-coupon")),
            id_member,
            words=frozenset({"percent_off", "amount_off", "currency"}),
        )
        params = promotion_code_params(promotion, coupon)
        return await self._link.write(
            account,
            "coupon",
            lambda to: to.v1.promotion_codes.create_async(params, request_options(account, f"{promotion.key}-code")),
            record_parser(PromotionCode),
            words=frozenset({"code", "max_redemptions", "expires_at"}),
        )

    async def create_checkout(self, account: str, checkout: NewCheckout) -> CheckoutSession:
        """A checkout page for one thing, once. Its metadata is on the payment as well."""
        params = checkout_params(checkout)
        return await self._link.write(
            account,
            "checkout session",
            lambda to: to.v1.checkout.sessions.create_async(params, request_options(account, checkout.key)),
            record_parser(CheckoutSession),
        )

    async def find_checkout(self, account: str, session: str) -> CheckoutSession:
        return await self._find(
            account,
            "checkout session",
            session,
            CheckoutSession,
            lambda to, id, options: to.v1.checkout.sessions.retrieve_async(id, options=options),
        )

    async def expire_checkout(self, account: str, session: str) -> CheckoutSession:
        which = require_processor_id(session, "checkout session")
        try:
            return await self._link.write(
                account,
                "checkout session",
                lambda to: to.v1.checkout.sessions.expire_async(which, options=request_options(account)),
                record_parser(CheckoutSession, id=which),
            )
        except PaymentsRefused as refused:
            kept = refused
        found = await self.find_checkout(account, session)
        if found.status == "open":
            raise kept
        return found


def coupon_params(promotion: NewPromotion) -> CouponCreateParams:
    """Hundredths of a per cent become per cent."""
    params: CouponCreateParams = {"duration": "once", "name": promotion.code[:40]}
    if promotion.percent_off_bps is not None:
        params["percent_off"] = promotion.percent_off_bps / 100
    if promotion.amount_off is not None:
        params["amount_off"] = promotion.amount_off.amount
        params["currency"] = promotion.amount_off.currency.lower()
    return params


def promotion_code_params(promotion: NewPromotion, coupon: str) -> PromotionCodeCreateParams:
    params: PromotionCodeCreateParams = {"promotion": {"type": "coupon", "coupon": coupon}, "code": promotion.code}
    if promotion.max_redemptions is not None:
        params["max_redemptions"] = promotion.max_redemptions
    if promotion.expires_at is not None:
        params["expires_at"] = promotion.expires_at
    return params


def checkout_params(checkout: NewCheckout) -> SessionCreateParams:
    payment: SessionCreateParamsPaymentIntentData = {"metadata": dict(checkout.metadata)}
    if checkout.fee:
        payment["application_fee_amount"] = checkout.fee
    params: SessionCreateParams = {
        "mode": "payment",
        "line_items": [
            {
                "quantity": 1,
                "price_data": {
                    "currency": checkout.currency.lower(),
                    "unit_amount": checkout.amount,
                    "product_data": {"name": checkout.text},
                },
            }
        ],
        "payment_intent_data": payment,
        "success_url": checkout.success_url,
        "cancel_url": checkout.cancel_url,
        "metadata": dict(checkout.metadata),
    }
    if checkout.promotions:
        params["allow_promotion_codes"] = True
    if checkout.email is not None:
        params["customer_email"] = checkout.email
    if checkout.expires_at is not None:
        params["expires_at"] = checkout.expires_at
    return params
