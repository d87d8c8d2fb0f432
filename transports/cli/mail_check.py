"""Whether the mail server takes our mails: `doctor` asks."""

import asyncio

from clients.mail.letter import MailFailed
from clients.mail.smtp import UNTRUSTED, SmtpMail, SmtpSettings, smtp_settings
from registry.clock import SystemClock
from transports.cli.certificate_check import FIX as CERTIFICATE
from transports.cli.finding import Finding
from transports.settings import Settings

SECONDS = 5.0
FIX = "check SERVICE_SMTP_URL (smtps:// for port 465, smtp:// for 587), its user and password, and that this machine may reach the server"


def mail(settings: Settings) -> Finding:
    """Shown on the console, or handed to a server that is greeted as for a mail; none is sent."""
    address = settings.smtp_url.get_secret_value()
    if not address:
        return Finding("mail", "shown on the console by serve; SERVICE_SMTP_URL names a mail server")
    smtp = smtp_settings(address, settings.mail_from)
    where = f"{smtp.host}:{smtp.port}"
    try:
        encrypted = asyncio.run(SmtpMail(smtp, SystemClock(), ca_file=settings.ca_file, seconds=SECONDS).greet())
    except MailFailed as failed:
        return Finding("mail", f"{where}: {failed}", CERTIFICATE if str(failed) == UNTRUSTED else FIX)
    return Finding("mail", f"{where} answers, {said(smtp, encrypted)}")


def said(smtp: SmtpSettings, encrypted: bool) -> str:
    """How the mails travel; never the password, and the user is often an address."""
    return ("encrypted" if encrypted else "NOT encrypted") + (", and takes our user and password" if smtp.user is not None else "")
