"""Connected accounts: made, attached, shown their pages, paid out by schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import urlencode

from clients.payments.fields import id_member, record_parser
from clients.payments.link import (
    NO_REPEATS,
    PLATFORM_ACCOUNT,
    ProcessorCalls,
    processor_idempotency_key,
    request_options,
    require_processor_id,
)
from clients.payments.port import AUTHORIZE_HOST
from clients.payments.records import ConnectedAccount, HostedPage, PayoutTiming

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    import stripe
    from stripe.params import AccountCreateParams, BalanceSettingsUpdateParams


class AccountCalls(ProcessorCalls):
    """What is asked of the processor about connected accounts."""

    async def create_account(self, *, key: str, email: str | None, country: str | None, metadata: Mapping[str, str]) -> ConnectedAccount:
        """An Express account, by what it may do instead of by a type: the service pays its losses and the processor's fees."""
        params: AccountCreateParams = {
            "controller": {
                "stripe_dashboard": {"type": "express"},
                "requirement_collection": "stripe",
                "losses": {"payments": "application"},
                "fees": {"payer": "application"},
            },
            "capabilities": {"card_payments": {"requested": True}, "transfers": {"requested": True}},
            "metadata": dict(metadata),
        }
        if email is not None:
            params["email"] = email
        if country is not None:
            params["country"] = country
        return await self._link.write(
            PLATFORM_ACCOUNT,
            "account",
            lambda to: to.v1.accounts.create_async(params, {"idempotency_key": processor_idempotency_key(key)}),
            record_parser(ConnectedAccount),
            words=frozenset({"email", "country"}),
        )

    async def find_account(self, account: str) -> ConnectedAccount:
        whose = require_processor_id(account, "account")
        return await self._link.read(
            whose, "account", lambda to: to.v1.accounts.retrieve_async(whose), record_parser(ConnectedAccount, id=whose)
        )

    async def onboarding_link(self, account: str, *, return_url: str, refresh_url: str) -> HostedPage:
        """Another one is made each time, so it counts as a read."""
        whose = require_processor_id(account, "account")
        return await self._link.read(
            whose,
            "account",
            lambda to: to.v1.account_links.create_async(
                {"account": whose, "type": "account_onboarding", "return_url": return_url, "refresh_url": refresh_url}
            ),
            record_parser(HostedPage),
        )

    async def dashboard_link(self, account: str) -> HostedPage:
        """Another one is made each time, so it counts as a read."""
        whose = require_processor_id(account, "account")
        return await self._link.read(whose, "account", lambda to: to.v1.accounts.login_links.create_async(whose), record_parser(HostedPage))

    def authorize_url(self, *, state: str, return_url: str) -> str | None:
        """Written by hand, so that the vendor's library is not loaded for an address."""
        settings = self._link.settings
        if not settings.client_id:
            return None
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "scope": "read_write",
            "state": state,
            "redirect_uri": return_url,
        }
        return f"{settings.connect_url.rstrip('/') or AUTHORIZE_HOST}/oauth/authorize?{urlencode(query)}"

    async def attach(self, code: str) -> str:
        """Sent once: a code that is shown twice may cost the account's consent. The tokens that come with the answer are dropped."""
        return await self._link.write(
            PLATFORM_ACCOUNT,
            "authorization code",
            lambda to: exchange_code(to, code),
            lambda found: id_member(found, "stripe_user_id"),
            repeats=NO_REPEATS,
        )

    async def schedule_of(self, account: str) -> PayoutTiming:
        return await self._link.read(
            account,
            "payout schedule",
            lambda to: to.v1.balance_settings.retrieve_async(options=request_options(account)),
            record_parser(PayoutTiming),
        )

    async def set_schedule(self, account: str, schedule: PayoutTiming, *, key: str) -> PayoutTiming:
        params = payout_schedule_params(schedule)
        return await self._link.write(
            account,
            "payout schedule",
            lambda to: to.v1.balance_settings.update_async(params, request_options(account, key)),
            record_parser(PayoutTiming),
        )


class RawProcessorCalls(Protocol):
    """The raw form of a call, which the library leaves without types."""

    async def raw_request_async(self, method_: str, url_: str, **params: str) -> stripe.StripeResponse:
        """An answer that is no object yet."""
        ...


async def exchange_code(to: stripe.StripeClient, code: str) -> stripe.StripeObject:
    """The library has this call for blocking clients only, so it goes by its raw form. Under a key of the library's own, another one each
    time: a key made from the code would let a code that was used before pass again.
    """
    raw = cast("RawProcessorCalls", to)
    answer = await raw.raw_request_async("post", "/oauth/token", base="connect", grant_type="authorization_code", code=code)
    return to.deserialize(answer, api_mode="V1")


def payout_schedule_params(schedule: PayoutTiming) -> BalanceSettingsUpdateParams:
    terms: dict[str, object] = {"interval": schedule.interval}
    if schedule.interval == "weekly" and schedule.weekday is not None:
        terms["weekly_payout_days"] = [schedule.weekday]
    if schedule.interval == "monthly" and schedule.month_day is not None:
        terms["monthly_payout_days"] = [schedule.month_day]
    payments: dict[str, object] = {"payouts": {"schedule": terms}}
    if schedule.delay_days is not None:
        payments["settlement_timing"] = {"delay_days_override": schedule.delay_days}
    return cast("BalanceSettingsUpdateParams", {"payments": payments})
