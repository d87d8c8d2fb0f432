"""What each status code of the charging system means: our words, and what would end the refusal. Its own text is never read.

Customers read the words, and know operations: what the wire calls its methods is told in the log only.
"""

from typing import Literal, NamedTuple

Cure = Literal["repeat", "input", "state"]
"""What ends a refusal: calling again later, perhaps after the provider has mended something (502); other input (400); another state of
what is named (409)."""


class Meaning(NamedTuple):
    """One status code, in our words."""

    text: str
    cure: Cure = "repeat"


MEANINGS: dict[int, Meaning] = {
    1: Meaning("The charging system does not offer what this call needs. Its version may be older; ask the provider for it."),
    2: Meaning(
        "The charging system refused the shape of this call: an id, a value or a format it does not accept. Check the values sent.", "input"
    ),
    3: Meaning("The charging system failed inside while it worked on this call. Try again later; report it to the provider if it stays."),
    4: Meaning("The charging system has an entry with this name or number already. Choose another one.", "state"),
    5: Meaning("The charging system's own data are inconsistent for this call. Report it to the provider."),
    6: Meaning("The charging system does not know what this call named. Read the list again for current ids.", "input"),
    7: Meaning("The charging system's database refused this call. Check names for duplicates, then try again later."),
    8: Meaning("The charging system does not accept the token: it has no API account. Connect the account again with a valid token."),
    9: Meaning("The charging system does not accept calls from this server's IP address. Have the provider add it to its allow list."),
    10: Meaning("The charging system does not accept the reseller. Check the reseller id, or leave it out.", "input"),
    11: Meaning("What this call named is not visible to this token. Read the list again for ids of your own.", "input"),
    12: Meaning("The charging system keeps this resource read-only. Ask the provider to change it.", "state"),
    13: Meaning("The SMS gateway of the charging system failed. Check sender and text, then try again later."),
    14: Meaning(
        "The charging system cannot do this in the present state. Read the resource again: it may be active, dated or blocked already.",
        "state",
    ),
    15: Meaning("The home register (HLR) refused this call. Check the limit, then try again later."),
    16: Meaning("The steering system refused this call. Check that the line has a steering list and was seen in a network."),
    17: Meaning("The line has reached its end of life: it takes no more changes. Only the provider can undo that; use another line."),
    18: Meaning("The charging system reported a timeout of this call."),
    100: Meaning("The charging system's traffic limit is reached; this call was not carried out. Wait, then call again."),
    10001: Meaning("The charging system does not know some of the network codes (TADIG); `details` lists them. Correct them.", "input"),
    10002: Meaning("A zone with the very same networks exists; `details` names it. Use that zone.", "state"),
    10003: Meaning("Some networks are not in the reseller's tariff; `details` lists them. Leave them out.", "input"),
    10004: Meaning("Some networks are not offered by the sponsor, or are too expensive; `details` lists them. Leave them out.", "input"),
}
OTHER = "The charging system refused this call with code {code}. Ask the provider what it means."
ZONE_METHOD = (
    " The name of what it asks for is undocumented and therefore a setting (the OCS zone method): ask the provider for the right one."
)
UNKNOWN_OUTCOME = " It may have been carried out all the same: read the state before you repeat it."
OF_METHOD: dict[tuple[str, int], Meaning] = {
    ("createLocationZone", 4): Meaning("A location zone with this name exists already. Choose another name.", "state"),
    ("createPrepaidPackageTemplate", 4): Meaning(
        "A package template with this name exists already, perhaps a deleted one. Choose another name.", "state"
    ),
    ("createPrepaidPackageTemplate", 7): Meaning(
        "The charging system's database refused this template. A template with this name may exist already: choose another name, or try "
        "again later."
    ),
    ("modifyPPTCore", 4): Meaning("Another package template has this name, perhaps a deleted one. Choose another name.", "state"),
    ("affectSubscriberRealPhoneNumber", 4): Meaning("Another line has this phone number. Choose a number that is free.", "state"),
    ("modifyAccountBalance", 12): Meaning(
        "The charging system lets nobody change the balance of this account: an account that only takes packages has none.", "state"
    ),
    ("moveSubscriberRangeToAccount", 14): Meaning(
        "The charging system cannot move these lines so; none was moved. The network profile has to belong to the destination's reseller "
        "and to the sponsor of every SIM in the range.",
        "state",
    ),
    ("pushSteeringToSubs", 14): Meaning(
        "The charging system does not know which country the line is in, so there is nothing to steer. Push again after it was seen in a "
        "network.",
        "state",
    ),
    ("sendMtSms", 14): Meaning("The line is not active, so it takes no messages. Activate it with modify_subscriber_status.", "state"),
}
"""Where a code means something of its own for one method of the wire."""


def meaning_of(method: str, code: int) -> Meaning:
    """What a status code means as the answer to a method."""
    return OF_METHOD.get((method, code)) or MEANINGS.get(code) or Meaning(OTHER.format(code=code))
