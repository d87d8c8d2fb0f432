"""One simulated payment processor: its API, its pages, its state and its webhooks."""

from collections.abc import Callable
from pathlib import Path


class PaymentsSandbox:
    """A processor with a platform account and connected accounts, in memory, or kept in a file."""

    def __init__(
        self,
        *,
        wall: Callable[[], float],
        pages_url: str,
        key: str,
        webhook_secret: str,
        webhook_url: str = "",
        state_file: Path | None = None,
        seed: int = 1,
    ) -> None:
        """`pages_url`: where people reach its pages. `webhook_url`: where its events go. `wall`: the time it believes in."""
        self.wall, self.pages_url, self.key = wall, pages_url, key
        self.webhook_secret, self.webhook_url, self.state_file, self.seed = webhook_secret, webhook_url, state_file, seed
