"""Where mails go: to the configured server, or to the console where none is."""

from clients.mail.console import ConsoleMail
from clients.mail.letter import MailTransport
from clients.mail.smtp import SmtpMail, smtp_settings
from registry.clock import SystemClock
from transports.settings import Settings


def open_mail(settings: Settings) -> MailTransport:
    """Nothing is connected before the first mail."""
    address = settings.smtp_url.get_secret_value()
    return SmtpMail(smtp_settings(address, settings.mail_from), SystemClock(), ca_file=settings.ca_file) if address else ConsoleMail()
