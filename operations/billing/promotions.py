"""Promotions: codes that buyers type in to pay less."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from clients.payments.records import Money, NewPromotion
from operations.deps import Ctx
from operations.ledger.payment_accounts import find_payment_account
from operations.ledger.send_once import UNKNOWN, SendOutcome, send_once
from operations.vocabulary import Currency, ListOf, ListPage, list_page, render_fields
from registry.errors import BadRequest, Conflict, NotFound, PaymentsError, PaymentsRefused, ProviderError, Refusal
from registry.free_text import FreeText
from registry.operation import Example, FieldRule, Input, Once, Scope, SpendKind, operation
from registry.ports import Conclusion
from storage.connect_accounts import ConnectAccount
from storage.engine.sql import Connection
from storage.promotions import PromotionRow, insert_promotion, list_promotions, name_promotion, remove_promotion

PROMOTION_LATEST_EXPIRY = 4_102_444_800  # 2100-01-01


def check_percent_decimals(percent: float) -> float:
    exponent = Decimal(repr(percent)).as_tuple().exponent
    if isinstance(exponent, int) and exponent < -2:
        raise ValueError("must have at most two decimals, such as 12.5 or 33.33")
    return percent


class NewCode(Input):
    """A code, and what it takes off."""

    code: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9-]{3,32}$", description="What buyers type in: 3-32 letters, digits and hyphens, kept in upper case."),
    ]
    percent_off: Annotated[
        float | None,
        Field(gt=0, le=100, allow_inf_nan=False, description="Per cent off, above 0 to 100, two decimals at most. This or amount_off."),
        AfterValidator(lambda value: None if value is None else check_percent_decimals(value)),
    ] = None
    amount_off: Annotated[
        int | None, Field(ge=1, le=99_999_999, description="Amount off, in minor units (cents) of currency. This or percent_off.")
    ] = None
    currency: Annotated[Currency | None, Field(description="Of amount_off, and required with it: ISO 4217 in upper case, as EUR.")] = None
    max_redemptions: Annotated[
        int | None, Field(ge=1, le=2**31 - 1, description="How often it may be used in all; absent: without limit.")
    ] = None
    expires_at: Annotated[
        int | None, Field(ge=1, le=PROMOTION_LATEST_EXPIRY, description="Until when, Unix seconds, in the future; absent: for ever.")
    ] = None

    @model_validator(mode="after")
    def check(self) -> "NewCode":
        if (self.percent_off is None) == (self.amount_off is None):
            given = "neither" if self.percent_off is None else "both"
            raise FieldRule(
                f"percent_off, amount_off: got {given}; give exactly one of the two",
                param="percent_off",
                hint='{"percent_off": 15} takes 15 % off, {"amount_off": 500, "currency": "EUR"} takes five euros off',
            )
        if (self.amount_off is None) != (self.currency is None):
            need = "missing; it is required with amount_off" if self.currency is None else "goes with amount_off alone; leave it out"
            how = 'Send "USD", "EUR", "GBP" or "CHF" along' if self.currency is None else "A percentage has no currency: leave it out"
            raise FieldRule(f"currency: {need}", param="currency", hint=how)
        return self


class Promotion(TypedDict):
    """A promotion; times are Unix seconds, amounts minor units. Either `percent_off`, or `amount_off` with `currency`."""

    id: str
    object: Literal["promotion"]
    code: FreeText
    percent_off: float | None
    amount_off: int | None
    currency: Currency | None
    max_redemptions: int | None
    expires_at: int | None
    active: Annotated[bool, Field(description="False once it has expired")]
    payments_promotion_id: Annotated[str | None, Field(description="The processor's id; null for a code that it does not know")]
    created: int


PROMOTION_EXAMPLE: Promotion = {
    "id": "pro_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "promotion",
    "code": "SPRING-15",
    "percent_off": 15.0,
    "amount_off": None,
    "currency": None,
    "max_redemptions": 500,
    "expires_at": 1830297599,
    "active": True,
    "payments_promotion_id": "promo_1R8fjord6gH",
    "created": 1795163400,
}


def render_promotion(row: PromotionRow, now: float) -> Promotion:
    return render_fields(
        row,
        Promotion,
        object="promotion",
        percent_off=None if row.percent_off_bps is None else row.percent_off_bps / 100,
        active=bool(row.active) and (row.expires_at is None or row.expires_at > now),
        payments_promotion_id=row.processor_promotion,
    )


async def find_active_payment_account(ctx: Ctx, _params: NewCode) -> ConnectAccount | None:
    """The organisation's account, where it takes payments: the code is then made there as well."""
    account = await find_payment_account(ctx)
    if account is None or account.status != "active":
        return None
    ctx.stage()
    return account


