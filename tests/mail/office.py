"""A real mail server on loopback that keeps what it takes, and refuses what it is told to."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import anyio
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

USER, PASSWORD = "mailer@fjord.example", "a hidden/word"


@dataclass
class Office:
    """What came in, and what is refused: replies by command, the first one first."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list[EmailMessage])
    raw: list[bytes] = field(default_factory=list[bytes])
    envelopes: list[tuple[str, list[str], bool]] = field(default_factory=list[tuple[str, list[str], bool]])
    """Sender, recipients, whether it was encrypted."""
    replies: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    hold: anyio.Event | None = None
    """Nothing is taken before it is set."""
    asked: anyio.Event = field(default_factory=anyio.Event)
    """Somebody has brought a mail."""
    greeted: list[str] = field(default_factory=list[str])

    def reply(self, command: str) -> str | None:
        waiting = self.replies.get(command)
        return waiting.pop(0) if waiting else None

    async def handle_EHLO(self, server: Any, session: Any, envelope: Any, hostname: str, responses: list[str]) -> list[str]:
        self.greeted.append(hostname)
        session.host_name = hostname
        refused = self.reply("EHLO")
        return [refused] if refused else responses

    async def handle_MAIL(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return self.reply("MAIL") or "250 OK"

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        refused = self.reply("RCPT")
        if refused is None:
            envelope.rcpt_tos.append(address)
        return refused or "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.asked.set()
        if self.hold is not None:
            await self.hold.wait()
        refused = self.reply("DATA")
        if refused is None:
            self.raw.append(envelope.content)
            self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
            self.envelopes.append((envelope.mail_from, envelope.rcpt_tos, session.ssl is not None))
        return refused or "250 taken"

    @property
    def recipients(self) -> list[str]:
        return [address for _, addresses, _ in self.envelopes for address in addresses]


def knows(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=known, handled=False)


class Visit(SMTP):
    """One connection, which can be ended."""

    async def end(self) -> None:
        for transport in (self.transport, self._original_transport):
            if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():  # Python 3.11.2 cannot abort a closed TLS
                transport.abort()
        if self._handler_coroutine is not None:
            await asyncio.wait([self._handler_coroutine], timeout=5)


@asynccontextmanager
async def open_server(
    *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None, auth: bool = False
) -> AsyncGenerator[Office]:
    """The server, until the block ends."""
    office, loop = Office(), asyncio.get_running_loop()

    def connected() -> SMTP:
        visit = Visit(
            office,
            hostname="localhost",
            tls_context=starttls,
            require_starttls=starttls is not None,
            enable_SMTPUTF8=True,
            authenticator=knows if auth else None,
            auth_required=auth,
            auth_require_tls=tls is None,
            loop=loop,
        )
        visits.append(visit)
        return visit

    visits: list[Visit] = []
    server = await loop.create_server(connected, "127.0.0.1", 0, ssl=tls)
    office.port = server.sockets[0].getsockname()[1]
    try:
        yield office
    finally:
        server.close()
        for visit in visits:
            await visit.end()
