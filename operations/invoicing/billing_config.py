"""How an organisation bills: currency, price, the prefix of its invoice numbers, and the account that its invoices are paid to."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.invoicing.invoice_creation import PRICE_PER_GB_CENTS_LIMIT
from operations.ledger.payment_accounts import (
    CONNECT_STATUS_EXAMPLE,
    ONBOARDING_LINK_EXAMPLE,
    REPLACES_PAYMENT_ACCOUNT,
    ConnectStatus,
    Onboarding,
    OnboardingLink,
    ask_payment_account,
    begin_payment_onboarding,
    may_begin_onboarding,
    platform_fee_bps_of,
    render_connect_status,
)
from operations.vocabulary import Currency, render_fields
from registry.errors import BadRequest, Conflict
from registry.operation import Auth, Example, Input, Nothing, Scope, SpendKind, operation
from registry.versions import ObjectVersion, Versioned
from storage.billing_config import CONFIG_DEFAULTS, BillingConfig, change_config, ensure_config, find_config, hold_config
from storage.connect_accounts import ConnectAccount
from storage.engine.sql import Connection

CONNECT_ACCOUNT_HINT = "Connecting an account at the payment processor sets it: POST /v1/invoices/payments/connect/begin"
# Who sets what an organisation cannot set here.
CONFIG_SET_ELSEWHERE = {
    "billing_cycle_day": "It is 1: an invoice is of a calendar month in UTC",
    "platform_fee_bps": "Whoever runs the service sets it: reseller org set-fee",
    "payments_connect_account_id": CONNECT_ACCOUNT_HINT,
    "payments_connect_status": CONNECT_ACCOUNT_HINT,
    "org_id": "It is the organisation of your credential; another one's needs a credential of that one",
    "updated_at": "The service sets it with every change",
}


class ConfigChange(Input):
    """What to change; what is left out stays."""

    currency: Annotated[Currency | None, Field(description="Of new invoices (ISO 4217).")] = None
    price_per_gb_cents: Annotated[
        int | None,
        Field(ge=0, le=PRICE_PER_GB_CENTS_LIMIT, description="Cents per GB (10^9 bytes), 0-1000000000, of new invoices."),
    ] = None
    invoice_prefix: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9-]{1,16}$", description="Begins new invoice numbers: 1-16 letters, digits and hyphens."),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _only_what_is_theirs(cls, given: object) -> object:
        if isinstance(given, dict):
            for name, whose in CONFIG_SET_ELSEWHERE.items():
                if name in given:
                    raise BadRequest(f"{name}: cannot be set here", param=name, hint=f"{whose}. Leave it out")
        return given  # pyright: ignore[reportUnknownVariableType]  # JSON: the fields give it its types


class ShownConfig(TypedDict):
    """How an organisation bills. `platform_fee_bps` is the service's share in basis points; `updated_at` is Unix seconds."""

    org_id: str
    currency: Currency
    billing_cycle_day: int
    payments_connect_account_id: str | None
    payments_connect_status: Literal["not_connected", "pending", "active"]
    platform_fee_bps: int
    price_per_gb_cents: int
    invoice_prefix: str
    updated_at: int


BILLING_CONFIG_EXAMPLE: ShownConfig = {
    "org_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "currency": "USD",
    "billing_cycle_day": 1,
    "payments_connect_account_id": None,
    "payments_connect_status": "not_connected",
    "platform_fee_bps": 100,
    "price_per_gb_cents": 0,
    "invoice_prefix": "INV",
    "updated_at": 1_795_168_800,
}
CHANGED_CONFIG_EXAMPLE: ShownConfig = {**BILLING_CONFIG_EXAMPLE, "currency": "EUR", "price_per_gb_cents": 250, "invoice_prefix": "FJORD"}


def render_billing_config(row: BillingConfig, fee_bps: int) -> ShownConfig:
    return render_fields(
        row,
        ShownConfig,
        org_id=row.organisation,
        payments_connect_account_id=row.connect_account,
        payments_connect_status=row.connect_status,
        platform_fee_bps=fee_bps,
        updated_at=row.updated,
    )


