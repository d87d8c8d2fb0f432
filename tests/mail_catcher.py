"""A mail catcher: letters stay in a list."""

from clients.mail.letter import Letter


class MailCatcher:
    """Takes every letter and sends none."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []

    async def send(self, letter: Letter, id: str) -> None:
        del id
        self.letters.append(letter)

    async def aclose(self) -> None:
        """Nothing is open."""
