"""A process's log before it can be opened: it masks the keyring, which is known only once the service is built."""

from collections.abc import Callable
from typing import TextIO

from pydantic import SecretStr

from registry.clock import SystemClock
from transports.logs import Logs
from transports.settings import Settings


class OpeningLog:
    """Takes notes from the first moment; they are written when the log opens."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._logs: Logs | None = None

    def note(self, text: str) -> None:
        """Something an operator should know, now or as soon as it can be said."""
        if self._logs is None:
            self._waiting.append(text)
        else:
            self._logs.note(text)

    def early(self, settings: Settings, stderr: TextIO, to_person: Callable[[str], None]) -> Callable[[str], None]:
        """Says at once what cannot wait for the keyring: to a person at a terminal as it is, else as a line, like all others."""
        return to_person if stderr.isatty() else Logs(stderr.buffer.write, SystemClock(), secrets=loaded_secrets(settings, "")).note

    def open(self, logs: Logs) -> None:
        """From here on notes are written at once."""
        self._logs = logs
        for text in self._waiting:
            logs.note(text)
        self._waiting.clear()


def loaded_secrets(settings: Settings, keyring_text: str) -> list[str]:
    """Every secret of this process, for masking by value: whole, and the keys of a keyring one by one."""
    whole = [value.get_secret_value() for _, value in settings if isinstance(value, SecretStr)]
    lists = (keyring_text, settings.mcp_state_keys.get_secret_value())
    # Without the padding: the decoder takes a key with and without it. The name before the colon is no secret.
    keys = [entry.rpartition(":")[2].strip().rstrip("=") for text in lists for entry in text.split(",")]
    return [secret for secret in (*whole, keyring_text, *keys) if secret]
