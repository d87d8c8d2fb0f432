"""Mails between the operation that writes them and the mailer: sealed at once, queued in the same transaction as what they report."""

from typing import NamedTuple

from clients.mail.letter import Letter, unpack_letter
from registry.clock import Clock
from registry.ids import Ids
from storage.engine.sql import Connection
from storage.mail import queue_mail
from storage.sealing import SERVICE_OWNER, Keyring, mail_field


class SealedLetter(NamedTuple):
    """A sealed mail that is not queued yet. `expires_at`: Unix seconds, after which it is not sent any more."""

    id: str
    text: str
    expires_at: float


def seal_letter(letter: Letter, *, ids: Ids, keyring: Keyring, expires_at: float) -> SealedLetter:
    """`letter`, sealed under a new id."""
    id = ids.new("mail_")
    return SealedLetter(id, keyring.seal(letter.packed(), org_id=SERVICE_OWNER, field=mail_field(id)), expires_at)


def open_letter(id: str, sealed: str, keyring: Keyring) -> Letter:
    """The mail that seal_letter sealed under `id`."""
    return unpack_letter(keyring.open(sealed, org_id=SERVICE_OWNER, field=mail_field(id)))


def queue_letter(connection: Connection, mail: SealedLetter, clock: Clock) -> None:
    """Queues `mail`. Call it in the transaction of what the mail reports; `deps.post()` then wakes the mailer."""
    queue_mail(connection, id=mail.id, sealed=mail.text, now=clock.now(), expires_at=mail.expires_at)
