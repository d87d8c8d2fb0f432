"""The payment processor over its vendor's own library, with our one outbound seam beneath it."""

from dataclasses import dataclass, field

from clients.http import Outbound, OutboundLimits


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """Where the processor is, and who the service is there. Empty addresses are the vendor's own."""

    key: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    client_id: str = ""
    url: str = ""
    connect_url: str = ""


PROCESSOR_LIMITS = OutboundLimits(connections=50, total_seconds=20.0)


class ProcessorClient:
    """A processor, opened on its first call."""

    def __init__(self, settings: ProcessorSettings, outbound: Outbound) -> None:
        self._settings, self._outbound = settings, outbound

    @property
    def live(self) -> bool:
        """Real money moves."""
        return "_live_" in self._settings.key[:8]

    async def aclose(self) -> None:
        """Close all connections."""
        await self._outbound.aclose()
