"""Where the payment processor is, and who the service is there."""

from dataclasses import dataclass, field

CHECKOUT_ORIGIN = "https://checkout.stripe.com"


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """Where the processor is, and who the service is there. Empty addresses are the vendor's own."""

    key: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    client_id: str = ""
    checkout_origin: str = CHECKOUT_ORIGIN
    url: str = ""
    connect_url: str = ""
    total_seconds: float = 20.0
    """For a call with everything that is repeated of it, and the wait for a place."""
    calls_of_one: int = 8
    """Calls under way in one connected account, or in the service's own: one that hangs leaves connections to the others."""
    place_seconds: float = 5.0
    """How long one more of its calls waits for a place."""
    pauses: tuple[float, ...] = (0.25, 1.0)
    """Seconds before a write is sent again, each time; a read is repeated after the first one only."""
