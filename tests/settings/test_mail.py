"""Settings of mail: what is an address of a server, and of a sender."""

import pytest

from clients.mail.letter import ConsoleMail
from clients.mail.smtp import SmtpMail, SmtpSettings, smtp_settings
from transports.service import open_mail
from transports.settings import BadSettings
from transports.settings_files import load_settings

FROM = "Connectivity <noreply@esim.example>"
URL_RULE = "SERVICE_SMTP_URL must be smtp[s]://[user:password@]host[:port], with the password percent-encoded"
FROM_RULE = "SERVICE_MAIL_FROM must be an address, or a name and an address in angle brackets"


def refusal(**given: str) -> str:
    with pytest.raises(BadSettings) as caught:
        load_settings(given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example", ("mail.example", 587, False, None, None)),
        ("smtps://mail.example/", ("mail.example", 465, True, None, None)),
        ("smtp://127.0.0.1:25", ("127.0.0.1", 25, False, None, None)),
        ("smtp://jo%40esim.example:hidden%2Fword%3A@[::1]:2525", ("::1", 2525, False, "jo@esim.example", "hidden/word:")),
    ],
)
def test_the_parts_of_a_server_s_address(url: str, expected: tuple[object, ...]) -> None:
    settings = load_settings({"SERVICE_SMTP_URL": url, "SERVICE_MAIL_FROM": FROM})
    smtp = smtp_settings(settings.smtp_url.get_secret_value(), settings.mail_from)
    assert (smtp.host, smtp.port, smtp.tls, smtp.user, smtp.password) == expected
    assert "hidden" not in repr(smtp) and "hidden" not in repr(settings)
    assert isinstance(open_mail(settings), SmtpMail)


def test_without_a_server_mails_go_to_the_console() -> None:
    assert isinstance(open_mail(load_settings({})), ConsoleMail)


@pytest.mark.parametrize(
    "url",
    [
        "mail.example",
        "http://mail.example",
        "smtp://",
        "smtp://jo:hidden-word@",
        "smtp://jo:hidden-w@rd@mail.example",
        "smtp://jo:hidden-word?@mail.example",
        "smtp://jo:hidden-word#@mail.example",
        "smtp://jo:hidden[word@mail.example",
        "smtp://:hidden-word@mail.example",
        "smtp://mail.example:65536",
        "smtp://mail.example/hidden-word",
        "smtp://mail example",
    ],
)
def test_a_server_s_address_that_is_none_is_refused_and_not_repeated(url: str) -> None:
    assert refusal(SERVICE_SMTP_URL=url, SERVICE_MAIL_FROM=FROM) == URL_RULE


@pytest.mark.parametrize(
    ("given", "name", "address"),
    [
        ("noreply@esim.example", "", "noreply@esim.example"),
        ("<noreply@esim.example>", "", "noreply@esim.example"),
        ("Connectivity <noreply@esim.example>", "Connectivity", "noreply@esim.example"),
        ('"Fjord, Inc." <no.reply+1@esim.example>', "Fjord, Inc.", "no.reply+1@esim.example"),
        ("Fjørd 網路 <a@localhost>", "Fjørd 網路", "a@localhost"),
    ],
)
def test_a_sender_is_an_address_with_or_without_a_name(given: str, name: str, address: str) -> None:
    settings = load_settings({"SERVICE_SMTP_URL": "smtp://mail.example", "SERVICE_MAIL_FROM": given})
    expected = SmtpSettings("mail.example", 587, tls=False, user=None, password=None, name=name, address=address)
    assert smtp_settings("smtp://mail.example", settings.mail_from) == expected


@pytest.mark.parametrize(
    "given",
    [
        "Connectivity",
        "Connectivity <noreply>",
        "a@b@c",
        "a..b@esim.example",
        ".a@esim.example",
        "noreply@esim.example>",
        "Connectivity <noreply@esim.example",
        "Connectivity <noreply@esim..example>",
        "Jo\r\nBcc: <other@esim.example>",
        "a" * 65 + "@esim.example",
    ],
)
def test_a_sender_that_mails_cannot_carry_is_refused(given: str) -> None:
    assert refusal(SERVICE_MAIL_FROM=given) == FROM_RULE


def test_a_server_needs_a_sender() -> None:
    expected = "SERVICE_SMTP_URL needs SERVICE_MAIL_FROM: mails without a sender are refused everywhere"
    assert refusal(SERVICE_SMTP_URL="smtp://mail.example") == expected
