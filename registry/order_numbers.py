"""Names of a shop's order: its number, which opens nothing, and its access tokens, which open it for whoever has one.

Until 1.0 an order had one id, which was its access token and its key everywhere else. Wherever that id was stored or sent, its former
number stands in its place from then on: computed from the id, so that every place comes to the same number without asking another.
"""

import hashlib
import re

from registry.ids import base32

NUMBER, TOKEN = "onr_", "ord_"
IS_NUMBER = re.compile(r"onr_[0-9a-z]{26}", re.ASCII)
IS_TOKEN = re.compile(r"ord_[0-9a-z]{26}", re.ASCII)


def former_number(token: str) -> str:
    """The number of an order whose id of before was `token`: 130 bits of a hash, from which nobody gets back to the token."""
    return NUMBER + base32(int.from_bytes(hashlib.sha256(f"order number|{token}".encode()).digest()[:17]) >> 6)


def without_tokens(text: str) -> str:
    """The text with the former number in the place of every access token."""
    return IS_TOKEN.sub(lambda found: former_number(found[0]), text)
