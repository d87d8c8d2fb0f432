"""Whether the payment processor answers, and accepts the service's key: `doctor` asks."""

import asyncio
from dataclasses import replace

from clients.http import Outbound
from clients.payments.client import PROCESSOR_LIMITS, ProcessorClient
from clients.payments.failure import KeyRefused
from registry.errors import Refusal
from transports.cli.certificate_check import unanswered
from transports.cli.finding import Finding
from transports.payments import processor_settings
from transports.settings import Settings

SECONDS = 5.0
ELSEWHERE = "check SERVICE_PAYMENTS_URL, and that this machine may reach it"
KEY = "set SERVICE_PAYMENTS_KEY to a secret key as the processor's dashboard shows it, or let the restricted one do more"
OTHER_MONEY = "set SERVICE_PAYMENTS_KEY to a key of this processor: the answer is not about the money that the key names"


def payments(settings: Settings) -> Finding:
    """Simulated, or asked for the service's own balance, which changes nothing."""
    if settings.simulates_payments:
        return Finding("payments", "simulated processor in this process; SERVICE_PAYMENTS_KEY names a real one")
    where = settings.payments_url or "the processor"
    try:
        expected, live = asyncio.run(money(settings))
    except KeyRefused:
        return Finding("payments", f"{where} does not accept our key, or not for reading the balance", KEY)
    except Refusal as refusal:
        return unanswered("payments", where, refusal.message, ELSEWHERE, settings)
    if live != expected:
        return Finding("payments", f"{where} answers for {kind(live)}", OTHER_MONEY)
    return Finding("payments", f"{where} accepts our key, {kind(live)}" + ("" if settings.payments_client_id else ", no OAuth client"))


async def money(settings: Settings) -> tuple[bool, bool]:
    """Whether the key says that money is real, and whether the processor does."""
    wire = replace(processor_settings(settings), total_seconds=SECONDS, pauses=())
    processor = ProcessorClient(wire, Outbound(PROCESSOR_LIMITS, ca_file=settings.ca_file))
    try:
        return processor.live, (await processor.own_balance()).live
    finally:
        await processor.aclose()


def kind(live: bool) -> str:
    """What money it is."""
    return "REAL money" if live else "test money"
