"""The one way a session token is turned down."""

from typing import Literal

RefusalCode = Literal["token_expired", "unauthorized"]


class TokenRefused(Exception):
    """The token proves nothing here. The text names the rule and never holds the token or a part of it."""

    def __init__(self, reason: str, code: RefusalCode = "unauthorized") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code: RefusalCode = code
