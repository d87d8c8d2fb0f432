"""Mails on the console, where no mail server is configured: whoever runs the service reads them there."""

import sys
from collections.abc import Callable

from clients.mail.letter import Letter


def to_stderr(text: str) -> None:
    """Where people who run the service look; nothing of it is kept."""
    sys.stderr.write(text)
    sys.stderr.flush()


class ConsoleMail:
    """Shows letters whole, codes and all; so it is for trying the service out, and production does not start with it."""

    def __init__(self, write: Callable[[str], None] = to_stderr) -> None:
        self._write = write

    async def send(self, letter: Letter, id: str) -> None:
        """Print the letter."""
        del id
        lines = [f"To: {letter.to}", f"Subject: {letter.subject}", "", *letter.text.splitlines()]
        if letter.attachment is not None:
            lines += ["", f"Attached: {letter.attachment.name}"]
        self._write("\n".join(["", "--- mail ---", *lines, "--- end of mail ---", ""]) + "\n")

    async def aclose(self) -> None:
        """Nothing is open."""
