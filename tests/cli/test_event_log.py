"""Reading what is new from a list that has the newest first: each event once, also those whose id lies below what was seen."""

import pytest

from operations.ledger.webhooks import Event
from transports.cli.events import EventLog, EventPage


class Journal:
    """Events by the number in their id, in pages of 20, and a clock that a test turns."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.asked, self.time = 0, 0.0

    def add(self, *numbers: int, created: int = 1000) -> None:
        for number in numbers:
            id = f"evt_{number:06}"
            self.events[id] = {
                "id": id,
                "object": "connectivity.event",
                "type": "esim.issued",
                "livemode": False,
                "created": created,
                "data": {},
            }

    async def page(self, after: str | None) -> EventPage:
        self.asked += 1
        older = sorted((id for id in self.events if after is None or id < after), reverse=True)
        return EventPage([self.events[id] for id in older[:20]], len(older) > 20)

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def numbers(events: list[Event]) -> list[int]:
    return [int(event["id"][4:]) for event in events]


def every(event: Event) -> bool:
    return bool(event)


async def begun(journal: Journal, last: int | None = 0) -> EventLog:
    log = EventLog(journal.page, journal)
    await log.begin(last, every)
    return log


async def test_what_is_there_already_is_no_news_however_much_it_is() -> None:
    journal = Journal()
    journal.add(*range(100))
    log = await begun(journal)
    assert await log.news() == []
    journal.add(100)
    assert numbers(await log.news()) == [100]
    assert await log.news() == []


async def test_hundreds_between_two_looks_come_once_each_oldest_first() -> None:
    journal = Journal()
    journal.add(1, 2)
    log = await begun(journal)
    journal.add(*range(3, 500))
    assert numbers(await log.news()) == list(range(3, 500))
    assert await log.news() == []


async def test_an_event_whose_transaction_ended_late_is_found_below_those_that_were_seen() -> None:
    journal = Journal()
    log = await begun(journal)
    journal.add(*range(0, 200, 2))
    assert len(await log.news()) == 100
    journal.add(3)
    journal.add(201, created=1001)
    assert numbers(await log.news()) == [3, 201]


async def test_an_event_of_a_clock_that_is_ahead_hides_none_of_the_others() -> None:
    journal = Journal()
    log = await begun(journal)
    journal.add(900_000, created=4600)
    assert numbers(await log.news()) == [900_000]
    journal.add(*range(1, 50))
    assert numbers(await log.news()) == list(range(1, 50))


async def test_in_quiet_times_a_look_is_one_call() -> None:
    journal = Journal()
    log = await begun(journal)
    journal.add(*range(60))
    await log.news()
    journal.time += 6
    journal.asked = 0
    assert await log.news() == []
    assert journal.asked == 1


async def test_a_reading_that_breaks_off_half_way_is_made_again_whole() -> None:
    journal = Journal()
    failing = [False, True]

    async def breaking(after: str | None) -> EventPage:
        if after is not None and failing.pop():
            raise ConnectionError
        return await journal.page(after)

    log = EventLog(breaking, journal)
    await log.begin(0, every)
    journal.add(*range(30))
    with pytest.raises(ConnectionError):
        await log.news()
    assert numbers(await log.news()) == list(range(30))


async def test_the_newest_that_are_wanted_are_collected_over_pages() -> None:
    journal = Journal()
    journal.add(*range(100))
    log = EventLog(journal.page, journal)
    assert numbers(await log.begin(5, lambda event: int(event["id"][4:]) % 10 == 0)) == [50, 60, 70, 80, 90]
    assert numbers(await EventLog(journal.page, journal).begin(None, every)) == list(range(100))
    assert await log.news() == []


async def test_the_memory_of_what_was_seen_is_bounded_and_forgets_nothing_that_could_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transports.cli.events.REMEMBERED", 50)
    journal = Journal()
    log = await begun(journal)
    for start in range(0, 200, 40):
        journal.add(*range(start, start + 40))
        assert numbers(await log.news()) == list(range(start, start + 40))
        assert await log.news() == []
