"""What is kept of large accounts, on both databases."""

from storage.account_parts import (
    AccountPlace,
    ListingRow,
    PartMembers,
    check_parts,
    drop_parts,
    find_parts,
    members_of_parts,
    store_all_parts,
    store_parts,
    sweep_parts,
)
from storage.engine.store import Store

PLACE = AccountPlace("org_1", "digest", 8101)
OTHER = PLACE._replace(organisation="org_2")


def part(prefix: str, lowest: int, *, changed: float = 100.0) -> PartMembers:
    return PartMembers(prefix, lowest, lowest + 9, 10, 100.0, changed, f"members of {prefix}")


async def test_parts_are_kept_for_one_reader_in_the_order_of_their_ids(store: Store) -> None:
    assert await store.read(find_parts, place=PLACE) == (None, ())
    await store.write(store_all_parts, place=PLACE, listing=ListingRow(20, 1, 100.0, 100.0), parts=[part("89b", 30), part("89a", 50)])
    await store.write(store_all_parts, place=OTHER, listing=ListingRow(10, 1, 100.0, 100.0), parts=[part("89c", 1)])
    found = await store.read(find_parts, place=PLACE)
    assert (found.listing, [row.prefix for row in found.parts]) == (ListingRow(20, 1, 100.0, 100.0), ["89b", "89a"])
    assert await store.read(members_of_parts, place=PLACE, prefixes=["89a", "89c"]) == [part("89a", 50)]


async def test_a_part_that_was_split_is_replaced_and_one_of_a_forgotten_account_is_not_kept(store: Store) -> None:
    await store.write(store_all_parts, place=PLACE, listing=ListingRow(20, 1, 100.0, 100.0), parts=[part("89a", 1), part("89b", 30)])
    halves = [part("89a1", 1, changed=200.0), part("89a2", 5, changed=200.0)]
    await store.write(store_parts, place=PLACE, lines=30, gone=["89a"], parts=halves)
    found = await store.read(find_parts, place=PLACE)
    assert (found.listing and found.listing.lines, [row.prefix for row in found.parts]) == (30, ["89a1", "89a2", "89b"])
    await store.write(check_parts, place=PLACE, checked=300.0)
    assert (await store.read(find_parts, place=PLACE)).listing == ListingRow(30, 1, 100.0, 300.0)
    await store.write(drop_parts, place=PLACE)
    await store.write(store_parts, place=PLACE, lines=10, gone=[], parts=[part("89a", 1)])
    assert await store.read(find_parts, place=PLACE) == (None, ())
    assert await store.read(members_of_parts, place=PLACE, prefixes=["89a", "89b"]) == []


async def test_accounts_that_nobody_reads_are_forgotten_and_others_are_not(store: Store) -> None:
    await store.write(store_all_parts, place=PLACE, listing=ListingRow(10, 1, 100.0, 100.0), parts=[part("89a", 1)])
    await store.write(store_all_parts, place=OTHER, listing=ListingRow(10, 1, 100.0, 900.0), parts=[part("89a", 1)])
    assert await store.write(sweep_parts, before=500.0) == 1
    assert await store.read(members_of_parts, place=PLACE, prefixes=["89a"]) == []
    assert await store.read(members_of_parts, place=OTHER, prefixes=["89a"]) == [part("89a", 1)]
