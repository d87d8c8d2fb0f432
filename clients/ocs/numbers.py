"""Numbers as the wire writes them: as numbers, in quotes, with a decimal comma."""

import re
from typing import cast

from clients.ocs.failure import Unreadable
from clients.ocs.wire.members import Json

MOST = 2**53 - 1
"""What every reader of JSON holds exactly; no id is larger."""
DIGITS = re.compile(r"-?[0-9]{1,19}")
NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


def integer(value: Json) -> int:
    """A whole number, written as one or as a string of digits; one that is too large for our own answers is none."""
    if isinstance(value, str) and DIGITS.fullmatch(value):
        value = int(value)
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    if not whole or not -MOST <= cast("float", value) <= MOST:
        raise Unreadable("a whole number is expected")
    return int(cast("float", value))


def decimal(value: Json) -> float:
    """A number, or a text that is one."""
    found = balance_amount(value) if isinstance(value, str | float | int) else None
    if found is None:
        raise Unreadable("a number is expected")
    return found


def balance_amount(text: str | float | None) -> float | None:
    """A balance as a number: the wire writes "1530,20", some servers "1530.20" or a number. None when it is none of these."""
    if not isinstance(text, str):
        return None if text is None or isinstance(text, bool) else float(text)
    plain = text.strip().replace("\u00a0", "").replace(" ", "")
    if "," in plain:  # dots before a decimal comma part the thousands
        plain = plain.replace(".", "").replace(",", ".")
    return float(plain) if NUMBER.fullmatch(plain) else None
