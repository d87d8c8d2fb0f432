"""Whether the charging system answers, as whom it knows a token, and which accounts that sees: `doctor` and `org connect` ask."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from clients.http import Outbound
from clients.ocs.client import Ocs
from clients.ocs.pool import OcsPool, ocs_limits
from clients.ocs.settings import OcsSettings
from registry.clock import SystemClock
from registry.errors import OcsError, Refusal
from transports.cli.certificate_check import unanswered
from transports.cli.finding import Finding
from transports.settings import Settings
from transports.upstream import ocs_settings

SECONDS = 5.0
ELSEWHERE = "check SERVICE_OCS_URL, SERVICE_OCS_AUTH, and that this machine may reach it"
FIXES = {
    8: "set SERVICE_OCS_TOKEN to the reseller token that the provider gave you, and SERVICE_OCS_AUTH to the way it takes it",
    9: "have the provider add this machine's address to its allow list",
    100: "try again in a minute",
}


def upstream(settings: Settings) -> Finding:
    """Simulated, or asked for the reseller that the service's token belongs to."""
    token = settings.ocs_token.get_secret_value()
    if not settings.ocs_url:
        return Finding("upstream", "simulated network in this process; SERVICE_OCS_URL names a real charging system")
    if not token:
        return Finding("upstream", f"{settings.ocs_url}, not asked: without SERVICE_OCS_TOKEN only own-token organisations reach it")
    try:
        reseller = asyncio.run(whose(replace(ocs_settings(settings), total_seconds=SECONDS), token))
    except Refusal as refusal:
        return unanswered("upstream", settings.ocs_url, refusal.message, fix_of(refusal), settings)
    return Finding("upstream", f"{settings.ocs_url} answers as reseller {reseller}")


async def whose(wire: OcsSettings, token: str) -> int | None:
    """The reseller a token belongs to: the cheapest question there is, and it changes nothing."""
    async with asking(wire, token) as ocs:
        return (await ocs.reseller.get_reseller_info()).get("id")


async def accounts_of(wire: OcsSettings, token: str) -> dict[int, str]:
    """The names of all accounts that a token sees, by id, lowest first."""
    async with asking(wire, token) as ocs:
        resellers = await ocs.reseller.list_reseller_account()
    accounts = [account for reseller in resellers for account in reseller.get("account", [])]
    return dict(sorted((account["id"], account.get("name", "")) for account in accounts if "id" in account))


@asynccontextmanager
async def asking(wire: OcsSettings, token: str) -> AsyncGenerator[Ocs]:
    """The client of a token, for one question."""
    pool = OcsPool(Outbound(ocs_limits(wire), ca_file=wire.ca_file), wire, SystemClock())
    try:
        yield pool.for_token(token)
    finally:
        await pool.aclose()


def fix_of(refusal: Refusal) -> str:
    """What to do about it."""
    code = refusal.ocs_code if isinstance(refusal, OcsError) else None
    return FIXES.get(code or 0, ELSEWHERE)
