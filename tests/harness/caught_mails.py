"""A mail server that outlives those who bring the mails: it takes all, and keeps what each connection brought."""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Condition
from typing import NamedTuple, cast

from tests.harness.thread_servers import serving_in_thread

MAIL_SENDER = "no-reply@kill.example"


class CaughtMail(NamedTuple):
    """A mail that was taken. `id`: what its sender calls it; `life`: of which server, the first one is 1."""

    id: str
    to: str
    text: str
    life: int


class CatchingMailServer(ThreadingTCPServer):
    """Speaks as much SMTP as a sender needs; a mail is kept before the sender is told so."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), MailConnection)
        self.news = Condition()
        self.mails: list[CaughtMail] = []
        self.life: Callable[[], int] = int
        """Which server runs now."""

    @property
    def settings(self) -> dict[str, str]:
        """What a server is told, so that it brings its mails here."""
        return {"SERVICE_SMTP_URL": f"smtp://127.0.0.1:{self.server_address[1]}", "SERVICE_MAIL_FROM": MAIL_SENDER}

    def keep(self, to: str, content: bytes, life: int) -> None:
        message = message_from_bytes(content, policy=policy.default)
        plain = message.get_body(("plain",))
        id = str(message["Message-ID"]).strip("<>").partition("@")[0]
        with self.news:
            self.mails.append(CaughtMail(id, to, "" if plain is None else str(plain.get_content()).replace("\r\n", "\n"), life))
            self.news.notify_all()


class MailConnection(StreamRequestHandler):
    """One connection, which ends with the process that made it."""

    def setup(self) -> None:
        super().setup()
        self._catcher = cast(CatchingMailServer, self.server)
        self._life = self._catcher.life()

    def say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the process that brought the mail was killed
            self.say("220 catcher")
            to = ""
            while line := self.rfile.readline():
                word = line[:4].upper()
                if word == b"RCPT":
                    to = line.decode().partition("<")[2].partition(">")[0]
                if word == b"DATA" and not self.take(to):
                    return
                self.say("221 bye" if word == b"QUIT" else "250 yes")

    def take(self, to: str) -> bool:
        """Whether the whole mail came: of one that was cut off nobody says that it was taken."""
        self.say("354 go on")
        lines = list[bytes]()
        while (line := self.rfile.readline()) != b".\r\n":
            if not line.endswith(b"\n"):
                return False
            lines.append(line[1:] if line.startswith(b"..") else line)
        self._catcher.keep(to, b"".join(lines), self._life)
        return True


@contextmanager
def catching_mails() -> Generator[CatchingMailServer]:
    with serving_in_thread(CatchingMailServer()) as catcher:
        yield catcher
