"""Which notifications are repetitions, the same on both databases."""

import asyncio
import hashlib

import pytest

from storage.engine.store import Store
from storage.inbound_pushes import PUSH_DAY, InboundPush, take_push
from tests.world import NOON


def push(body: str, subject: str = "line", id: str | None = None) -> InboundPush:
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (id or "", subject, body)]
    return InboundPush(digests[0] if id else None, digests[1], digests[2])


async def take(store: Store, push: InboundPush, at: float = 0) -> bool:
    return await store.write(take_push, push=push, now=NOON + at)


async def test_a_body_is_a_repetition_for_a_minute_unless_its_subject_said_something_else(store: Store) -> None:
    steps = [("on", 0, True), ("on", 59, False), ("on", 60, True), ("off", 61, True), ("on", 62, True), ("on", 63, False)]
    for body, at, new in steps:
        assert await take(store, push(body), at) is new, (body, at)


async def test_subjects_do_not_disturb_each_other(store: Store) -> None:
    subjects = [f"line {number}" for number in range(40)]
    assert [await take(store, push("on", subject)) for subject in subjects] == [True] * 40
    assert [await take(store, push("on", subject)) for subject in subjects] == [False] * 40


async def test_an_id_is_a_repetition_for_seven_days_whatever_the_body(store: Store) -> None:
    assert await take(store, push("on", id="m1")) is True
    assert await take(store, push("off", id="m1"), 7 * PUSH_DAY - 1) is False
    assert await take(store, push("on")) is True
    assert await take(store, push("on", id="m1"), 7 * PUSH_DAY) is True


@pytest.mark.cases
@pytest.mark.parametrize("id", [None, "m1"])
async def test_of_many_at_once_one_is_new(store: Store, id: str | None) -> None:
    assert sum(await asyncio.gather(*(take(store, push("on", id=id)) for _ in range(24)))) == 1
    assert sum(await asyncio.gather(*(take(store, push("on", id=id), 8 * PUSH_DAY) for _ in range(24)))) == 1
