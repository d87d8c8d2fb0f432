"""Signatures of deliveries: Standard Webhooks, and the scheme that clients of the existing service verify."""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence

WEBHOOK_SECRET_PREFIX = "whsec_"
SIGNATURE_TOLERANCE_SECONDS = 300
WEBHOOK_SECRET_BYTES = 32


class BadWebhookSignature(Exception):
    """The message is not proven to come from a holder of the secret. `reason` may be shown to the sender."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def new_webhook_secret(random_bytes: bytes) -> str:
    """A signing secret from 32 random bytes of the caller's source."""
    if len(random_bytes) != WEBHOOK_SECRET_BYTES:
        raise ValueError(f"random_bytes: {len(random_bytes)} bytes given, a signing secret takes {WEBHOOK_SECRET_BYTES}.")
    return WEBHOOK_SECRET_PREFIX + base64.b64encode(random_bytes).decode("ascii")


def sign_delivery(secrets: Sequence[str], event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Headers of one attempt. Several secrets (newest first) during a rotation; the exact bytes of the body."""
    if not secrets:
        raise ValueError("secrets: none given, a delivery is always signed.")
    if "." in event_id:
        raise ValueError(f"event_id: {event_id!r} has a dot, which separates the parts of the signed text.")
    standard = [f"v1,{_standard_signature(secret, event_id, timestamp, body)}" for secret in secrets]
    connectivity = [f"v1={_connectivity_signature(secret, timestamp, body)}" for secret in secrets]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(standard),
        "Connectivity-Signature": ",".join([f"t={timestamp}", *connectivity]),
    }


def verify_webhook_signature(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Check an inbound Standard Webhooks message (header names in lower case); raises BadWebhookSignature. `now`: Unix seconds."""
    event_id = headers.get("webhook-id", "")
    stamp = headers.get("webhook-timestamp", "")
    given = headers.get("webhook-signature", "")
    if not (event_id and stamp and given):
        raise BadWebhookSignature("Send webhook-id, webhook-timestamp and webhook-signature together.")
    timestamp = _signed_timestamp(stamp)
    if abs(now - timestamp) > SIGNATURE_TOLERANCE_SECONDS:
        raise BadWebhookSignature(f"webhook-timestamp is more than {SIGNATURE_TOLERANCE_SECONDS} seconds from the time here.")
    if not _any_signature_matches(given, [_standard_signature(secret, event_id, timestamp, body) for secret in secrets]):
        raise BadWebhookSignature("No v1 member of webhook-signature matches the body as received and the shared secret.")


def _signed_timestamp(stamp: str) -> int:
    # The canonical form only: the signed text has the number as written, and `int` reads far more than that.
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12) or (len(stamp) > 1 and stamp[0] == "0"):
        raise BadWebhookSignature("webhook-timestamp must be whole Unix seconds.")
    return int(stamp)


def _any_signature_matches(given: str, expected: Sequence[str]) -> bool:
    matched = False
    for member in given.split(" "):
        version, _, value = member.partition(",")
        for signature in expected:  # no early exit: the time taken tells nothing
            matched |= version == "v1" and hmac.compare_digest(value.encode(), signature.encode())
    return matched


def _standard_signature(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    content = f"{event_id}.{timestamp}.".encode() + body
    return base64.b64encode(hmac.digest(_signing_key(secret), content, hashlib.sha256)).decode("ascii")


def _connectivity_signature(secret: str, timestamp: int, body: bytes) -> str:
    """The key is the whole secret as text, prefix included: so do the receivers of the existing service."""
    return hmac.digest(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hex()


def _signing_key(secret: str) -> bytes:
    text = secret.removeprefix(WEBHOOK_SECRET_PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)  # other senders leave the padding out
    except ValueError:
        key = b""
    if not key:  # an empty key would verify what anyone signs; the secret itself is not repeated
        raise ValueError("A signing secret is whsec_ and base64 of random bytes; this one is not.") from None
    return key
