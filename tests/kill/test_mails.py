"""The judge of mails over histories that never were: what holds, and each fault that it is to find."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.harness.caught_mails import CaughtMail
from tests.kill.mails import MailEnding, NoticeRow, ToldReader, broken_mails, count_mails

READER = ToldReader("usr_a", "org_a", "a@kill.example")
MINUTE_MS = 60_000


@dataclass
class InventedMails:
    """Events of one organisation, each mailed to one reader, and what went wrong with it."""

    notices: list[NoticeRow] = field(default_factory=list[NoticeRow])
    caught: list[CaughtMail] = field(default_factory=list[CaughtMail])
    waiting: list[str] = field(default_factory=list[str])
    unheard: dict[str, str] = field(default_factory=dict[str, str])

    def mailed(self, mail: str, event: str, *others: str, life: int = 1, minute: int = 0) -> None:
        """These became a mail, which was sent once."""
        self.notices += [NoticeRow(READER.person, each, "esim.issued", minute * MINUTE_MS, mail) for each in (event, *others)]
        text = f"An eSIM was issued ({1 + len(others)} times)\n" if others else f"An eSIM was issued\n  Event: {event}\n"
        self.caught.append(CaughtMail(mail, READER.address, text, life))

    def again(self, *, life: int, text: str | None = None, to: str | None = None) -> None:
        """The last mail comes once more."""
        last = self.caught[-1]
        self.caught.append(last._replace(life=life, text=text or last.text, to=to or last.to))

    def ending(self) -> MailEnding:
        events = {notice.event: READER.organisation for notice in self.notices} | self.unheard
        return MailEnding(events, [READER], self.notices, self.waiting, self.caught)


def well_mailed() -> InventedMails:
    """Two single mails, one of them twice with a kill between, and one with the rest of an hour."""
    made = InventedMails()
    made.mailed("mail_1", "evt_1")
    made.mailed("mail_2", "evt_2", life=2)
    made.again(life=3)
    made.mailed("mail_3", "evt_3", "evt_4", life=3)
    return made


def test_mails_that_came_once_or_again_after_a_kill_break_nothing() -> None:
    ending = well_mailed().ending()
    assert broken_mails(ending) == []
    assert count_mails(ending) == (3, 4, 0, 1)


def lost_notice(made: InventedMails) -> None:
    made.unheard["evt_9"] = READER.organisation


def dropped_notice(made: InventedMails) -> None:
    made.notices.append(NoticeRow(READER.person, "evt_9", "esim.issued", 5, ""))


def lost_mail(made: InventedMails) -> None:
    made.notices.append(NoticeRow(READER.person, "evt_9", "esim.issued", 5, "mail_9"))


def waiting_mail(made: InventedMails) -> None:
    made.waiting.append("mail_9")


def doubled_mail(made: InventedMails) -> None:
    made.again(life=3)


def other_words(made: InventedMails) -> None:
    made.again(life=4, text="An eSIM was issued (2 times) \n")


def other_reader(made: InventedMails) -> None:
    made.again(life=4, to="b@kill.example")


def second_mail(made: InventedMails) -> None:
    made.caught.append(CaughtMail("mail_9", READER.address, "Event: evt_1\n", 4))


def short_mail(made: InventedMails) -> None:
    made.mailed("mail_9", "evt_9", "evt_10")
    made.caught[-1] = made.caught[-1]._replace(text="An eSIM was issued\n")


def wrong_event(made: InventedMails) -> None:
    made.mailed("mail_9", "evt_9")
    made.caught[-1] = made.caught[-1]._replace(text="An eSIM was issued\n  Event: evt_8\n")


def full_hour(made: InventedMails) -> None:
    for number in range(21):
        made.mailed(f"mail_{number + 100}", f"evt_{number + 100}", minute=100 + number)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lost_notice, "evt_9 was mailed to a@kill.example never: None"),
        (dropped_notice, "evt_9 was mailed to a@kill.example never"),
        (lost_mail, "evt_9 was mailed to a@kill.example never"),
        (waiting_mail, "mail_9 waits still"),
        (doubled_mail, "mail_3 was sent 2 times by one server"),
        (other_words, "mail_3 went to somebody else, or said something else"),
        (other_reader, "mail_3 went to somebody else, or said something else"),
        (second_mail, "mail_9 tells of no event"),
        (short_mail, "mail_9 does not tell of ['An eSIM was issued (2 times)']"),
        (wrong_event, "mail_9 does not tell of evt_9"),
        (full_hour, "a@kill.example had more than 20 mails in the hour"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_fault_of_the_mails_is_found(fault: Callable[[InventedMails], None], said: str) -> None:
    made = well_mailed()
    fault(made)
    found = broken_mails(made.ending())
    assert len(found) == 1 and found[0].startswith(said), found
