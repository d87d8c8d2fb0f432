"""Mail over SMTP (RFC 5321), encrypted wherever the server can: smtp:// uses STARTTLS when offered, smtps:// TLS from the start.

A password is never sent in the clear: with one, a server without STARTTLS is refused.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.charset import QP, Charset
from email.header import Header
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, formataddr
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import anyio.to_thread

from clients.mail.letter import Attachment, Letter, MailFailed
from registry.clock import Clock

if TYPE_CHECKING:  # imported with the first mail: start-up budget
    import aiosmtplib

MAIL_SECONDS = 20.0
"""For one whole mail: the library's own limit is per command, and the sender holds the mail for a limited time."""
SUBMISSION_PORT, SUBMISSION_TLS_PORT = 587, 465
MimeMessage: TypeAlias = MIMEText | MIMEMultipart
MAILBOX_ADDRESS = re.compile(r"[^\s<>()\[\]\\,;:@\"]{1,64}@[A-Za-z0-9.-]{1,253}", re.ASCII)
UNSUBSCRIBE_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]{1,900}", re.ASCII)
UNTRUSTED_CERTIFICATE = "the mail server's certificate is not trusted; SERVICE_CA_FILE names authorities of your own"


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """Where mails are handed over, and from whom they come."""

    host: str
    port: int
    tls: bool
    user: str | None
    password: str | None = field(repr=False)
    name: str
    address: str

    @property
    def domain(self) -> str:
        return self.address.partition("@")[2]


def smtp_settings(server: str, sender: str) -> SmtpSettings:
    """The parts of smtp[s]://[user:password@]host[:port]; 587 and 465 (RFC 8314) are the ports where none is named."""
    parts = urlsplit(server)
    tls = parts.scheme == "smtps"
    user, password = (None if value is None else unquote(value) for value in (parts.username, parts.password))
    name, bracket, address = sender.rstrip(">").rpartition("<")
    return SmtpSettings(
        host=parts.hostname or "",
        port=parts.port or (SUBMISSION_TLS_PORT if tls else SUBMISSION_PORT),
        tls=tls,
        user=user,
        password=password,
        name=name.strip().strip('"') if bracket else "",
        address=address if bracket else sender,
    )


class SmtpMail:
    """Hands letters to a mail server, one connection each: mails are rare."""

    def __init__(
        self,
        settings: SmtpSettings,
        clock: Clock,
        *,
        tls: ssl.SSLContext | None = None,
        ca_file: Path | None = None,
        seconds: float = MAIL_SECONDS,
    ) -> None:
        """`tls` replaces the trusted authorities; `ca_file` names some that are trusted beside the machine's own."""
        self._settings, self._clock, self._tls, self._seconds = settings, clock, tls, seconds
        self._ca_file = ca_file

    async def send(self, letter: Letter, id: str) -> None:
        if not (letter.to.isascii() and MAILBOX_ADDRESS.fullmatch(letter.to)):
            raise MailFailed("the address cannot be written into a mail", final=True)
        await self._talk(mime_message(letter, self._settings, id, self._clock.now()), letter.to)

    async def greet(self) -> bool:
        """Connect and sign in as for a mail, and leave again: whether the connection is encrypted."""
        return await self._talk(None, "")

    async def aclose(self) -> None:
        """Nothing stays open."""

    async def _talk(self, message: MimeMessage | None, to: str) -> bool:
        """One connection. The server's text may repeat an address, so errors carry its code only."""
        library = await anyio.to_thread.run_sync(load_smtp_library)
        taken = encrypted = False
        failed: MailFailed | None = None
        try:
            async with asyncio.timeout(self._seconds), self._client() as client:
                encrypted = client.get_transport_info("sslcontext") is not None
                if message is not None:
                    await client.send_message(message, sender=self._settings.address, recipients=[to])
                taken = True
        except (library.SMTPException, OSError, ValueError) as error:
            failed = mail_failure(error)
        if failed is not None and not taken:  # once it is taken, a parting that goes wrong does not matter
            raise failed
        return encrypted

    def _client(self) -> aiosmtplib.SMTP:
        settings = self._settings
        self._tls = self._tls or mail_authorities(self._ca_file)
        return load_smtp_library().SMTP(
            hostname=settings.host,
            port=settings.port,
            username=settings.user,
            password=settings.password,
            # Choice: we greet with the sender's domain. The machine's own name is slow to look up, and no receiver needs it.
            local_hostname=settings.domain,
            use_tls=settings.tls,
            start_tls=None if settings.user is None else not settings.tls,
            tls_context=self._tls,
            timeout=self._seconds,
        )


