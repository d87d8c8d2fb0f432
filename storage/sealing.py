"""Secrets at rest: AES-256-GCM, bound to their organisation and field, so that a ciphertext moved to another row does not open.

What binds each sealed value to its row is the `field` that its writers, its readers and `rekey` name to the keyring.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from registry.errors import KeyUnknown

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12

KEY_BYTES = 32

STANDARD_BASE64 = bytes.maketrans(b"-_", b"+/")

KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")

KEYRING_FORM = "kid:base64key, several separated by commas; the first one encrypts"


class WrongSeal(Exception):
    """A value was sealed for another organisation or field, or was changed since."""


class Keyring:
    """Named keys: the first encrypts, all decrypt. A key is good for 2^32 seals; rotate long before."""

    __slots__ = ("_ciphers", "_current", "_keys", "_random_bytes", "_read_changed", "_tell_missing")

    def __init__(
        self,
        setting: str,
        random_bytes: Callable[[int], bytes],
        *,
        read_changed: Callable[[], str | None] = lambda: None,
        tell_missing: Callable[[str], None] = lambda key_id: None,
    ) -> None:
        """`read_changed` returns the setting again where it has changed since it was read last, else None.

        `tell_missing` is given the id of a key that a stored value needs and that is not here.
        """
        self._keys = parse_keyring(setting)
        self._read_changed, self._tell_missing = read_changed, tell_missing
        self._current = next(iter(self._keys))
        self._random_bytes = random_bytes
        self._ciphers: dict[str, AESGCM] = {}

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self._keys)})"

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The keys' names, the one that encrypts first."""
        return tuple(self._keys)

    def learn(self) -> tuple[str, ...]:
        """Adds the keys that the setting has gained since it was read; returns their ids.

        Which key encrypts does not change before the process is started again: the start asks whether all other processes know that key.
        """
        changed = self._read_changed()
        try:
            read = {} if changed is None else parse_keyring(changed)
        except ValueError:
            return ()  # a file that is being written, or a mistake that the next start names
        gained = {key_id: key for key_id, key in read.items() if key_id not in self._keys}
        self._keys = {**self._keys, **gained}
        return tuple(gained)

    def seal(self, text: str, *, org_id: str, field: str) -> str:
        """`kid.nonce.ciphertext`; every seal of the same text looks different."""
        nonce = self._random_bytes(NONCE_BYTES)
        sealed = self._cipher(self._current).encrypt(nonce, text.encode(), associated_data(org_id, field))
        return f"{self._current}.{encode_base64(nonce)}.{encode_base64(sealed)}"

    def open(self, sealed: str, *, org_id: str, field: str) -> str:
        """The text of `sealed`. Raises WrongSeal when it was sealed for another `org_id` or `field`, or was changed.

        Raises KeyUnknown when the key that sealed it is not here, and ValueError when it has not the form of a sealed value.
        """
        parts = sealed.split(".")
        if len(parts) != 3:
            raise ValueError(f"a sealed value has three parts separated by dots (kid.nonce.ciphertext), this one has {len(parts)}")
        key_id, nonce, ciphertext = parts
        if key_id not in self._keys and KEY_ID.fullmatch(key_id) is None:
            raise ValueError("a sealed value begins with the id of a key, this one does not")
        if key_id not in self._keys and key_id not in self.learn():
            self._tell_missing(key_id)
            raise KeyUnknown(key_id)
        cipher, bound = self._cipher(key_id), associated_data(org_id, field)
        try:
            return cipher.decrypt(decode_base64(nonce), decode_base64(ciphertext), bound).decode()
        except load_cryptography()[1] as error:
            raise WrongSeal from error

    def _cipher(self, key_id: str) -> "AESGCM":
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            cipher = self._ciphers[key_id] = load_cryptography()[0](self._keys[key_id])
        return cipher


