"""Test cards as people choose them: no number is ever typed in."""

from clients.sandbox.payments.acts import Card

CARDS = {
    "pays": ("4242424242424242", "4242 4242 4242 4242: pays"),
    "pays_at_once": ("4000000000000077", "4000 0000 0000 0077: pays, and the money is at hand at once"),
    "declined": ("4000000000000002", "4000 0000 0000 0002: is declined"),
    "no_funds": ("4000000000009995", "4000 0000 0000 9995: has no funds"),
    "disputed": ("4000000000000259", "4000 0000 0000 0259: pays, and its owner disputes it at once"),
    "reviewed": ("4000000000009235", "4000 0000 0000 9235: pays, and is held up for review"),
}
USUAL = "pays"
CHOICES = [(name, text) for name, (_, text) in CARDS.items()]


def card_named(name: str, *, owner: str | None = None, email: str | None = None) -> Card | None:
    """The card that was chosen."""
    found = CARDS.get(name)
    return None if found is None else Card(found[0], owner, email)
