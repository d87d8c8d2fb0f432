"""Making invoices from call detail records."""

from typing import Annotated, Literal

from pydantic import FailFast, Field, model_validator
from typing_extensions import TypedDict

from operations.connectivity.shapes import Currency
from operations.deps import Ctx
from operations.invoicing.invoice.figures import MOST_PRICE_CENTS, TooLarge
from operations.invoicing.invoice.making import Made, NothingToBill, Wanted, make_invoice, no_such_period
from operations.invoicing.invoice_selection import AccountNotReadWhole, own_accounts, sims_of
from operations.invoicing.invoice_shape import DRAFT, PERIOD, LineItem, ShownInvoice, shown_invoice, shown_lines
from operations.invoicing.invoice_update import RecipientName
from operations.invoicing.invoices import LINE
from operations.services.network.accounts import UpstreamId
from operations.services.people.addresses import Email
from operations.vocabulary import Iccid
from registry.errors import BadRequest, NotFound, OcsError, OrgNotConnected
from registry.ids import Ids
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, Once, operation
from registry.ports import Site
from storage.connection import Connection
from storage.long import Long
from storage.money.invoice_periods import find_period

MOST_SIMS, MOST_ACCOUNTS = 1000, 20


def absent(value: object) -> bool:
    """For `exclude_if`: what is not given has no part in the fingerprint, so that a key of before these fields still names its call."""
    return value is None


class NewInvoice(Input):
    """Which month to bill, to whom, and for how much."""

    period_id: Annotated[str, Field(max_length=64, description="Period id, per_..., from list_invoice_periods.")]
    price_per_gb_cents: Annotated[
        int,
        Field(ge=0, le=MOST_PRICE_CENTS, description="Cents per GB (10^9 bytes), 0-1000000000; 0 or absent: your organisation's rate."),
    ] = 0
    currency: Annotated[
        Currency | None, Field(description="Of this invoice, with price_per_gb_cents; absent: your organisation's.", exclude_if=absent)
    ] = None
    recipient_name: Annotated[RecipientName | None, Field(description="Who is billed, 1-200 characters.", exclude_if=absent)] = None
    recipient_email: Annotated[Email | None, Field(description="Where it is sent, at most 254 characters.", exclude_if=absent)] = None
    iccids: Annotated[
        list[Iccid] | None,
        FailFast(),
        Field(min_length=1, max_length=MOST_SIMS, description="Bill these SIMs alone, 1-1000.", exclude_if=absent),
    ] = None
    account_ids: Annotated[
        list[UpstreamId] | None,
        Field(min_length=1, max_length=MOST_ACCOUNTS, description="Bill the SIMs that these accounts have now, 1-20.", exclude_if=absent),
    ] = None

    @model_validator(mode="after")
    def check(self) -> "NewInvoice":
        """A rate has a currency, and an invoice one selection."""
        if self.currency is not None and not self.price_per_gb_cents:
            raise BadRequest(
                f"currency: {self.currency} without a price: your organisation's rate is in its own currency",
                param="currency",
                hint="Send price_per_gb_cents in that currency too, or leave currency out",
            )
        if self.iccids is not None and self.account_ids is not None:
            raise BadRequest(
                "account_ids: given together with iccids; an invoice is of some SIMs, or of some accounts",
                param="account_ids",
                hint="Send one of them, or neither for the whole month",
            )
        return self


class NotBilled(TypedDict):
    """A SIM that was named and is not on the invoice: without records in the month, or billed by another invoice already."""

    iccid: str
    reason: Literal["no_records", "already_billed"]


class MadeInvoice(ShownInvoice):
    """The draft, how many lines it has, the largest of them, and which of the `iccids` it does not bill."""

    line_count: int
    largest_lines: list[LineItem]
    not_billed: list[NotBilled]


MADE: MadeInvoice = {**DRAFT, "line_count": 1, "largest_lines": [LINE], "not_billed": []}


@operation(
    "POST",
    "/v1/invoices",
    scope=Scope.WRITE,
    once=Once(shown=True),
    moves=True,
    status=201,
    title="Create invoice",
    access=own_accounts,
    raises=[NotFound, NothingToBill, AccountNotReadWhole, TooLarge, OrgNotConnected, OcsError],
    examples=[
        Example("Bill a month at our own rate", {"period_id": PERIOD}, MADE),
        Example("Bill it at 2.50 a GB", {"period_id": PERIOD, "price_per_gb_cents": 250}, MADE),
        Example(
            "Bill one customer's SIMs in their currency",
            {
                "period_id": PERIOD,
                "price_per_gb_cents": 250,
                "currency": "EUR",
                "recipient_name": "Fjord Ferries AS",
                "recipient_email": "accounts@fjord.example",
                "iccids": ["8988303000000912345"],
            },
            MADE,
        ),
    ],
)
async def create_invoice(ctx: Ctx, params: NewInvoice, granted: None) -> MadeInvoice:
    """Make a draft invoice of a month: one line per SIM, and the platform fee.

    Its figures are frozen. Calling again makes a second invoice: send an idempotency key, and void what is not needed.

    Each line is the SIM's bytes times the price, rounded half-up to the cent; 1 GB is 10^9 bytes. The platform fee is added to the
    subtotal; tax is 0. Currency and prefix of the number are those of get_billing_config at this moment; `currency` together with
    `price_per_gb_cents` gives this invoice its own. The organisation's price is 0, and the lines with it, until update_billing_config
    sets it. Numbers count up without gaps per organisation and UTC year, drafts and voids included. Records that come later change
    the month's sums and no invoice.

    `iccids` or `account_ids` bill some SIMs alone, and only what no other invoice of the month bills that is not void. An invoice of
    the whole month leaves out what such invoices bill. A SIM counts to the account that has it now. `largest_lines` are at most five.
    Nothing is sent before update_invoice sets `status` to `sent`.
    """
    del granted
    deps = ctx.deps
    if await deps.store.read(find_period, period=params.period_id, organisation=ctx.organisation) is None:
        raise no_such_period()
    wanted = Wanted(
        deps.ids.new("inv_"),
        ctx.organisation,
        params.period_id,
        params.price_per_gb_cents,
        deps.platform_fee_bps,
        currency=params.currency,
        recipient_name=params.recipient_name,
        recipient_email=params.recipient_email,
        iccids=await sims_of(ctx, params),
    )
    named = tuple(dict.fromkeys(params.iccids or ()))

    @Long  # a month may have a hundred thousand SIMs
    def write(connection: Connection, *, wanted: Wanted, now: float, ids: Ids) -> MadeInvoice:
        return shown_made(make_invoice(connection, wanted=wanted, now=now, ids=ids), named, deps.site)

    return await ctx.settle_result(write, wanted=wanted, now=ctx.now, ids=deps.ids)


def shown_made(made: Made, named: tuple[str, ...], site: Site) -> MadeInvoice:
    """The answer; of the SIMs that were named it says which are not on the invoice."""
    billed = made.billed
    left_out: list[NotBilled] = [
        {"iccid": iccid, "reason": "already_billed" if iccid in billed.already_billed else "no_records"}
        for iccid in named
        if iccid not in billed.sims
    ]
    return {
        **shown_invoice(made.row, site),
        "line_count": billed.lines,
        "largest_lines": shown_lines(made.row, billed.largest, made.month),
        "not_billed": left_out,
    }
