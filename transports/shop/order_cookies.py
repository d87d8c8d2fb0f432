"""The cookie that opens an order in the browser that it was begun in: the page's address, which the processor is told, opens nothing."""

import re
from collections.abc import Mapping, Sequence

from registry.order_numbers import IS_TOKEN, NUMBER

MOST = 10
# Choice: as long as most eSIMs last. Afterwards the link in the mail opens the page, as it does in every other browser from the start.
SECONDS = 30 * 86_400
NAME = re.compile(r"(?:__Secure-)?order_([0-9a-z]{26})", re.ASCII)


class OrderCookies:
    """Names and flags: one cookie for each order, sent to the pages of shops alone."""

    def __init__(self, *, root: str, secure: bool) -> None:
        self._prefix = "__Secure-order_" if secure else "order_"
        self._flags = f"; Path={root}/shop; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")

    def token(self, cookies: Mapping[str, str], number: str) -> str | None:
        """The token that a browser shows for an order."""
        found = cookies.get(self._prefix + number.removeprefix(NUMBER), "")
        return found if IS_TOKEN.fullmatch(found) else None

    def setting(self, cookies: Mapping[str, str], number: str, token: str) -> Sequence[str]:
        """Set-Cookie headers: the order's cookie, and the end of the oldest ones where the browser has too many."""
        name = self._prefix + number.removeprefix(NUMBER)
        # Numbers begin with the time, so the names of the newest orders are the last.
        others = sorted(other for other in cookies if NAME.fullmatch(other) and other != name)
        ended = [f"{other}=; Max-Age=0{self._flags}" for other in others[: max(0, len(others) - MOST + 1)]]
        return [f"{name}={token}; Max-Age={SECONDS}{self._flags}", *ended]
