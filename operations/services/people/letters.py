"""Mails as handlers write them: sealed at once, and queued in the transaction of what they tell."""

from typing import NamedTuple

from clients.mail.letter import Letter, unpacked
from registry.clock import Clock
from registry.ids import Ids
from storage.connection import Connection
from storage.mail import queue_mail
from storage.secrets.sealed_fields import mail_field
from storage.secrets.sealing import Keyring

SERVICE = "service"
"""Mails belong to no organisation: this stands in its place where they are sealed."""


class Sealed(NamedTuple):
    """A mail on its way into the database."""

    id: str
    text: str
    expires_at: float


def seal_letter(letter: Letter, *, ids: Ids, keyring: Keyring, expires_at: float) -> Sealed:
    """The mail under a name of its own."""
    id = ids.new("mail_")
    return Sealed(id, keyring.seal(letter.packed(), org_id=SERVICE, field=mail_field(id)), expires_at)


def open_letter(id: str, sealed: str, keyring: Keyring) -> Letter:
    """The mail again."""
    return unpacked(keyring.open(sealed, org_id=SERVICE, field=mail_field(id)))


def put_in_queue(connection: Connection, mail: Sealed, clock: Clock) -> None:
    """To be called inside the write that the mail tells of; `deps.post()` then wakes the postman."""
    queue_mail(connection, id=mail.id, sealed=mail.text, now=clock.now(), expires_at=mail.expires_at)
