"""Mail over SMTP (RFC 5321), encrypted wherever the server can: smtp:// uses STARTTLS when offered, smtps:// TLS from the start."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from clients.mail.letter import Letter, MailFailed

if TYPE_CHECKING:  # imported with the first mail: start-up budget
    import aiosmtplib

SECONDS = 20.0
SUBMISSION, SUBMISSION_TLS = 587, 465


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """Where mails are handed over, and from whom they come."""

    host: str
    port: int
    tls: bool
    user: str | None
    password: str | None = field(repr=False)
    sender: str


def smtp_settings(address: str, sender: str) -> SmtpSettings:
    """The parts of smtp[s]://[user:password@]host[:port]; 587 and 465 (RFC 8314) are the ports where none is named."""
    parts = urlsplit(address)
    tls = parts.scheme == "smtps"
    user, password = (None if value is None else unquote(value) for value in (parts.username, parts.password))
    return SmtpSettings(parts.hostname or "", parts.port or (SUBMISSION_TLS if tls else SUBMISSION), tls, user, password, sender)


class SmtpMail:
    """Hands letters to a mail server, one connection each: mails are rare."""

    def __init__(self, settings: SmtpSettings, *, tls: ssl.SSLContext | None = None) -> None:
        """`tls` replaces the trusted authorities."""
        self._settings, self._tls = settings, tls

    async def send(self, letter: Letter) -> None:
        """Hand one letter over. What the server said may repeat the address, so only its code is told on."""
        import aiosmtplib

        settings = self._settings
        try:
            await aiosmtplib.send(
                message_of(letter, settings.sender),
                hostname=settings.host,
                port=settings.port,
                username=settings.user,
                password=settings.password,
                use_tls=settings.tls,
                start_tls=None if settings.user is None else not settings.tls,
                tls_context=self._tls or ssl.create_default_context(),
                timeout=SECONDS,
            )
        except (aiosmtplib.SMTPException, OSError) as error:
            failed = why(error)
        else:
            return
        raise failed

    async def aclose(self) -> None:
        """Nothing stays open."""


def why(error: aiosmtplib.SMTPException | OSError) -> MailFailed:
    """A refusal of the 5xx kind is final (RFC 5321 section 4.2.1), everything else may pass."""
    import aiosmtplib

    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        codes = [refused.code for refused in error.recipients]
        return MailFailed(f"the mail server refused the recipient ({codes[0] if codes else 'no code'})", final=all(c >= 500 for c in codes))
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return MailFailed(f"the mail server refused our user and password ({error.code})")
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return MailFailed(f"the mail server answered {error.code}", final=error.code >= 500)
    return MailFailed("the mail server could not be reached")


def message_of(letter: Letter, sender: str) -> EmailMessage:
    """Plain text in UTF-8; the mail says that no person wrote it (RFC 3834), so that nobody's absence answers it."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = sender, letter.to, letter.subject
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(letter.text)
    return message
