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
    """A mail to one person, in plain text and, where it has `html`, in both. Its text often holds a code, so neither it nor the address
    is ever shown.
    """

    to: str = field(repr=False)
    subject: str
    text: str = field(repr=False)
    attachment: Attachment | None = None
    drawn: str | None = field(default=None, repr=False)
    """The text of a QR code to attach: it is drawn when the mail is sent, not in the transaction that the mail is about."""
    html: str | None = field(default=None, repr=False)
    """The same text as a page, for readers who are shown one. It loads nothing from anywhere."""
    unsubscribe: str | None = field(default=None, repr=False)
    """The https address that ends mails of this kind when something is posted to it (RFC 8058); whoever has it can do that."""

    def packed(self) -> str:
        packed: dict[str, object] = {"to": self.to, "subject": self.subject, "text": self.text}
        if self.attachment is not None:
            file = self.attachment
            packed["attachment"] = [file.name, file.media_type, b64encode(file.content).decode()]
        packed |= {name: text for name in LATER_PARTS if (text := getattr(self, name)) is not None}
        return json.dumps(packed)


LATER_PARTS = ("drawn", "html", "unsubscribe")
"""Texts that not every mail has, and that versions of before do not know."""


def unpack_letter(text: str) -> Letter:
    """The letter again, those of versions that attached nothing as well; ValueError when it is none."""
    match json.loads(text):
        case {"to": str(to), "subject": str(subject), "text": str(body), **others}:
            parts = cast("dict[str, object]", others)
            more = {name: part for name in LATER_PARTS if isinstance(part := parts.get(name), str)}
            return Letter(to, subject, body, unpack_attachment(parts.get("attachment")), **more)
        case _:
            raise ValueError("not a letter as this version writes them")


def unpack_attachment(packed: object) -> Attachment | None:
    match packed:
        case None:
            return None
        case [str(name), str(kind), str(content)]:
            return Attachment(name, kind, b64decode(content))
        case _:
            raise ValueError("not a letter with an attachment as this version writes them")


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

    def __init__(self, write: Callable[[str], None] = write_to_stderr, *, unshown: str | None = None) -> None:
        """`unshown`: the domain of people whom nobody plays, so that their mails would only hide the others."""
        self._write, self._unshown = write, unshown

    async def send(self, letter: Letter, id: str) -> None:
        del id
        if self._unshown is not None and letter.to.endswith(f"@{self._unshown}"):
            return
        lines = [f"To: {letter.to}", f"Subject: {letter.subject}", "", *letter.text.splitlines()]
        if letter.attachment is not None:
            lines += ["", f"Attached: {letter.attachment.name}"]
        self._write("\n".join(["", "--- mail ---", *lines, "--- end of mail ---", ""]) + "\n")

    async def aclose(self) -> None:
        """Nothing is open."""
