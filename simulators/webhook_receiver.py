"""A receiver of webhooks without a socket, for whoever has none that the service may reach: the path says how it answers."""

import re
from collections.abc import Mapping

from simulators.server import WireAnswer

RECEIVER_STATUS = re.compile(r"/status/([2-5][0-9][0-9])", re.ASCII)


class SimulatedReceiver:
    """Answers `/status/500` with 500, and every other path with 200. It keeps nothing of what it is told."""

    async def handle(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> WireAnswer:
        """One post of a webhook; whatever it holds makes no difference."""
        del method, query, headers, body
        found = RECEIVER_STATUS.fullmatch(path)
        return WireAnswer(200 if found is None else int(found[1]), b"{}")
