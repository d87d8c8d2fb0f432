"""The mailer: sends queued mails to the mail server, at once when it is woken, and again later when the server was not there.

A mail is sent once, unless a process dies, or loses the database for two minutes, between the server's yes and the row's end.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import anyio
import anyio.lowlevel

from clients.mail.letter import Attachment, Letter, MailFailed, MailTransport
from operations.ledger.esims import qr_picture
from operations.letters import open_letter
from registry.clock import Clock
from registry.errors import KeyUnknown, StoreUnavailable
from registry.ids import Ids
from storage.engine.store import Store
from storage.mail import WaitingMail, defer_mail, drop_mail, take_mails
from storage.sealing import Keyring, WrongSeal

MAIL_ROUND_SECONDS = 20.0
# A batch is sent at once, so that it is over long before its lease is, however slow the server.
MAIL_BATCH = 10
# Choice: the last pause is repeated until the mail's own time is over: an invitation outlives a night without a mail server.
MAIL_RETRY_SECONDS = (5.0, 30.0, 120.0, 300.0, 900.0)
MAIL_EXPIRED = "a mail was not sent in the time it was good for"
MailOutcome = Literal["sent", "given up", "later", "unopened"]
MAIL_CHANGED = "it cannot be opened: the row was changed"
MAIL_KEY_MISSING = "the key that sealed it is not in the keyring of this process"


class Mailer:
    """Any number of processes may have one: leases in the database keep them apart."""

    def __init__(
        self, *, store: Store, keyring: Keyring, clock: Clock, ids: Ids, transport: MailTransport, report: Callable[[str], None]
    ) -> None:
        self._store, self._keyring, self._clock, self._ids = store, keyring, clock, ids
        self.transport, self._report = transport, report
        self._woken = anyio.Event()
        self._sent: set[str] = set()
        """Mails that were sent and whose row could not be dropped: they come again."""

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while True:
            with anyio.move_on_after(MAIL_ROUND_SECONDS):
                await self._woken.wait()
            self._woken = anyio.Event()
            try:
                await self.deliver()
            except StoreUnavailable as error:
                self._away(error)

    async def deliver(self) -> int:
        """Sends what is due and returns how many mails were sent. Stops after a batch of which none could be sent: the server is away."""
        sent = 0
        while True:
            outcomes = await self._batch()
            sent += outcomes.count("sent")
            if len(outcomes) < MAIL_BATCH or all(outcome == "later" for outcome in outcomes):
                return sent
            await anyio.lowlevel.checkpoint()  # here it may be cancelled

    async def _batch(self) -> list[MailOutcome]:
        """Sends the next few mails; their outcomes. Shielded: mails of a batch that was cut off would be sent twice."""
        with anyio.CancelScope(shield=True):
            token = self._ids.new("lse_")
            mails = await self._store.write(take_mails, token=token, now=self._clock.now(), most=MAIL_BATCH)
            return await self._send_all(mails, token)
        raise RuntimeError("a scope that nobody cancels has ended early")

    async def _send_all(self, mails: Sequence[WaitingMail], token: str) -> list[MailOutcome]:
        outcomes: list[MailOutcome] = []

        async def one(mail: WaitingMail) -> None:
            try:
                outcomes.append(await self._send(mail, token))
            except StoreUnavailable as error:
                self._away(error)

        async with anyio.create_task_group() as tasks:
            for mail in mails:
                tasks.start_soon(one, mail)
        return outcomes

    async def _send(self, mail: WaitingMail, token: str) -> MailOutcome:
        now = self._clock.now()
        try:
            if mail.id not in self._sent:
                if mail.expires_at <= now:
                    raise MailFailed(MAIL_EXPIRED, final=True)
                await self.transport.send(await with_picture(self._opened(mail)), mail.id)
        except MailFailed as failed:
            return await self._failed(mail, token, failed, now)
        self._sent.add(mail.id)
        await self._store.write(drop_mail, mail=mail.id, token=token, sent_at=now)
        self._sent.discard(mail.id)
        return "sent"

    def _opened(self, mail: WaitingMail) -> Letter:
        """The mail in clear. One that was changed never opens; one whose key is missing here may be opened by another process, or later."""
        try:
            return open_letter(mail.id, mail.sealed, self._keyring)
        except KeyUnknown:
            raise MailFailed(MAIL_KEY_MISSING) from None
        except (ValueError, WrongSeal):
            raise MailFailed(MAIL_CHANGED, final=True) from None

    async def _failed(self, mail: WaitingMail, token: str, failed: MailFailed, now: float) -> MailOutcome:
        """Drops the mail where trying again is no use, else puts it off. Reports never say whom it was for."""
        opened = str(failed) != MAIL_KEY_MISSING
        if failed.final:
            self._report(f"{mail.id} is given up: {failed}")
            await self._store.write(drop_mail, mail=mail.id, token=token, sent_at=None)
            return "given up"
        self._report(f"{mail.id} is tried again: {failed}")
        pause = MAIL_RETRY_SECONDS[min(mail.attempts, len(MAIL_RETRY_SECONDS)) - 1]
        await self._store.write(defer_mail, mail=mail.id, token=token, at=now + pause)
        return "later" if opened else "unopened"  # which says nothing of the mail server, so that the mails behind it are sent

    def _away(self, error: StoreUnavailable) -> None:
        self._report(f"the store is unavailable, mails wait: {error.message}")


async def with_picture(letter: Letter) -> Letter:
    if letter.drawn is None:
        return letter
    return replace(letter, drawn=None, attachment=Attachment("esim.png", "image/png", await qr_picture(letter.drawn, "png")))
