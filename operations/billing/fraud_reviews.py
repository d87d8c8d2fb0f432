"""Payments that the processor's fraud rules hold up for a person's look."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.records import Review
from operations.deps import Ctx
from operations.ledger.payment_accounts import AfterProcessorId, ProcessorId, find_payment_account, own_payment_account
from operations.vocabulary import ListOf, PageLimit
from registry.errors import Conflict, NotFound, NotSupported, PaymentsRefused
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, operation
from storage.connect_accounts import ConnectAccount


class FraudReviewPage(Input):
    """Which part of the list."""

    limit: PageLimit = 20
    starting_after: AfterProcessorId = None


class FraudReviewRef(Input):
    """Which review."""

    id: Annotated[ProcessorId, Field(description="Review id, prv_...")]


class FraudReview(TypedDict):
    """A review; times are Unix seconds."""

    id: str
    object: Literal["review"]
    open: bool
    reason: Annotated[str, Field(description="Why it is open (rule, manual), or how it was closed, by the processor's words")]
    charge: str | None
    payment_intent: str | None
    created: int


FRAUD_REVIEW_EXAMPLE: FraudReview = {
    "id": "prv_1R8nordic2aB",
    "object": "review",
    "open": True,
    "reason": "rule",
    "charge": "ch_3R8nordic1aB",
    "payment_intent": "pi_3R8nordic1aB",
    "created": 1795163400,
}


@operation(
    "GET",
    "/v1/operator-billing/fraud/reviews",
    processor=True,
    title="List fraud reviews",
    examples=[Example("Which payments are held up?", {"limit": 20}, {"object": "list", "data": [FRAUD_REVIEW_EXAMPLE], "has_more": False})],
)
async def operator_billing_list_fraud_reviews(ctx: Ctx, params: FraudReviewPage) -> ListOf[FraudReview]:
    """List the payments that wait for your look, newest first.

    Empty without a payment account. Let a payment through with operator_billing_approve_fraud_review, or give the money back with
    POST /v1/operator-billing/refunds.
    """
    account = await find_payment_account(ctx)
    if account is None:
        return {"object": "list", "data": [], "has_more": False}
    ctx.reached_upstream = True
    found = await ctx.deps.payments.list_reviews(account.account, limit=params.limit, starting_after=params.starting_after)
    return {"object": "list", "data": [render_fraud_review(review) for review in found.data], "has_more": found.has_more}


@operation(
    "POST",
    "/v1/operator-billing/fraud/reviews/{id}/approve",
    scope=Scope.ADMIN,
    processor=True,
    title="Approve fraud review",
    access=own_payment_account,
    raises=[NotFound, Conflict],
    examples=[
        Example(
            "The buyer is known to us", {"id": FRAUD_REVIEW_EXAMPLE["id"]}, {**FRAUD_REVIEW_EXAMPLE, "open": False, "reason": "approved"}
        )
    ],
)
async def operator_billing_approve_fraud_review(ctx: Ctx, params: FraudReviewRef, account: ConnectAccount) -> FraudReview:
    """Close a review: the payment is fine.

    It cannot be opened again. A review that is closed already is 409 `review_closed`.
    """
    ctx.reached_upstream = True
    try:
        return render_fraud_review(await ctx.deps.payments.approve_review(account.account, params.id, key=ctx.call.request_id))
    except NotFound:
        hint = "operator_billing_list_fraud_reviews names those that are open"
        raise NotFound("Your payment account has no review with this id", param="id", hint=hint) from None
    except PaymentsRefused:
        # Choice: the processor lists open reviews alone and has no code for this refusal, so the text names both reasons.
        raise Conflict(
            "The review is closed already, or not to be approved; nothing was done",
            code="review_closed",
            param="id",
            hint="operator_billing_list_fraud_reviews names those that are open",
        ) from None


@operation(
    "POST",
    "/v1/operator-billing/fraud/reviews/{id}/decline",
    scope=Scope.ADMIN,
    title="Decline fraud review",
    raises=[NotSupported],
    examples=[Example("Not offered: refund the charge instead", {"id": FRAUD_REVIEW_EXAMPLE["id"]}, None)],
)
async def operator_billing_decline_fraud_review(ctx: Ctx, params: FraudReviewRef) -> FraudReview:
    """Always answers 501: a review is declined by refunding its charge.

    Nothing is sent to the processor, whatever the id. Refund the review's `charge` with POST /v1/operator-billing/refunds; that closes
    the review as well.
    """
    del ctx, params
    raise NotSupported(
        "A fraud review cannot be declined here, and nothing was sent to the payment processor",
        hint="Refund the review's charge instead: POST /v1/operator-billing/refunds; that closes the review",
    )


def render_fraud_review(review: Review) -> FraudReview:
    """As it is shown."""
    return {
        "id": review.id,
        "object": "review",
        "open": review.open,
        "reason": review.reason,
        "charge": review.charge,
        "payment_intent": review.payment_intent,
        "created": review.created,
    }
