"""Sending batches to somebody who does not answer, asks to wait, or refuses: how long it is tried, and what ends it."""

from collections.abc import Mapping

import orjson
import pytest
from inline_snapshot import snapshot

from registry.call import Reply
from tests.world import SettableClock
from transports.cli.cdr import RecordSender, SentBatch
from transports.cli.terminal import Failure, Unreachable


def reply(status: int, *, wait: str | None = None, **body: object) -> Reply:
    return Reply(status, orjson.dumps(body), headers={} if wait is None else {"retry-after": wait})


def stored(count: int) -> Reply:
    return reply(200, received=count, stored=count, skipped=0)


DOWN = reply(503, wait="1", error="the disk is full", code="store_unavailable")


class Scripted:
    name = "http://there"

    def __init__(self, *answers: Reply | None) -> None:
        self.answers, self.asked, self.pauses, self.told = list(answers), list[object](), list[float](), list[str]()

    async def ask(
        self, operation: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None, credential: str | None = None
    ) -> Reply:
        assert (operation, idempotency_key, credential) == ("ingest_cdr_events", None, None)
        self.asked.append(arguments["events"])
        answer = self.answers.pop(0)
        if answer is None:
            raise Unreachable("--url: nobody answers", exit_code=3)
        return answer

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def send(self, *ids: str) -> SentBatch:
        sender = RecordSender(self, SettableClock(), say=self.told.append, pause=self.pause)
        return await sender.send([{"id": id} for id in ids])


async def test_who_does_not_answer_is_asked_five_times() -> None:
    door = Scripted(None, None, DOWN, None, None)
    with pytest.raises(Unreachable, match="nobody answers") as ended:
        await door.send("a")
    assert (ended.value.exit_code, door.pauses, len(door.asked)) == (3, [0.5, 1.0, 2.0, 4.0], 5)
    assert door.told == snapshot(
        [
            "--url: nobody answers; the next try is in 0.5 s",
            "--url: nobody answers; the next try is in 1 s",
            "http://there answers 503; the next try is in 2 s",
            "--url: nobody answers; the next try is in 4 s",
        ]
    )


async def test_the_last_refusal_of_a_server_in_trouble_is_told() -> None:
    door = Scripted(*[DOWN] * 5)
    with pytest.raises(Unreachable, match="the disk is full"):
        await door.send("a")


async def test_who_answers_again_gets_the_same_batch() -> None:
    door = Scripted(None, DOWN, stored(2))
    assert await door.send("a", "b") == SentBatch(2, 0, {})
    assert door.asked == [[{"id": "a"}, {"id": "b"}]] * 3


async def test_it_waits_as_long_as_it_is_asked_to_and_however_often() -> None:
    burst, quota = reply(429, wait="1", code="rate_limited"), reply(429, wait="43200", code="quota_exceeded")
    door = Scripted(*[burst] * 9, quota, reply(429), stored(1))
    assert await door.send("a") == SentBatch(1, 0, {})
    assert door.pauses == [1.0] * 9 + [43_200.0, 1.0]
    assert door.told == snapshot(["429 quota_exceeded: goes on in 43200 s, at 2027-01-16T00:00:00Z"])


async def test_records_that_are_refused_are_left_out_one_by_one() -> None:
    first = reply(400, error="events[1].iccid: not today", param="events[1].iccid")
    second = reply(400, error="events[1]: its SIM is full", param="events[1]")
    door = Scripted(first, second, stored(2))
    door_said = await door.send("a", "b", "c", "d")
    assert door_said == SentBatch(2, 0, {1: "iccid: not today", 2: "its SIM is full"})
    assert door.asked[-1] == [{"id": "a"}, {"id": "d"}]


async def test_nothing_is_sent_when_nothing_is_left() -> None:
    door = Scripted(reply(400, error="events[0]: no", param="events[0]"))
    assert await door.send("a") == SentBatch(0, 0, {0: "no"})
    assert await door.send() == SentBatch(0, 0, {})


@pytest.mark.parametrize(
    "answer",
    [
        reply(400, error="events: all of them", param="events"),
        reply(403, error="no", code="credential_restricted"),
        reply(404, error="nothing here"),
        reply(200, hello="world"),
        Reply(200, b"<html>"),
        Reply(200, b"[1]"),
    ],
)
async def test_what_waiting_does_not_mend_ends_the_import(answer: Reply) -> None:
    door = Scripted(answer)
    with pytest.raises(Failure):
        await door.send("a")
    assert door.pauses == []
