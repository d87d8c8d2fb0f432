"""Making invoices from call detail records."""

from typing import Annotated

from pydantic import Field

from operations.deps import Ctx
from operations.invoicing.invoice.figures import MOST_PRICE_CENTS, TooLarge
from operations.invoicing.invoice.making import NothingToBill, Wanted, make_invoice
from operations.invoicing.invoice_shape import DRAFT, PERIOD, ShownInvoice, shown_invoice
from registry.errors import NotFound
from registry.ids import Ids
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, Once, operation
from storage.connection import Connection
from storage.long import Long


class NewInvoice(Input):
    """Which month to bill, and for how much."""

    period_id: Annotated[str, Field(max_length=64, description="Period id, per_..., from list_invoice_periods.")]
    price_per_gb_cents: Annotated[
        int,
        Field(ge=0, le=MOST_PRICE_CENTS, description="Cents per GB (10^9 bytes), 0-1000000000; 0 or absent: your organisation's rate."),
    ] = 0


@operation(
    "POST",
    "/v1/invoices",
    scope=Scope.WRITE,
    once=Once(shown=True),
    moves=True,
    status=201,
    title="Create invoice",
    raises=[NotFound, NothingToBill, TooLarge],
    examples=[
        Example("Bill a month at our own rate", {"period_id": PERIOD}, DRAFT),
        Example("Bill it at 2.50 a GB", {"period_id": PERIOD, "price_per_gb_cents": 250}, DRAFT),
    ],
)
async def create_invoice(ctx: Ctx, params: NewInvoice) -> ShownInvoice:
    """Make a draft invoice of a month: one line per SIM, and the platform fee.

    Its figures are frozen. Calling again makes a second invoice: send an idempotency key, and void what is not needed.

    Each line is the SIM's bytes times the price, rounded half-up to the cent; 1 GB is 10^9 bytes. The platform fee is added to the
    subtotal; tax is 0. Currency and prefix of the number are those of get_billing_config at this moment. Numbers count up without
    gaps per organisation and UTC year, drafts and voids included. Records that come later change the month's sums and no invoice.
    Nothing is sent before update_invoice sets `status` to `sent`.
    """
    deps = ctx.deps
    wanted = Wanted(deps.ids.new("inv_"), ctx.organisation, params.period_id, params.price_per_gb_cents, deps.platform_fee_bps)

    @Long  # a month may have a hundred thousand SIMs
    def write(connection: Connection, *, wanted: Wanted, now: float, ids: Ids) -> ShownInvoice:
        return shown_invoice(make_invoice(connection, wanted=wanted, now=now, ids=ids), deps.site)

    return await ctx.settle_result(write, wanted=wanted, now=ctx.now, ids=deps.ids)
