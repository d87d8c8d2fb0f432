"""Fraud rules of the processor: the payments that they hold up for a person's look, and the lists of values that they name."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from operations.billing.charges import PaymentRecordPage
from operations.deps import Ctx
from operations.ledger.payment_accounts import ProcessorId, find_payment_account, own_payment_account
from operations.vocabulary import ListOf, plain_line, render_fields
from registry.errors import Conflict, NotFound, NotSupported, PaymentsRefused
from registry.free_text import FreeText
from registry.operation import Example, Input, Scope, SpendKind, operation
from storage.connect_accounts import ConnectAccount


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


OPEN_REVIEWS_HINT = "operator_billing_list_fraud_reviews names those that are open"
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
async def operator_billing_list_fraud_reviews(ctx: Ctx, params: PaymentRecordPage) -> ListOf[FraudReview]:
    """List the payments that wait for your look, newest first.

    Empty without a payment account. Let a payment through with operator_billing_approve_fraud_review, or give the money back with
    POST /v1/operator-billing/refunds.
    """
    account = await find_payment_account(ctx)
    if account is None:
        return {"object": "list", "data": [], "has_more": False}
    ctx.reached_upstream = True
    found = await ctx.deps.payments.list_reviews(account.account, limit=params.limit, starting_after=params.starting_after)
    rows = [render_fields(review, FraudReview, object="review") for review in found.data]
    return {"object": "list", "data": rows, "has_more": found.has_more}


@operation(
    "POST",
    "/v1/operator-billing/fraud/reviews/{id}/approve",
    spends=SpendKind.NOTHING,
    irreversible=True,
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
        review = await ctx.deps.payments.approve_review(account.account, params.id, key=ctx.call.request_id)
        return render_fields(review, FraudReview, object="review")
    except NotFound:
        raise NotFound("Your payment account has no review with this id", param="id", hint=OPEN_REVIEWS_HINT) from None
    except PaymentsRefused:
        # Choice: the processor lists open reviews alone and has no code for this refusal, so the text names both reasons.
        text = "The review is closed already, or not to be approved; nothing was done"
        raise Conflict(text, code="review_closed", param="id", hint=OPEN_REVIEWS_HINT) from None


@operation(
    "POST",
    "/v1/operator-billing/fraud/reviews/{id}/decline",
    spends=SpendKind.OPEN,
    irreversible=True,
    scope=Scope.ADMIN,
    title="Decline fraud review",
    raises=[NotSupported],
    examples=[Example("Not offered: refund the charge instead", {"id": FRAUD_REVIEW_EXAMPLE["id"]}, None)],
)
async def operator_billing_decline_fraud_review(_ctx: Ctx, _params: FraudReviewRef) -> FraudReview:
    """Always answers 501: a review is declined by refunding its charge.

    Nothing is sent to the processor, whatever the id. Refund the review's `charge` with POST /v1/operator-billing/refunds; that closes
    the review as well.
    """
    raise NotSupported(
        "A fraud review cannot be declined here, and nothing was sent to the payment processor",
        hint="Refund the review's charge instead: POST /v1/operator-billing/refunds; that closes the review",
    )


class NewItem(Input):
    """What to add to which list."""

    value_list: Annotated[ProcessorId, Field(description="List id, rsl_...")]
    value: Annotated[
        str,
        Field(min_length=1, max_length=800, repr=False, description="Of the kind the list holds: an address, a country, a fingerprint..."),
        AfterValidator(plain_line),
    ]


class FraudValueList(TypedDict):
    """A list; `created` is Unix seconds."""

    id: str
    object: Literal["value_list"]
    alias: Annotated[FreeText, Field(description="What rules call it")]
    name: FreeText
    item_type: Annotated[str, Field(description="What it holds, such as email, card_fingerprint or country")]
    created: int


class FraudValueItem(TypedDict):
    """A value of a list; `created` is Unix seconds."""

    id: str
    object: Literal["value_list_item"]
    value_list: str
    value: FreeText
    created: int


VALUE_LIST_EXAMPLE: FraudValueList = {
    "id": "rsl_1R8fjord4cD",
    "object": "value_list",
    "alias": "blocked_countries",
    "name": "Countries we do not sell to",
    "item_type": "country",
    "created": 1795163400,
}


@operation(
    "GET",
    "/v1/operator-billing/fraud/value-lists",
    processor=True,
    title="List value lists",
    examples=[
        Example("What do our fraud rules go by?", {"limit": 20}, {"object": "list", "data": [VALUE_LIST_EXAMPLE], "has_more": False})
    ],
)
async def operator_billing_list_value_lists(ctx: Ctx, params: PaymentRecordPage) -> ListOf[FraudValueList]:
    """List the block and allow lists of your payment account, newest first.

    Empty without a payment account.
    """
    account = await find_payment_account(ctx)
    if account is None:
        return {"object": "list", "data": [], "has_more": False}
    ctx.reached_upstream = True
    found = await ctx.deps.payments.list_value_lists(account.account, limit=params.limit, starting_after=params.starting_after)
    rows = [render_fields(row, FraudValueList, object="value_list") for row in found.data]
    return {"object": "list", "data": rows, "has_more": found.has_more}


@operation(
    "POST",
    "/v1/operator-billing/fraud/value-lists/items",
    spends=SpendKind.NOTHING,
    scope=Scope.ADMIN,
    processor=True,
    status=201,
    title="Add value list item",
    access=own_payment_account,
    raises=[NotFound, Conflict],
    examples=[
        Example(
            "Sell nothing to this country",
            {"value_list": VALUE_LIST_EXAMPLE["id"], "value": "KP"},
            {
                "id": "rsli_1R8fjord5eF",
                "object": "value_list_item",
                "value_list": VALUE_LIST_EXAMPLE["id"],
                "value": "KP",
                "created": 1795163460,
            },
        )
    ],
)
async def operator_billing_add_value_list_item(ctx: Ctx, params: NewItem, account: ConnectAccount) -> FraudValueItem:
    """Add a value to a block or allow list: it counts from the next payment on.

    The processor refuses a value that is not of the list's kind, and one that is in it already.
    """
    ctx.reached_upstream = True
    try:
        item = await ctx.deps.payments.add_to_value_list(account.account, params.value_list, params.value, key=ctx.call.request_id)
    except NotFound:
        hint = "operator_billing_list_value_lists names them"
        raise NotFound("Your payment account has no value list with this id", param="value_list", hint=hint) from None
    return render_fields(item, FraudValueItem, object="value_list_item")
