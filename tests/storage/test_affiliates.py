"""Affiliates on both databases: one code however many ask at once, one referral for ever, and links of people by address."""

import asyncio

import sqlalchemy as sa

from operations.setup.affiliates import attach_referral, join_affiliates
from registry.errors import Conflict
from storage.affiliates import count_referrals, referral_of
from storage.directory import awaits_subject, link_subject
from storage.engine.sql import Command, Connection
from storage.engine.store import Store
from storage.organisations import create_organisation
from storage.people import PERSON, create_person
from tests.world import NOON, CountingIds, SettableClock

IDS = CountingIds(SettableClock())
OURS, FRESH = "org_ours", "org_fresh"
SIGN_UP = Command(sa.update(PERSON).where(PERSON.c.id == sa.bindparam("person")).values(address=sa.bindparam("signed_up_as")))


def found(connection: Connection, *names: str) -> None:
    for name in names:
        create_organisation(connection, id=name, name=name, tier="pro", now=NOON)


async def code_of(store: Store, organisation: str) -> tuple[str, bool]:
    affiliate, new = await store.write(join_affiliates, organisation=organisation, now=NOON, ids=IDS)
    return affiliate.code, new


async def test_32_who_join_at_once_get_one_code(store: Store) -> None:
    await store.write(found, OURS)
    said = await asyncio.gather(*(code_of(store, OURS) for _ in range(32)))
    assert (len({code for code, _ in said}), sum(new for _, new in said)) == (1, 1)


async def test_of_many_codes_at_once_one_brings_the_organisation(store: Store) -> None:
    others = [f"org_{number}" for number in range(8)]
    await store.write(found, FRESH, *others)
    codes = [(await code_of(store, name))[0] for name in others]

    async def attached(code: str) -> str:
        try:
            return await store.write(attach_referral, organisation=FRESH, person="usr_x", code=code, now=NOON)
        except Conflict:
            return "taken"

    said = await asyncio.gather(*(attached(code) for code in codes))
    assert sorted(said) == ["attached"] + ["taken"] * 7
    won = await store.read(referral_of, organisation=FRESH)
    assert won is not None and (won.affiliate, won.code) == (others[said.index("attached")], codes[said.index("attached")])
    assert sum([await store.read(count_referrals, affiliate=name) for name in others]) == 1


def sign_up(connection: Connection) -> None:
    for person in ("usr_a", "usr_b"):
        create_person(connection, id=person, now=NOON)
        connection.run(SIGN_UP, person=person, signed_up_as=f"{person}@example.com")


async def test_one_subject_that_comes_with_two_addresses_at_once_is_one_person(store: Store) -> None:
    await store.write(sign_up)
    linked = await asyncio.gather(
        *(store.write(link_subject, subject="ada", address=f"{person}@example.com") for person in ("usr_a", "usr_b") for _ in range(4))
    )
    assert linked.count(True) == 1
    assert [await store.read(awaits_subject, address=f"{person}@example.com") for person in ("usr_a", "usr_b")].count(True) == 1
