"""What each refusal of the charging system means, in our words: its own text is never read.

Customers read them, and know operations: what the wire calls its methods is told in the log only.
"""

TEXTS: dict[int, str] = {
    1: "The charging system does not offer what this call needs. Its version may be older; ask the provider for it.",
    2: "The charging system refused the shape of this call: an id, a value or a format it does not accept. Check the values sent.",
    3: "The charging system failed inside while it worked on this call. Try again later; report it to the provider if it stays.",
    4: "The charging system has an entry with this name or number already. Choose another one.",
    5: "The charging system's own data are inconsistent for this call. Report it to the provider.",
    6: "The charging system does not know what this call named. Read the list again for current ids.",
    7: "The charging system's database refused this call. Check names for duplicates, then try again later.",
    8: "The charging system does not accept the token: it has no API account. Connect the account again with a valid token.",
    9: "The charging system does not accept calls from this server's IP address. Have the provider add it to its allow list.",
    10: "The charging system does not accept the reseller. Check the reseller id, or leave it out.",
    11: "What this call named is not visible to this token. Read the list again for ids of your own.",
    12: "The charging system keeps this resource read-only. Ask the provider to change it.",
    13: "The SMS gateway of the charging system failed. Check sender and text, then try again later.",
    14: "The charging system cannot do this in the present state. Read the resource again: it may be active, dated or blocked already.",
    15: "The home register (HLR) refused this call. Check the limit, then try again later.",
    16: "The steering system refused this call. Check that the line has a steering list and was seen in a network.",
    17: "The line has reached its end of life: it takes no more changes. Only the provider can undo that; use another line.",
    18: "The charging system reported a timeout of this call.",
    100: "The charging system's traffic limit is reached; this call was not carried out. Wait, then call again.",
    10001: "The charging system does not know some of the network codes (TADIG); `details` lists them. Correct them.",
    10002: "A zone with the very same networks exists; `details` names it. Use that zone.",
    10003: "Some networks are not in the reseller's tariff; `details` lists them. Leave them out.",
    10004: "Some networks are not offered by the sponsor, or are too expensive; `details` lists them. Leave them out.",
}
OTHER = "The charging system refused this call with code {code}. Ask the provider what it means."
ZONE_METHOD = (
    " The name of what it asks for is undocumented and therefore a setting (the OCS zone method): ask the provider for the right one."
)
UNKNOWN_OUTCOME = " It may have been carried out all the same: read the state before you repeat it."


def refusal_text(code: int) -> str:
    """Our sentence for a status code."""
    return TEXTS.get(code, OTHER).format(code=code)