def load_cryptography():  # noqa: ANN201  # the type checker infers both classes
    """The cipher, and what it raises. Imported with the first value that is sealed or opened: slow, and not every start needs it."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM, InvalidTag


def new_key_setting(random_bytes: Callable[[int], bytes]) -> str:
    """A new key in the form the setting takes, with a name of its own."""
    return f"k{random_bytes(4).hex()}:{base64.b64encode(random_bytes(KEY_BYTES)).decode()}"


def parse_keyring(setting: str) -> dict[str, bytes]:
    """The keys of a setting. Its errors name positions and key ids, never key material."""
    keys: dict[str, bytes] = {}
    for number, entry in enumerate(setting.split(","), start=1):
        key_id, colon, material = entry.strip().partition(":")
        if not colon or not KEY_ID.fullmatch(key_id):
            raise ValueError(f"key {number} of the keyring has no valid name before a colon; the form is {KEYRING_FORM}")
        if key_id in keys:
            raise ValueError(f"the keyring names {key_id!r} twice; give every key its own name")
        keys[key_id] = decode_key(key_id, material)
    return keys


def decode_key(key_id: str, material: str) -> bytes:
    """One key from base64, standard or URL-safe."""
    try:
        key = decode_base64(material.rstrip("=").translate(str.maketrans("+/", "-_")))
    except (binascii.Error, UnicodeEncodeError):
        # `from None`: the cause would show the material.
        raise ValueError(f"key {key_id!r} of the keyring is not base64; the form is {KEYRING_FORM}") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"key {key_id!r} of the keyring has {len(key)} bytes; AES-256 takes {KEY_BYTES}")
    return key


def associated_data(org_id: str, field: str) -> bytes:
    """The associated data; the field comes last and may hold the separator, the organisation may not, or two pairs could read alike."""
    if "|" in org_id:
        raise ValueError("an organisation id holds '|', which separates it from the field in the associated data")
    return f"v1|{org_id}|{field}".encode()


def encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64(text: str) -> bytes:
    # urlsafe_b64decode would skip foreign characters silently.
    return binascii.a2b_base64(text.encode("ascii").translate(STANDARD_BASE64) + b"=" * (-len(text) % 4), strict_mode=True)


OWN_TOKEN_FIELD = "own_token"
"""An organisation's own token, and the former one: a change moves one to the other's table, so both are bound alike."""

TYPED_TOKEN_FIELD = "typed_own_token"
"""An own token that waits in a form until its change is confirmed."""


UNSUBSCRIBE_FIELD = "unsubscribe"
"""What the link in a mail ends: whose mails of which kind. It lies in the mail alone."""

ERASURE_KEY_FIELD = "erasure_key"
"""The key of an organisation's digests of erased buyers."""


def esim_field(intent: str) -> str:
    """The eSIM of an intent, or of a shop's order."""
    return f"esim|{intent}"


def webhook_secret_field(endpoint: str) -> str:
    """A webhook endpoint's signing secrets: a rotation moves one to the other column, so both are bound alike."""
    return f"webhook|{endpoint}"


def claim_field(operation: str, key: str) -> str:
    """The stored answer of an idempotency key."""
    return f"claim|{operation}|{key}"


def schedule_mail_field(schedule: str) -> str:
    """The share link of a schedule whose reports are mailed."""
    return f"schedule_mail|{schedule}"


def mail_field(mail: str) -> str:
    """A mail that waits to be sent."""
    return f"mail|{mail}"


def approval_field(approval: str) -> str:
    """What a request for an approval is about, and what came of it."""
    return f"approval|{approval}"


def client_secret_field(client: str) -> str:
    """The secret of a program that registered itself."""
    return f"client|{client}"


def signing_key_field(kid: str) -> str:
    """The private half of a key that signs tokens."""
    return f"signing|{kid}"


SERVICE_OWNER = "service"
"""Stands for the organisation where something is sealed that belongs to none: mails, signing keys, requests of programs."""
