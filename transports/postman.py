"""The postman: takes queued mails to the mail server, at once when somebody rings, and again later when it was not there."""

from collections.abc import Callable

import anyio

from clients.mail.letter import MailFailed, MailTransport
from operations.services.letters import open_letter
from registry.clock import Clock
from registry.errors import StoreUnavailable
from registry.ids import Ids
from storage.mail import Waiting, defer_mail, drop_mail, take_mails
from storage.sealing import Keyring
from storage.store import Store

ROUND_SECONDS = 20.0
BATCH = 20
RETRIES = (5.0, 30.0, 120.0, 300.0, 900.0)


class Postman:
    """Any number of processes may have one: leases in the database keep them apart."""

    def __init__(
        self, *, store: Store, keyring: Keyring, clock: Clock, ids: Ids, transport: MailTransport, report: Callable[[str], None]
    ) -> None:
        self._store, self._keyring, self._clock, self._ids = store, keyring, clock, ids
        self.transport, self._report = transport, report
        self._bell = anyio.Event()

    def ring(self) -> None:
        """There is mail."""
        self._bell.set()

    async def run(self) -> None:
        """Go round until cancelled."""
        while True:
            with anyio.move_on_after(ROUND_SECONDS):
                await self._bell.wait()
            self._bell = anyio.Event()
            try:
                await self.deliver()
            except StoreUnavailable as error:
                self._report(f"the store is unavailable, mails wait: {error.message}")

    async def deliver(self) -> int:
        """Everything that is due now; how many were sent."""
        sent = 0
        while True:
            token = self._ids.new("lse_")
            mails = await self._store.write(take_mails, token=token, now=self._clock.now(), most=BATCH)
            for mail in mails:
                sent += await self._send(mail, token)
            if len(mails) < BATCH:
                return sent

    async def _send(self, mail: Waiting, token: str) -> bool:
        now = self._clock.now()
        try:
            if mail.expires_at <= now:
                raise MailFailed("a mail was not sent in the time it was good for", final=True)
            await self.transport.send(open_letter(mail.id, mail.sealed, self._keyring))
        except MailFailed as failed:
            await self._failed(mail, token, failed, now)
            return False
        await self._store.write(drop_mail, mail=mail.id, token=token)
        return True

    async def _failed(self, mail: Waiting, token: str, failed: MailFailed, now: float) -> None:
        """Try again later, unless it is no use: never a word of whom it was for."""
        if failed.final or mail.attempts > len(RETRIES):
            self._report(f"{mail.id} is given up: {failed}")
            await self._store.write(drop_mail, mail=mail.id, token=token)
        else:
            self._report(f"{mail.id} is tried again: {failed}")
            await self._store.write(defer_mail, mail=mail.id, token=token, at=now + RETRIES[mail.attempts - 1])
