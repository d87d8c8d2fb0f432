"""`reseller storefront settle` and `reseller orders renew-access` as a person uses them."""

import asyncio
from pathlib import Path

import orjson

from operations.ledger.orders import new_order_token
from registry.caller import Role, Tier
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.engine.store import open_store
from storage.orders import order_of_token
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from tests.cli.reseller import printed, refused
from tests.databases import migrated_sqlite, sqlite_url
from tests.kill.orders import insert_paid
from tests.simulation.shops import open_simulated_shop
from tests.top_ups.counter import read_notes

WORDS = ("storefront", "settle")


def test_the_command_line_takes_one_word_and_says_what_is_wrong(tmp_path: Path) -> None:
    both = refused(*WORDS, "ord_1", "--refund", "--added", cwd=tmp_path)
    none = refused(*WORDS, "ord_1", cwd=tmp_path)
    migrated_sqlite(tmp_path)
    unknown = refused(*WORDS, "ord_none", "--refund", "--by", "ann", "--data", tmp_path, cwd=tmp_path)
    assert [code for code, _ in (both, none, unknown)] == [2, 2, 1]
    assert "exactly one of --refund and --added" in both[1] and "There is no such order or top-up" in unknown[1]


def test_access_is_renewed_by_the_number_of_the_order_or_by_its_id_of_before(tmp_path: Path) -> None:
    number, store, ids, now = asyncio.run(sold(tmp_path)), open_store(sqlite_url(tmp_path)), SystemIds(SystemClock()), SystemClock().now()
    token, unpaid = asyncio.run(store.write(new_order_token, ids=ids, order=number, now=now)), ids.new("onr_")
    words = ("orders", "renew-access", "--by", "ann", "--data", tmp_path)
    code, message = refused(*words, number, cwd=tmp_path)
    assert (code, "SERVICE_BASE_URL: not set" in message) == (2, True)
    assert asyncio.run(store.read(order_of_token, token=token)) == number  # no link was ended for a mail that would lead nowhere
    for named in (number, token):
        assert (
            printed(*words, named, cwd=tmp_path, SERVICE_BASE_URL="http://127.0.0.1:8123")
            == f"{number}: its links are ended, and a new one is mailed to its buyer\n"
        )
        assert asyncio.run(store.read(order_of_token, token=token)) is None
        assert asyncio.run(store.read(order_of_token, token=token, ended=True)) == number
    code, message = refused(*words, unpaid, "ord_" + "0" * 26, cwd=tmp_path, SERVICE_BASE_URL="http://127.0.0.1:8123")
    assert (code, message.count("There is no order with this number"), "ord_0" in message) == (1, 2, False)
    rows = asyncio.run(store.read(read_notes))
    assert [(row.operation, row.principal, row.surface, row.outcome) for row in rows] == [
        ("renew_storefront_order_access", "ann", "cli", "renewed")
    ] * 2
    asyncio.run(store.aclose())


def test_whoever_runs_the_service_reads_an_order_by_its_number(tmp_path: Path) -> None:
    number = asyncio.run(sold(tmp_path))
    words = ("call", "get_storefront_order", "--orderId", number, "--json", "--data", tmp_path)
    for key in ("", "the-key-of-the-shops-server-0123456789"):
        told = orjson.loads(printed(*words, cwd=tmp_path, SERVICE_STOREFRONT_API_KEY=key))
        assert (told["id"], told["number"], told["status"]) == (number, number, "paid")


async def sold(folder: Path) -> str:
    store, ids, now = open_store(migrated_sqlite(folder)), SystemIds(SystemClock()), SystemClock().now()
    number, person = ids.new("onr_"), ids.new("usr_")
    await store.write(create_organisation, id="org_fjord", name="Fjord", tier=Tier.PRO, now=now)
    await store.write(create_person, id=person, now=now, subject=None)
    await store.write(add_member, person=person, organisation="org_fjord", role=Role.ADMIN, now=now)
    shop = await store.write(open_simulated_shop, ids=ids, organisation="org_fjord", account=8101, now=now)
    await store.write(insert_paid, id=number, shop=shop, plan=shop.plans[0], template=55010, now=now)
    await store.aclose()
    return number
