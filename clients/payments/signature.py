"""The processor's signatures, by its own library. Imported with it, on the first webhook."""

from typing import Protocol, cast

from clients.payments.vendor import stripe


class Verifier(Protocol):
    """The one of the library's methods that is needed, which it leaves without a type."""

    def verify_header(self, payload: bytes, header: str, secret: str) -> bool:
        """True, or an error."""
        ...


VERIFIER = cast("Verifier", stripe.WebhookSignature)


def fits(body: bytes, signature: str, secret: str) -> bool:
    """Whether one of the signatures is this secret's over these bytes. The time is looked at elsewhere."""
    try:
        return VERIFIER.verify_header(body, signature, secret)
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        return False
