"""Whether the charging system answers, and as whom it knows the service: `reseller doctor` asks."""

import asyncio
from dataclasses import replace

from clients.http import Outbound
from clients.ocs.pool import OcsPool, ocs_limits
from clients.ocs.settings import OcsSettings
from registry.clock import SystemClock
from registry.errors import OcsError, Refusal
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
        code = refusal.ocs_code if isinstance(refusal, OcsError) else None
        return Finding("upstream", f"{settings.ocs_url}: {refusal.message}", FIXES.get(code or 0, ELSEWHERE))
    return Finding("upstream", f"{settings.ocs_url} answers as reseller {reseller}")


async def whose(wire: OcsSettings, token: str) -> int | None:
    """The reseller a token belongs to: the cheapest question there is, and it changes nothing."""
    pool = OcsPool(Outbound(ocs_limits(wire)), wire, SystemClock())
    try:
        return (await pool.for_token(token).reseller.get_reseller_info()).get("id")
    finally:
        await pool.aclose()
