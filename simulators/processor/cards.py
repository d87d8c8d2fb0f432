"""Test cards: what each number stands for, as the real processor's test mode has it, and the names by which people choose them."""

from typing import NamedTuple

from simulators.processor.call import ProcessorRefusal

DECLINED_TEXT = "Your card was declined."
CARD_BRANDS = {"4": "visa", "5": "mastercard", "3": "amex"}
NAMED_CARDS = {
    "pays": ("4242424242424242", "4242 4242 4242 4242: pays"),
    "pays_at_once": ("4000000000000077", "4000 0000 0000 0077: pays, and the money is at hand at once"),
    "declined": ("4000000000000002", "4000 0000 0000 0002: is declined"),
    "no_funds": ("4000000000009995", "4000 0000 0000 9995: has no funds"),
    "disputed": ("4000000000000259", "4000 0000 0000 0259: pays, and its owner disputes it at once"),
    "reviewed": ("4000000000009235", "4000 0000 0000 9235: pays, and is held up for review"),
}
USUAL_CARD = "pays"
CARD_CHOICES = [(name, text) for name, (_, text) in NAMED_CARDS.items()]


class SimulatedCard(NamedTuple):
    """What a payer types in. `name` and `email` are shown on the charge."""

    number: str
    name: str | None = None
    email: str | None = None


class CardVerdict(NamedTuple):
    """What the card's bank says: a failure's codes and text, or what happens after a success."""

    code: str | None = None
    decline: str | None = None
    message: str | None = None
    risk: str = "normal"
    score: int = 22
    after: str | None = None


TEST_CARDS: dict[str, CardVerdict] = {
    "4242424242424242": CardVerdict(),
    "5555555555554444": CardVerdict(),
    "378282246310005": CardVerdict(),
    "4000000000000077": CardVerdict(after="available"),
    "4000000000000259": CardVerdict(after="dispute"),
    "4000000000002685": CardVerdict(after="dispute_not_received"),
    "4000000000001976": CardVerdict(after="inquiry"),
    "4000000000009235": CardVerdict(risk="elevated", score=67, after="review"),
    "4000000000005126": CardVerdict(after="refund_fails"),
    "4000000000000002": CardVerdict("card_declined", "generic_decline", DECLINED_TEXT),
    "4000000000009995": CardVerdict("card_declined", "insufficient_funds", "Your card has insufficient funds."),
    "4000000000009987": CardVerdict("card_declined", "lost_card", DECLINED_TEXT),
    "4000000000000069": CardVerdict("expired_card", "expired_card", "Your card has expired."),
    "4000000000000127": CardVerdict("incorrect_cvc", "incorrect_cvc", "Your card's security code is incorrect."),
    "4000000000000119": CardVerdict(
        "processing_error", "processing_error", "An error occurred while processing your card. Try again in a little bit."
    ),
    "4100000000000019": CardVerdict("card_declined", "fraudulent", DECLINED_TEXT, "highest", 88),
}


NOT_A_TEST_CARD = CardVerdict(
    "card_declined", "test_mode_live_card", "Your card was declined. Your request was in test mode, but used a non test card."
)


def card_digits(number: str) -> str:
    return number.replace(" ", "").replace("-", "")


def card_verdict(number: str) -> CardVerdict:
    """What the bank says. Raises ProcessorRefusal (402) for a number that no card can have."""
    found = card_digits(number)
    if not (found.isascii() and found.isdecimal() and 12 <= len(found) <= 19 and _has_check_digit(found)):
        raise ProcessorRefusal("Your card number is incorrect.", status=402, type="card_error", code="incorrect_number", param="number")
    return TEST_CARDS.get(found, NOT_A_TEST_CARD)


def card_brand(number: str) -> str:
    return CARD_BRANDS.get(card_digits(number)[:1], "unknown")


def _has_check_digit(number: str) -> bool:
    places = [int(digit) for digit in reversed(number)]
    return sum(places[::2] + [sum(divmod(2 * digit, 10)) for digit in places[1::2]]) % 10 == 0


def find_named_card(name: str, *, owner: str | None = None, email: str | None = None) -> SimulatedCard | None:
    found = NAMED_CARDS.get(name)
    return None if found is None else SimulatedCard(found[0], owner, email)