def load_smtp_library():  # noqa: ANN201  # the type checker infers the module
    """The library, imported with the first mail: start-up budget."""
    import aiosmtplib

    return aiosmtplib


def mail_authorities(ca_file: Path | None) -> ssl.SSLContext:
    """The machine's authorities, which SSL_CERT_FILE replaces, and the operator's own."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context


def mail_failure(error: aiosmtplib.SMTPException | OSError | ValueError) -> MailFailed:
    """Only a 5xx (RFC 5321 section 4.2.1) about this mail is final: after a refusal of ourselves the mail can still be sent later."""
    library = load_smtp_library()
    if isinstance(error, library.SMTPRecipientsRefused):
        codes = [refused.code for refused in error.recipients]
        return MailFailed(f"the mail server refused the recipient ({codes[0] if codes else 'no code'})", final=all(c >= 500 for c in codes))
    if isinstance(error, library.SMTPDataError):
        return MailFailed(f"the mail server refused the mail ({error.code})", final=error.code >= 500)
    if isinstance(error, library.SMTPAuthenticationError):
        return MailFailed(f"the mail server refused our user and password ({error.code})")
    if isinstance(error, library.SMTPSenderRefused):
        return MailFailed(f"the mail server refused our sender address ({error.code})")
    if isinstance(error, library.SMTPResponseException):
        return MailFailed(f"the mail server answered {error.code}")
    if isinstance(error, ValueError) and not isinstance(error, OSError):  # a certificate that is not trusted is both
        return MailFailed("the mail server's protocol cannot carry this mail", final=True)
    return MailFailed(connection_failure(error))


def connection_failure(error: aiosmtplib.SMTPException | OSError) -> str:
    """Why there was no conversation."""
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in (error, error.__cause__, error.__context__)):
        return UNTRUSTED_CERTIFICATE
    if isinstance(error, TimeoutError):
        return "the mail server did not answer in time"
    if isinstance(error, OSError):
        return "the mail server could not be reached"
    if isinstance(error, load_smtp_library().SMTPNotSupported):
        return "the mail server cannot carry this address"
    return "the mail server offers no STARTTLS or no AUTH, and without them no password is sent"


def mime_message(letter: Letter, settings: SmtpSettings, id: str, now: float) -> MimeMessage:
    """Plain text in UTF-8; it says that no person wrote it (RFC 3834), so that no absence notice answers it. `now`: Unix seconds.

    A mail that is sent a second time has the same Message-ID, by which servers recognise it.
    """
    text = mime_text(letter.text, "plain") if letter.html is None else mime_alternatives(letter.text, letter.html, id)
    message = text if letter.attachment is None else with_attachment(text, letter.attachment, id)
    message["From"] = formataddr((settings.name, settings.address))
    message["To"] = letter.to
    charset = "us-ascii" if letter.subject.isascii() else "utf-8"
    message["Subject"] = Header(subject_line(letter.subject), charset, header_name="Subject").encode()
    message["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
    message["Message-ID"] = f"<{id}@{settings.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    if letter.unsubscribe is not None and UNSUBSCRIBE_ADDRESS.fullmatch(letter.unsubscribe):
        message["List-Unsubscribe"] = f"<{letter.unsubscribe}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return message


def mime_text(text: str, kind: Literal["plain", "html"]) -> MIMEText:
    # Not EmailMessage: Python 3.11 loses spaces where it folds a long subject that is not ASCII.
    readable = Charset("utf-8")
    readable.body_encoding = QP
    # Quoted-printable for every page, too: its lines are longer than a mail's may be (RFC 5322 section 2.1.1).
    plain = kind == "plain" and text.isascii()
    return MIMEText(text, kind, "us-ascii" if plain else readable)  # pyright: ignore[reportArgumentType]  # a Charset is taken, too


def mime_alternatives(text: str, html: str, id: str) -> MIMEMultipart:
    """The same as plain text and as a page, the best one last (RFC 2046 section 5.1.4)."""
    return MIMEMultipart("alternative", f"={id}-alternative=", [mime_text(text, "plain"), mime_text(html, "html")])


def with_attachment(text: MimeMessage, file: Attachment, id: str) -> MIMEMultipart:
    """The text, and the file behind it (RFC 2046 section 5.1.3). The boundary is the mail's name: the same mail has the same bytes."""
    kind, _, subtype = file.media_type.partition("/")
    part = MIMEApplication(file.content, subtype)
    part.replace_header("Content-Type", f"{kind}/{subtype}")
    part.add_header("Content-Disposition", "attachment", filename=file.name)
    return MIMEMultipart("mixed", f"={id}=", [text, part])


def subject_line(text: str) -> str:
    """The subject on one line: it may hold text of other people, which must not become a header or fail the mail."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