def read_config_version(connection: Connection, ctx: Ctx, params: Input, hold: bool) -> ObjectVersion:
    """The version of what can be set: not of the account at the processor, whose word comes by itself."""
    del params
    if hold:  # a row that is not there cannot be held, and of two first changes each would find that nothing has changed
        ensure_config(connection, organisation=ctx.organisation, now=ctx.now)
    row = (hold_config if hold else find_config)(connection, organisation=ctx.organisation)
    state = [CONFIG_DEFAULTS[name] if row is None else getattr(row, name) for name in ConfigChange.model_fields]
    return ObjectVersion(state, alone=True)


CONFIG_VERSION = Versioned("billing config", read_config_version, "get_billing_config", ("update_billing_config",))


@operation(
    "GET",
    "/v1/invoices/config",
    versioned=CONFIG_VERSION,
    title="Get billing config",
    examples=[Example("How do we bill?", {}, BILLING_CONFIG_EXAMPLE)],
)
async def get_billing_config(ctx: Ctx, _params: Nothing) -> ShownConfig:
    """Get how you bill: currency, price per GB, number prefix, platform fee.

    Never not found: the first call gives it the defaults USD, 0 a GB and the prefix INV.
    """
    store = ctx.deps.store
    found = await store.read(find_config, organisation=ctx.organisation)
    row = found or await store.write(ensure_config, organisation=ctx.organisation, now=ctx.now)
    return render_billing_config(row, await platform_fee_bps_of(ctx.deps, ctx.organisation))


@operation(
    "PUT",
    "/v1/invoices/config",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    versioned=CONFIG_VERSION,
    title="Update billing config",
    raises=[BadRequest],
    examples=[
        Example(
            "Bill in euros, 2.50 a GB", {"currency": "EUR", "price_per_gb_cents": 250, "invoice_prefix": "FJORD"}, CHANGED_CONFIG_EXAMPLE
        ),
    ],
)
async def update_billing_config(ctx: Ctx, params: ConfigChange) -> ShownConfig:
    """Set currency, price per GB or number prefix of your new invoices.

    What is left out stays. Invoices that were made before, drafts among them, do not change.

    A new prefix does not begin a new count: numbers go on. `billing_cycle_day`, the platform fee and the account at the payment
    processor cannot be set here; the refusal says who sets them.
    """
    bps = await platform_fee_bps_of(ctx.deps, ctx.organisation)

    def write(connection: Connection, *, organisation: str, now: float) -> ShownConfig:
        return render_billing_config(change_config(connection, organisation=organisation, **params.model_dump(), now=now), bps)

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)


@operation(
    "POST",
    "/v1/invoices/payments/connect/begin",
    spends=SpendKind.OPEN,
    auth=Auth.SESSION,
    scope=Scope.NONE,
    replaces=REPLACES_PAYMENT_ACCOUNT,
    access=may_begin_onboarding,
    processor=True,
    title="Connect payment account",
    raises=[BadRequest, Conflict],
    examples=[ONBOARDING_LINK_EXAMPLE],
)
async def payments_connect_begin(ctx: Ctx, params: Onboarding, account: ConnectAccount | None) -> OnboardingLink:
    """Get a link to the payment processor's onboarding, on any tier.

    For a person who is signed in: an API key is refused. The first call makes an Express account for your organisation; each call
    gives a fresh link to it, however many are made at once.

    Once the account has taken payments, only an admin gets a link, since the bank account can be changed there.

    Open `url` in a browser soon, once. Afterwards payments_connect_status asks the processor how the account stands: pending becomes
    active when it takes payments. An account that was connected by OAuth is onboarded by its owner, and answers 409.
    """
    return await begin_payment_onboarding(ctx, params, account)


@operation(
    "GET",
    "/v1/invoices/payments/connect/status",
    processor=True,
    title="Get payment account status",
    examples=[Example("Can our invoices be paid online?", {}, CONNECT_STATUS_EXAMPLE)],
)
async def payments_connect_status(ctx: Ctx, _params: Nothing) -> ConnectStatus:
    """Tell whether your organisation's invoices can be paid online.

    Asks the payment processor and keeps its answer, which is how `pending` becomes `active`; `active` goes back to `pending` when the
    processor restricts the account.

    Without an account, and when the processor does not answer, what is stored is told, with all three flags false.
    """
    _, account = await ask_payment_account(ctx)
    return await render_connect_status(ctx.deps, ctx.organisation, account)
