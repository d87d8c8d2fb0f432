"""Mail over SMTP, with a real server on loopback."""

import asyncio
import ssl
from urllib.parse import quote

import anyio
import pytest
from inline_snapshot import snapshot

from clients.mail.letter import Letter, MailFailed
from clients.mail.smtp import SmtpMail, smtp_settings
from tests.mail.office import PASSWORD, USER, Office, open_server
from tests.world import SettableClock

pytestmark = [  # the warnings are about the server's own code, and about one that is TLS from the start, which it does not see
    pytest.mark.filterwarnings("ignore:Session.login_data:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning"),
]
FROM = "Connectivity <noreply@esim.example>"
HEADERS = ["Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "MIME-Version", "Message-ID", "Subject", "To"]
ID = "mail_1"
TO = "ada@fjord.example"
LETTER = Letter(TO, "Your code to sign in", "The code is\n\n482913\n")
LOGIN = f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@"
Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


def to(port: int, *, scheme: str = "smtp", login: str = "", tls: ssl.SSLContext | None = None, seconds: float = 5.0) -> SmtpMail:
    settings = smtp_settings(f"{scheme}://{login}localhost:{port}", FROM)
    return SmtpMail(settings, SettableClock(), tls=tls, seconds=seconds)


async def failure(mail: SmtpMail, letter: Letter = LETTER) -> tuple[str, bool]:
    with pytest.raises(MailFailed) as failed:
        await mail.send(letter, ID)
    assert TO not in str(failed.value) and PASSWORD not in str(failed.value)
    assert failed.value.__cause__ is None and failed.value.__context__ is None
    return str(failed.value), failed.value.final


async def test_a_mail_arrives_as_it_was_written() -> None:
    async with open_server() as office:
        await to(office.port).send(LETTER, ID)
    assert office.envelopes == [("noreply@esim.example", [TO], False)]
    assert office.greeted == ["esim.example"]
    assert office.raw[0].decode() == snapshot("""\
Content-Type: text/plain; charset="us-ascii"\r
MIME-Version: 1.0\r
Content-Transfer-Encoding: 7bit\r
From: Connectivity <noreply@esim.example>\r
To: ada@fjord.example\r
Subject: Your code to sign in\r
Date: Fri, 15 Jan 2027 12:00:00 +0000\r
Message-ID: <mail_1@esim.example>\r
Auto-Submitted: auto-generated\r
\r
The code is\r
\r
482913\r
""")


async def test_what_is_not_ascii_arrives_too() -> None:
    subject, text = "Kode for å logge inn på Fjørd 網路 " * 4, "Koden er\r\n\r\n482913\n.\n..\nHilsen fra Fjørd 網路\n"
    async with open_server() as office:
        settings = smtp_settings(f"smtp://localhost:{office.port}", "Fjørd, 網路 <noreply@esim.example>")
        await SmtpMail(settings, SettableClock()).send(Letter(TO, subject, text), ID)
    [mail] = office.mails
    assert (mail["subject"], mail["from"].addresses[0].display_name) == (subject.strip(), "Fjørd, 網路")
    assert mail.get_content().replace("\r\n", "\n") == text.replace("\r\n", "\n")


# "Fjord" and what somebody put behind it.
@pytest.mark.parametrize(
    "name",
    [
        "Fjord\r\nBcc: eve@x.example",
        "Fjord\nBcc: eve@x.example",
        "Fjord\r\n\r\nGo to evil.example",
        "Fjord\x00\x0b\x85\u2028Bcc: eve@x.example",
    ],
)
async def test_a_crafted_name_makes_no_header(name: str) -> None:
    async with open_server() as office:
        await to(office.port).send(Letter(TO, f"You are invited to {name}", f"Join {name}\n"), ID)
    [mail] = office.mails
    assert sorted(mail.keys()) == HEADERS
    assert str(mail["subject"]).startswith("You are invited to Fjord ") and office.recipients == [TO]


@pytest.mark.parametrize("address", ["ada@fjord.example\r\nBcc: eve@x.example", "ada@fjord.example> SIZE=1", "ada @x", "å@fjørd.example\n"])
async def test_a_crafted_address_is_no_mail(address: str) -> None:
    async with open_server() as office:
        text, final = await failure(to(office.port), Letter(address, "Hello", "Hello\n"))
    assert (office.mails, final) == ([], True)
    assert address not in text and "fjord" not in text


async def test_starttls_is_used_where_it_is_offered_and_its_certificate_is_checked(tls: Contexts) -> None:
    async with open_server(starttls=tls[0]) as office:
        await to(office.port, tls=tls[1]).send(LETTER, ID)
        text, final = await failure(to(office.port))
    assert office.envelopes == [("noreply@esim.example", [TO], True)]
    assert (text, final) == ("the mail server's certificate is not trusted; SERVICE_CA_FILE names authorities of your own", False)


async def test_smtps_is_encrypted_from_the_start(tls: Contexts) -> None:
    async with open_server(tls=tls[0]) as office:
        await to(office.port, scheme="smtps", tls=tls[1]).send(LETTER, ID)
        text, _ = await failure(to(office.port, scheme="smtps"))
        wrong_name = SmtpMail(smtp_settings(f"smtps://127.0.0.1:{office.port}", FROM), SettableClock(), tls=tls[1])
        assert (await failure(wrong_name))[0] == text
    assert office.recipients == [TO] and "certificate is not trusted" in text


async def test_user_and_password_are_given_to_an_encrypted_server(tls: Contexts) -> None:
    async with open_server(starttls=tls[0], auth=True) as office:
        await to(office.port, login=LOGIN, tls=tls[1]).send(LETTER, ID)
        refused = await failure(to(office.port, login="mailer:wrong@", tls=tls[1]))
        without = await failure(to(office.port, tls=tls[1]))
    async with open_server(tls=tls[0], auth=True) as other:
        await to(other.port, scheme="smtps", login=LOGIN, tls=tls[1]).send(LETTER, ID)
    assert (len(office.mails), len(other.mails)) == (1, 1)
    assert refused == ("the mail server refused our user and password (535)", False)
    assert without == ("the mail server refused our sender address (530)", False)


async def test_a_password_is_never_sent_in_the_clear(tls: Contexts) -> None:
    async with open_server(auth=True) as office:
        assert await failure(to(office.port, login=LOGIN, tls=tls[1])) == (
            "the mail server offers no STARTTLS or no AUTH, and without them no password is sent",
            False,
        )
    assert office.mails == []


@pytest.mark.cases
@pytest.mark.parametrize(
    ("command", "reply", "expected"),
    [
        ("RCPT", "550 no ada@fjord.example here", ("the mail server refused the recipient (550)", True)),
        ("RCPT", "450 ada@fjord.example is greylisted", ("the mail server refused the recipient (450)", False)),
        ("DATA", "554 ada@fjord.example takes no spam", ("the mail server refused the mail (554)", True)),
        ("DATA", "452 no room for ada@fjord.example", ("the mail server refused the mail (452)", False)),
        ("MAIL", "550 who are you, writing to ada@fjord.example", ("the mail server refused our sender address (550)", False)),
        ("DATA", "421 ada@fjord.example, come again", ("the mail server refused the mail (421)", False)),
    ],
)
async def test_what_a_server_refuses_is_told_by_its_code_and_only_what_is_about_the_mail_is_final(
    command: str, reply: str, expected: tuple[str, bool]
) -> None:
    async with open_server() as office:
        office.replies[command] = [reply]
        assert await failure(to(office.port)) == expected
        assert office.mails == []
        await to(office.port).send(LETTER, ID)
    assert office.recipients == [TO]


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()
    await writer.wait_closed()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()
    await writer.wait_closed()


@pytest.mark.long
async def test_a_server_that_is_not_there_or_does_not_answer_is_told_in_time() -> None:
    async with open_server() as office:
        port = office.port
    assert await failure(to(port)) == ("the mail server could not be reached", False)
    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        mute = to(silent.sockets[0].getsockname()[1], seconds=0.2)
        assert await failure(mute) == ("the mail server did not answer in time", False)
    async with open_server() as slow:
        slow.hold = anyio.Event()
        assert await failure(to(slow.port, seconds=0.3)) == ("the mail server did not answer in time", False)
        slow.hold.set()


async def test_what_is_no_mail_server_is_told() -> None:
    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as other:
        text, final = await failure(to(other.sockets[0].getsockname()[1]))
    assert (text.startswith("the mail server "), final) == (True, False)


async def greeted(office: Office, mail: SmtpMail) -> bool:
    encrypted = await mail.greet()
    assert office.mails == []
    return encrypted


async def test_a_greeting_sends_nothing_and_tells_whether_it_is_encrypted(tls: Contexts) -> None:
    async with open_server() as office:
        assert await greeted(office, to(office.port)) is False
    async with open_server(starttls=tls[0], auth=True) as office:
        assert await greeted(office, to(office.port, login=LOGIN, tls=tls[1])) is True
