"""How long a short message is: GSM 7-bit (3GPP TS 23.038 6.2.1), or UCS-2 as soon as one character makes all of it Unicode."""

from typing import NamedTuple

from clients.ocs.messages import escaped

BASIC = frozenset("@$\n\r_ !\"#%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
EXTENDED = frozenset("^{}\\[~]|")
MOST_SEPTETS = 160
MOST_UNITS = 70


class Measured(NamedTuple):
    """The alphabet, and the length in its units: septets, or UTF-16 code units."""

    unicode: bool
    length: int

    @property
    def most(self) -> int:
        """What fits into one message."""
        return MOST_UNITS if self.unicode else MOST_SEPTETS


def measured(text: str) -> Measured:
    """A character of the extension table takes two septets; one outside the basic plane takes two units.

    Choice: what travels escaped is Unicode to the charging system, so é or £ are, too, though the GSM alphabet has them.
    """
    if escaped(text) == text and all(character in BASIC or character in EXTENDED for character in text):
        return Measured(False, sum(2 if character in EXTENDED else 1 for character in text))
    return Measured(True, len(text.encode("utf-16-le")) // 2)
