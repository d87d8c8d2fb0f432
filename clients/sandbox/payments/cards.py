"""Test cards: what each number stands for, as the real processor's test mode has it."""

from typing import NamedTuple

from clients.sandbox.payments.refusal import Refusal


class Card(NamedTuple):
    """What a payer types in. `name` and `email` are shown on the charge."""

    number: str
    name: str | None = None
    email: str | None = None


class Verdict(NamedTuple):
    """What the card's bank says: a failure's codes and text, or what happens after a success."""

    code: str | None = None
    decline: str | None = None
    message: str | None = None
    risk: str = "normal"
    score: int = 22
    after: str | None = None


BAD = "Your card was declined."
NUMBERS: dict[str, Verdict] = {
    "4242424242424242": Verdict(),
    "5555555555554444": Verdict(),
    "378282246310005": Verdict(),
    "4000000000000077": Verdict(after="available"),
    "4000000000000259": Verdict(after="dispute"),
    "4000000000002685": Verdict(after="dispute_not_received"),
    "4000000000001976": Verdict(after="inquiry"),
    "4000000000009235": Verdict(risk="elevated", score=67, after="review"),
    "4000000000005126": Verdict(after="refund_fails"),
    "4000000000000002": Verdict("card_declined", "generic_decline", BAD),
    "4000000000009995": Verdict("card_declined", "insufficient_funds", "Your card has insufficient funds."),
    "4000000000009987": Verdict("card_declined", "lost_card", BAD),
    "4000000000000069": Verdict("expired_card", "expired_card", "Your card has expired."),
    "4000000000000127": Verdict("incorrect_cvc", "incorrect_cvc", "Your card's security code is incorrect."),
    "4000000000000119": Verdict(
        "processing_error", "processing_error", "An error occurred while processing your card. Try again in a little bit."
    ),
    "4100000000000019": Verdict("card_declined", "fraudulent", BAD, "highest", 88),
}
BRANDS = {"4": "visa", "5": "mastercard", "3": "amex"}
REFUND_FAILS_LAST4 = "5126"
NOT_A_TEST_CARD = Verdict(
    "card_declined", "test_mode_live_card", "Your card was declined. Your request was in test mode, but used a non test card."
)


def digits(number: str) -> str:
    """As people write it, without what they put between."""
    return number.replace(" ", "").replace("-", "")


def verdict_of(number: str) -> Verdict:
    """What the bank says; a number that is none is refused before any bank is asked."""
    found = digits(number)
    if not (found.isascii() and found.isdecimal() and 12 <= len(found) <= 19 and luhn(found)):
        raise Refusal("Your card number is incorrect.", status=402, type="card_error", code="incorrect_number", param="number")
    return NUMBERS.get(found, NOT_A_TEST_CARD)


def brand_of(number: str) -> str:
    """Whose network it is."""
    return BRANDS.get(digits(number)[:1], "unknown")


def luhn(number: str) -> bool:
    """The check digit is right."""
    places = [int(digit) for digit in reversed(number)]
    return sum(places[::2] + [sum(divmod(2 * digit, 10)) for digit in places[1::2]]) % 10 == 0
