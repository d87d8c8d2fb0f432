"""Referral codes: who brought an organisation."""

import re
from typing import Literal

from registry.errors import Conflict
from registry.ids import Ids
from storage.connection import Connection
from storage.people.affiliates import Affiliate, affiliate_of, affiliate_with, join, refer, referral_of, share_people

# Letters and digits that nobody takes for one another when they are read out: no 0 and O, no 1 and I.
ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
CODE = re.compile(f"[{ALPHABET}]{{8}}")


def normal(code: str) -> str:
    """The code as it is kept: typed in lower case, or with space around it, it is the same."""
    return code.strip().upper()


def owner_of(connection: Connection, code: str) -> Affiliate | None:
    """Whose code this is."""
    kept = normal(code)
    return affiliate_with(connection, code=kept) if CODE.fullmatch(kept) else None


def known(connection: Connection, *, code: str) -> bool:
    """Whether the code is somebody's."""
    return owner_of(connection, code) is not None


def attach(connection: Connection, *, organisation: str, person: str, code: str, now: float) -> Literal["attached", "self", "unknown"]:
    """Keep that the code's owner brought the organisation. Conflict when somebody else did before.

    Choice: nobody brings themselves: a code is refused as one's own when the person, or any member of the organisation, is a member
    of the one whose code it is.
    """
    affiliate = owner_of(connection, code)
    if affiliate is None:
        return "unknown"
    theirs = affiliate.organisation
    if theirs == organisation or share_people(connection, affiliate=theirs, organisation=organisation, person=person):
        return "self"
    if not refer(connection, organisation=organisation, affiliate=theirs, now=now):
        before = referral_of(connection, organisation=organisation)
        if before is not None and before.affiliate != theirs:
            raise taken()
    return "attached"


def taken() -> Conflict:
    """An organisation is brought once, by one."""
    return Conflict(
        "referral_code: your organisation has been referred with another code before, and the first one stays",
        code="already_referred",
        param="referral_code",
        hint="Leave it as it is: a referral cannot be changed",
    )


def take_in(connection: Connection, *, organisation: str, now: float, ids: Ids) -> tuple[Affiliate, bool]:
    """The organisation as an affiliate, and whether it is new as one. A code that happens to be somebody's is drawn again."""
    while True:
        new = join(connection, organisation=organisation, code=new_code(ids), now=now)
        affiliate = affiliate_of(connection, organisation=organisation)
        if affiliate is not None:
            return affiliate, new


def new_code(ids: Ids) -> str:
    """40 random bits as 8 characters."""
    return "".join(ALPHABET[byte & 31] for byte in ids.bytes(8))