@operation(
    "POST",
    "/v1/operator-billing/promotions",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    once=Once(shown=True),
    status=201,
    title="Create promotion",
    access=find_active_payment_account,
    raises=[BadRequest, Conflict, PaymentsError, PaymentsRefused],
    examples=[
        Example(
            "15 % off for the first 500 buyers",
            {"code": "spring-15", "percent_off": 15, "max_redemptions": 500, "expires_at": 1830297599},
            PROMOTION_EXAMPLE,
        )
    ],
)
async def operator_create_promotion(ctx: Ctx, params: NewCode, account: ConnectAccount | None) -> Promotion:
    """Make a code that takes a percentage or an amount off what buyers pay.

    Give `percent_off`, or `amount_off` with `currency`. A code is your organisation's once and for ever: one that is there already is
    409 `promotion_exists`.

    While your payment account is active the code is made at the processor as well, and buyers can use it at a checkout;
    `payments_promotion_id` is then its id there. Otherwise it is only kept. Where the processor refuses it, nothing is kept; where its
    answer is lost (`outcome_unknown`), the code stays taken without an id: make another one.
    """
    row = promotion_row(ctx, params)
    if account is None:
        return await ctx.settle(render_promotion(row, ctx.now), insert_new_promotion, row=row)
    sending = PromotionSending(ctx, account.account, row)
    await send_once(ctx, sending)
    if sending.refusal is not None:
        raise sending.refusal
    return render_promotion(sending.row, ctx.now)


@dataclass(slots=True)
class PromotionSending:
    """The making of a promotion at the processor, in the connected account `account`."""

    ctx: Ctx
    account: str
    row: PromotionRow
    refusal: Refusal | None = None
    """Why the processor made none, or did not say."""

    @property
    def lost_answer(self) -> tuple[int, object]:
        lost = promotion_outcome_unknown()
        return lost.status, lost.body(self.ctx.call.request_id)

    def begin(self, connection: Connection, *, now: float) -> None:
        del now
        insert_new_promotion(connection, row=self.row)

    async def send(self, waited: float) -> SendOutcome[str]:
        del waited
        try:
            return (await self.ctx.deps.payments.create_promotion(self.account, promotion_request(self.row))).id
        except (PaymentsError, PaymentsRefused, NotFound) as refusal:
            if isinstance(refusal, PaymentsError) and refusal.before_execution:
                raise
            self.refusal = refusal
            return UNKNOWN if isinstance(refusal, ProviderError) and refusal.outcome_unknown else refusal

    def settle(self, connection: Connection, *, outcome: SendOutcome[str], now: float) -> Conclusion:
        """The processor has it; or surely has none, and the code is free again; or nobody knows, and it stays taken."""
        del now
        if isinstance(outcome, str):
            self.row = self.row._replace(processor_promotion=outcome)
            name_promotion(connection, promotion=self.row.id, processor_promotion=outcome)
            return Conclusion(201, render_promotion(self.row, self.ctx.now), False, "ok")
        if isinstance(outcome, Refusal):
            remove_promotion(connection, promotion=self.row.id)
        refusal = self.refusal or promotion_outcome_unknown()
        return Conclusion(refusal.status, refusal.body(self.ctx.call.request_id), outcome is UNKNOWN, refusal.error_code)

    def unsend(self, connection: Connection, *, now: float) -> None:
        del now
        remove_promotion(connection, promotion=self.row.id)


def promotion_row(ctx: Ctx, params: NewCode) -> PromotionRow:
    if params.expires_at is not None and params.expires_at <= ctx.now:
        raise BadRequest(
            f"expires_at: got {params.expires_at}, which has passed; it must be after {int(ctx.now)} (now)",
            param="expires_at",
            hint="Unix seconds, not milliseconds; leave it out for a code that does not expire",
        )
    return PromotionRow(
        ctx.deps.ids.new("pro_"),
        ctx.organisation,
        params.code.upper(),
        None if params.percent_off is None else int(Decimal(repr(params.percent_off)) * 100),
        params.amount_off,
        params.currency,
        params.max_redemptions,
        params.expires_at,
        1,
        None,
        int(ctx.now),
    )


def promotion_request(row: PromotionRow) -> NewPromotion:
    off = None if row.amount_off is None or row.currency is None else Money(row.amount_off, row.currency)
    return NewPromotion(row.id, row.code, row.percent_off_bps, off, row.max_redemptions, row.expires_at)


def insert_new_promotion(connection: Connection, *, row: PromotionRow) -> None:
    if not insert_promotion(connection, row=row):
        raise Conflict(
            f"code: your organisation has a promotion with the code {row.code} already",
            code="promotion_exists",
            param="code",
            hint="Choose another code; operator_list_promotions names those that are taken",
        )


def promotion_outcome_unknown() -> PaymentsError:
    return PaymentsError(
        "The payment processor was asked to make the code, and what came of it is not known; the code stays taken",
        code="OUTCOME_UNKNOWN",
        hint="Make another code",
        outcome_unknown=True,
    )


@operation(
    "GET",
    "/v1/operator-billing/promotions",
    title="List promotions",
    examples=[Example("Which codes are out?", {"limit": 20}, {"object": "list", "data": [PROMOTION_EXAMPLE], "has_more": False})],
)
async def operator_list_promotions(ctx: Ctx, params: ListPage) -> ListOf[Promotion]:
    """List your organisation's promotions, newest first, expired ones among them."""
    read = ctx.deps.store.read
    rows = await read(list_promotions, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1)
    return list_page([render_promotion(row, ctx.now) for row in rows], params.limit)
