"""A mail, the port that sends one, and the console that shows it where no mail server is configured."""

import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, cast


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a mail. What is in it is as secret as the text; its name says nothing."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Letter:
    """A plain text mail to one person. Its text often holds a code, so neither it nor the address is ever shown."""

    to: str = field(repr=False)
    subject: str
    text: str = field(repr=False)
    attachment: Attachment | None = None
    drawn: str | None = field(default=None, repr=False)
    """The text of a QR code to attach: it is drawn when the mail is sent, not in the transaction that the mail is about."""

    def packed(self) -> str:
        packed: dict[str, object] = {"to": self.to, "subject": self.subject, "text": self.text}
        if self.attachment is not None:
            file = self.attachment
            packed["attachment"] = [file.name, file.media_type, b64encode(file.content).decode()]
        if self.drawn is not None:
            packed["drawn"] = self.drawn
        return json.dumps(packed)


def unpack_letter(text: str) -> Letter:
    """The letter again, those of versions that attached nothing as well; ValueError when it is none."""
    match json.loads(text):
        case {"to": str(to), "subject": str(subject), "text": str(body), "attachment": [str(name), str(kind), str(content)]}:
            return Letter(to, subject, body, Attachment(name, kind, b64decode(content)))
        case {"to": str(to), "subject": str(subject), "text": str(body), "drawn": str(drawn)}:
            return Letter(to, subject, body, drawn=drawn)
        case {"to": str(to), "subject": str(subject), "text": str(body), **others} if "attachment" not in cast("dict[str, object]", others):
            return Letter(to, subject, body)
        case _:
            raise ValueError("not a letter as this version writes them")


class MailFailed(Exception):
    """The mail was not taken. `final`: it never will be, so it is not tried again. The text names no address."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class MailTransport(Protocol):
    async def send(self, letter: Letter, id: str) -> None:
        """Hand `letter` over and wait until it is taken; MailFailed where it is not. `id` stays the same when it is sent again."""
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...


def write_to_stderr(text: str) -> None:
    """Write for the people who run the service; nothing is stored."""
    sys.stderr.write(text)
    sys.stderr.flush()


class ConsoleMail:
    """Shows letters whole, codes and all; so it is for trying the service out, and production does not start with it."""

    def __init__(self, write: Callable[[str], None] = write_to_stderr) -> None:
        self._write = write

    async def send(self, letter: Letter, id: str) -> None:
        del id
        lines = [f"To: {letter.to}", f"Subject: {letter.subject}", "", *letter.text.splitlines()]
        if letter.attachment is not None:
            lines += ["", f"Attached: {letter.attachment.name}"]
        self._write("\n".join(["", "--- mail ---", *lines, "--- end of mail ---", ""]) + "\n")

    async def aclose(self) -> None:
        """Nothing is open."""
