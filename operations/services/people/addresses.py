"""E-mail addresses as people type them, and as they are compared."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

LONGEST = 254  # RFC 5321 section 4.5.3.1.3: a path has 256 characters, two of them the angle brackets
# "Valid e-mail address" of the WHATWG: https://html.spec.whatwg.org/multipage/input.html#valid-e-mail-address, so that what a browser's
# form lets through is not refused here. It is a wilful violation of RFC 5322: no quoted local parts, no comments, no literal addresses.
VALID = re.compile(
    r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+"
    r"@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
RULE = "must be one e-mail address such as ada@example.com, without a name and of at most 254 characters"


def is_address(text: str) -> bool:
    """Whether mail can be sent there, as far as its spelling tells."""
    return len(text) <= LONGEST and VALID.fullmatch(text) is not None


def checked(text: str) -> str:
    """The address; ValueError with the rule otherwise."""
    if not is_address(text):
        raise ValueError(RULE)
    return text


def normal(address: str) -> str:
    """The spelling under which an address is known, and to which its mail is sent.

    Choice: lower case in whole. Servers that tell `Ada@` from `ada@` are none known; if mail went to the spelling that was typed, there
    somebody with the one could become the person with the other.
    """
    return address.lower()


def mailbox(address: str) -> str:
    """Whose mail it is: what stands behind a plus sign is the same person's, too."""
    name, _, domain = normal(address).partition("@")
    return f"{name.partition('+')[0]}@{domain}"


Email = Annotated[
    str, Field(min_length=3, max_length=LONGEST, description="E-mail address, at most 254 characters."), AfterValidator(checked)
]
