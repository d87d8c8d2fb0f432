"""A mail with a file: sealed whole, sent as one message of two parts, and shown to nobody."""

import email
from email.message import Message

import pytest
from inline_snapshot import snapshot

from clients.mail.letter import Attachment, ConsoleMail, Letter, unpack_letter
from clients.mail.smtp import SmtpMail, smtp_settings
from operations.letters import open_letter, seal_letter
from tests.fulfilment.floor import Floor
from tests.mail.office import open_server
from tests.world import SettableClock

FILE = Attachment("esim.png", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
LETTER = Letter("buyer@home.test", "Ihre eSIM", "Grüße\n", FILE)


async def test_a_mail_with_a_file_arrives_as_two_parts() -> None:
    async with open_server() as office:
        await SmtpMail(smtp_settings(f"smtp://localhost:{office.port}", "Shop <noreply@esim.example>"), SettableClock()).send(
            LETTER, "mail_1"
        )
    message = email.message_from_bytes(office.raw[0])
    text, file = message.get_payload()
    assert isinstance(text, Message) and isinstance(file, Message)
    assert (message.get_content_type(), message["Subject"], message["Auto-Submitted"]) == ("multipart/mixed", "Ihre eSIM", "auto-generated")
    assert text.get_payload(decode=True) == "Grüße\n".encode().replace(b"\n", b"\r\n")
    assert (file.get_content_type(), file.get_filename(), file.get_payload(decode=True)) == ("image/png", "esim.png", FILE.content)
    assert file["Content-Disposition"] == snapshot('attachment; filename="esim.png"')


async def test_a_sealed_mail_opens_with_its_file_and_those_of_before_without(floor: Floor) -> None:
    sealed = seal_letter(LETTER, ids=floor.deps.ids, keyring=floor.deps.keyring, expires_at=0)
    assert open_letter(sealed.id, sealed.text, floor.deps.keyring) == LETTER
    assert unpack_letter('{"to": "a@b.test", "subject": "s", "text": "t"}') == Letter("a@b.test", "s", "t")
    assert unpack_letter(Letter("a@b.test", "s", "t").packed()) == Letter("a@b.test", "s", "t")
    for spoilt in ("[]", '{"to": "a"}', '{"to": "a", "subject": "s", "text": "t", "attachment": ["x"]}'):
        with pytest.raises(ValueError, match="not a letter"):
            unpack_letter(spoilt)


async def test_the_console_shows_only_the_name_of_the_file_and_nothing_shows_what_is_in_it() -> None:
    shown: list[str] = []
    await ConsoleMail(shown.append).send(LETTER, "mail_1")
    assert "".join(shown) == snapshot("""\

--- mail ---
To: buyer@home.test
Subject: Ihre eSIM

Grüße

Attached: esim.png
--- end of mail ---

""")
    assert "PNG" not in repr(LETTER) and "buyer" not in repr(LETTER)
