"""A mail, and what takes one to where it goes."""

import json
from dataclasses import asdict, dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Letter:
    """A plain text mail to one person. Its text often holds a code, so neither it nor the address is ever shown."""

    to: str = field(repr=False)
    subject: str
    text: str = field(repr=False)

    def packed(self) -> str:
        """As text, to be sealed."""
        return json.dumps(asdict(self))


def unpacked(text: str) -> Letter:
    """The letter again; ValueError when it is none."""
    match json.loads(text):
        case {"to": str(to), "subject": str(subject), "text": str(body)}:
            return Letter(to, subject, body)
        case _:
            raise ValueError("not a letter as this version writes them")


class MailFailed(Exception):
    """The mail was not taken. `final`: it never will be, so it is not tried again. The text names no address."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class MailTransport(Protocol):
    """Takes letters to where they go."""

    async def send(self, letter: Letter, id: str) -> None:
        """Hand one letter over, under a name that it keeps when it is sent again; MailFailed when it was not taken."""
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...
