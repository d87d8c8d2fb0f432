"""What an organisation is told about its account at the payment processor (api.md 2.11)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from clients.payments.records import Account
from operations.deps import Ctx, Deps
from operations.services.payments.connect import account_of
from operations.services.payments.connect_status import status_of, take_account
from operations.services.payments.payments_sync import bring_up_to_date
from operations.services.payments.platform_fees import fee_bps_of
from registry.errors import Refusal
from storage.money.billing_config import find_config
from storage.money.connect import Connected


class ConnectStatus(TypedDict):
    """Your account at the payment processor; without one `account_id` is null and everything is false."""

    status: Literal["not_connected", "pending", "active"]
    account_id: str | None
    charges_enabled: Annotated[bool, Field(description="It takes payments")]
    payouts_enabled: Annotated[bool, Field(description="It pays out to its bank")]
    details_submitted: Annotated[bool, Field(description="Its owner has finished the processor's pages")]
    requirements: Annotated[Mapping[str, JsonValue] | None, Field(description="Always null at present")]
    capabilities: Annotated[Mapping[str, JsonValue] | None, Field(description="Always null at present")]
    payout_schedule: Annotated[Mapping[str, JsonValue] | None, Field(description="Always null at present")]
    default_currency: Annotated[str, Field(description="Of the account; before one is there, the one you bill in")]
    platform_fee_bps: Annotated[int, Field(description="The service's share of what is paid, in hundredths of a per cent")]


ACTIVE: ConnectStatus = {
    "status": "active",
    "account_id": "acct_1R8fjord0Xy",
    "charges_enabled": True,
    "payouts_enabled": True,
    "details_submitted": True,
    "requirements": None,
    "capabilities": None,
    "payout_schedule": None,
    "default_currency": "EUR",
    "platform_fee_bps": 100,
}


async def ask_account(ctx: Ctx) -> tuple[Connected | None, Account | None]:
    """The organisation's account as it was stored, and what the processor says of it now: nothing where it does not answer."""
    found = await account_of(ctx)
    if found is None:
        return None, None
    deps = ctx.deps
    asked, ctx.reached_upstream = deps.clock.now(), True
    try:
        account = await deps.payments.find_account(found.account)
    except Refusal:  # api.md 3.5: what is stored is told then
        return found, None
    await deps.store.write(take_account, account=account, as_of=asked, now=deps.clock.now())
    if found.status != "active" and status_of(account) == "active":
        await catch_up(deps, ctx.organisation, account.id)
    return found, account


async def catch_up(deps: Deps, organisation: str, account: str) -> None:
    """Have the account's records read that no event told of: what it did before it was connected. The events tell the rest."""
    with suppress(Refusal):
        await bring_up_to_date(deps, organisation=organisation, account=account)


async def shown(deps: Deps, organisation: str, account: Account | None) -> ConnectStatus:
    """The answer: how the account stands by now, with what the processor says of it, where it said anything."""
    config = await deps.store.read(find_config, organisation=organisation)
    own = "USD" if config is None else config.currency
    if account is not None and (config is None or config.connect_account != account.id):
        account = None  # it was disconnected while it was asked for
    return {
        "status": cast(Literal["not_connected", "pending", "active"], "not_connected" if config is None else config.connect_status),
        "account_id": None if config is None else config.connect_account,
        "charges_enabled": account is not None and account.charges_enabled,
        "payouts_enabled": account is not None and account.payouts_enabled,
        "details_submitted": account is not None and account.details_submitted,
        "requirements": None,
        "capabilities": None,
        "payout_schedule": None,
        "default_currency": (account and account.default_currency) or own,
        "platform_fee_bps": await fee_bps_of(deps, organisation),
    }
