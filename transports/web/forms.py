"""Forms are taken only from our own pages, as they were shown to this browser."""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import NoReturn

from registry.errors import Forbidden
from transports.http.asgi import Headers

CSRF_FIELD = "csrf"
OWN_SITES = (b"same-origin", b"none")


class NotOurForm(Forbidden):
    """The form did not come from a page of ours that this browser was shown."""

    code = "form_not_ours"


class FormSeals:
    """Keyed digests: the first key makes them, all of them check, so that a change of keys breaks no open page."""

    def __init__(self, keyring_text: str) -> None:
        """Replicas with one keyring make the same ones; nothing else uses these keys."""
        parts = [key.strip() for key in keyring_text.split(",") if key.strip()]
        self._keys: Sequence[bytes] = [hashlib.sha256(b"web-forms|" + part.encode()).digest() for part in parts]

    def make(self, purpose: str, text: str) -> str:
        return make_seal(self._keys[0], purpose, text)

    def good(self, given: str, purpose: str, text: str) -> bool:
        """Whether `given` is the seal of `text` for `purpose`, checked in constant time."""
        presented = hashlib.sha256(given.encode()).digest()
        checks = [hmac.compare_digest(presented, hashlib.sha256(make_seal(key, purpose, text).encode()).digest()) for key in self._keys]
        return any(checks)


def make_seal(key: bytes, purpose: str, text: str) -> str:
    """HMAC-SHA256 as text."""
    digest = hmac.digest(key, f"{purpose}|{text}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def check_sender(headers: Headers, origin: str) -> None:
    """Where the browser says the form was sent from; a browser that says neither has the form's token alone to show."""
    said = dict(headers)
    if said.get(b"origin", origin.encode()) != origin.encode():
        refuse_form()
    if said.get(b"sec-fetch-site", b"same-origin") not in OWN_SITES:
        refuse_form()


def refuse_form() -> NoReturn:
    """Raises NotOurForm with the same text whatever was wrong, so that a forger learns nothing."""
    raise NotOurForm(
        "This form was not sent from a page that we showed to this browser, or that page is too old; nothing was changed",
        hint="Go back, load the page again and send it once more; cookies of this site must be allowed",
    )
