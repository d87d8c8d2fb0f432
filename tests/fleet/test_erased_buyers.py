"""A buyer who was erased: no name of theirs is stored again, whatever was known of their lines at that moment."""

import base64
from dataclasses import replace

import pytest
import sqlalchemy as sa

from simulators.network.entities import Line
from storage.engine.sql import Command, Connection
from storage.orders import STOREFRONT_ORDER, NewOrder, insert_order
from storage.rekey import SEALED_COLUMNS, reseal
from storage.sealing import Keyring
from storage.upstream_connections import set_connection
from tests.fleet.stage import ReadModelStage
from tests.fleet.test_names import choose, named_line, texts
from tests.fleet.truth import rows_of
from tests.network_facts import ACCOUNT, SIBLING
from tests.world import NOON

ADDRESS = "ingrid.solberg@post.example"
LONG_ADDRESS = f"{'x' * 60}@{'solberg' * 8}.{'solberg' * 8}.{'solberg' * 8}.example"
PAY = Command(
    sa.update(STOREFRONT_ORDER)
    .where(STOREFRONT_ORDER.c.id == sa.bindparam("order"))
    .values(email=sa.bindparam("address"), iccid=sa.bindparam("card"))
)


async def open_shop(stage: ReadModelStage) -> str:
    body = {"name": "Shop", "slug": "nordic-shop", "currency": "EUR"}
    made = await stage.http.post("/v1/storefronts", json=body, headers={"Idempotency-Key": "shop"})
    assert made.status_code in (200, 201), made.text
    return made.json()["id"]


async def erase(stage: ReadModelStage, address: str = ADDRESS) -> None:
    await stage.write("POST", f"/v1/storefronts/{await open_shop(stage)}/erase-buyer", email=address)


async def sell(stage: ReadModelStage, line: Line) -> None:
    """The line was sold to the address in the shop."""
    shop, organisation = await open_shop(stage), stage.who.organisation

    def write(connection: Connection) -> None:
        order = NewOrder("onr_sold", None, organisation, shop, "sfp_1", "{}", 1, None, 990, "EUR", "en", "acct_1", NOON)
        insert_order(connection, order=order)
        connection.run(PAY, order="onr_sold", address=ADDRESS, card=line.iccid)

    await stage.world.store.write(write)


async def list_again(stage: ReadModelStage) -> None:
    stage.clock.advance(6 * 60)
    await stage.sync()


async def nothing_is_stored(stage: ReadModelStage, line: Line) -> None:
    """Neither by lists, nor by questions that read the line itself, nor by calls that name it."""
    for _ in range(2):
        await list_again(stage)
        line.balance += 1_000_000
        assert not {each for each in await texts(stage) if "solberg" in each.lower()}
    await stage.query(text=line.iccid, fresh=True, limit=20)
    await stage.write("PUT", f"/v1/subscribers/{line.iccid}/contact", firstName="Ingrid", lastName="Solberg")
    assert not {each for each in await texts(stage) if "solberg" in each.lower()}
    await list_again(stage)
    assert not {each for each in await texts(stage) if "solberg" in each.lower()}


async def connect(stage: ReadModelStage, account: int | None) -> None:
    mode = None if account is None else "managed"
    await stage.world.store.write(set_connection, organisation=stage.who.organisation, mode=mode, account_id=account, own_token=None)


async def test_who_is_erased_while_no_names_are_kept_does_not_come_back_with_them(stage: ReadModelStage) -> None:
    line, other = named_line(stage), stage.line(1)
    other.name = "Kari Berg"
    await stage.count()
    await stage.sync()
    await choose(stage, kept=False)
    await erase(stage)
    await choose(stage, kept=True)
    await nothing_is_stored(stage, line)
    assert await stage.iccids(text="kari berg") == [other.iccid]


@pytest.mark.long
async def test_who_is_erased_before_the_fleet_was_listed_is_never_stored(both: ReadModelStage) -> None:
    line, sold = named_line(both), both.line(1)
    sold.name = "Solberg, Ingrid"
    await sell(both, sold)
    await erase(both)
    await both.count()
    await both.sync()
    for each in (line, sold):
        await nothing_is_stored(both, each)


@pytest.mark.long
async def test_who_is_erased_while_there_is_no_connection_is_not_stored_by_the_next_one(stage: ReadModelStage) -> None:
    line = named_line(stage)
    await stage.count()
    await stage.sync()
    await connect(stage, None)
    await erase(stage)
    assert await texts(stage) and not {each for each in await texts(stage) if "solberg" in each.lower()}
    await connect(stage, ACCOUNT)
    await stage.count()
    await stage.sync()
    await nothing_is_stored(stage, line)


@pytest.mark.parametrize("known", [True, False])
async def test_an_address_is_the_same_in_every_spelling(stage: ReadModelStage, known: bool) -> None:
    spellings = {
        " Blank.Solberg@post.example\t": "blank.solberg@post.example",
        "ingrid.\u017folberg@post.example": ADDRESS,  # a long s
        LONG_ADDRESS: LONG_ADDRESS.upper(),
    }
    for number, told in enumerate(spellings):
        stage.line(number).name, stage.line(number).email = " Ingrid Solberg ", told
    if known:
        await stage.count()
        await stage.sync()
        assert {"Ingrid Solberg", "Blank.Solberg@post.example", LONG_ADDRESS} <= await texts(stage)
    for asked in spellings.values():
        await erase(stage, asked)
    await stage.count()
    await nothing_is_stored(stage, stage.line())


async def test_a_line_that_was_away_when_its_buyer_was_erased_comes_back_without_names(stage: ReadModelStage) -> None:
    line = named_line(stage)
    line.email = None
    await stage.count()
    await stage.sync()
    await sell(stage, line)
    line.account_id = SIBLING
    await list_again(stage)
    assert "Ingrid Solberg" in await texts(stage)
    await erase(stage)
    assert not {each for each in await texts(stage) if "solberg" in each.lower()}
    line.account_id = ACCOUNT
    await nothing_is_stored(stage, line)
    assert await stage.iccids(text=line.iccid) == [line.iccid]


@pytest.mark.long
async def test_what_is_left_of_a_former_connection_is_erased_as_well(both: ReadModelStage) -> None:
    named_line(both)
    await both.count()
    await both.sync()
    await connect(both, SIBLING)
    await both.count()
    assert "Ingrid Solberg" in await texts(both)
    await erase(both)
    found = await texts(both)
    assert found and not {each for each in found if "solberg" in each.lower()}
    await choose(both, kept=False)
    assert await texts(both) == set()
    ended = await both.world.store.read(rows_of, "select due from fleet_sync where ended > 0")
    assert [row["due"] for row in ended] == [0]  # it is still to be removed


@pytest.mark.long
@pytest.mark.parametrize("method", ["listSubscriber", "getSingleSubscriber"])
async def test_what_was_asked_for_before_the_erasure_is_not_stored_after_it(both: ReadModelStage, method: str) -> None:
    line = both.line()
    await both.count()
    await both.sync()
    named_line(both)  # nothing here says yet whose line it is

    async def erase_meanwhile() -> None:
        await erase(both)
        both.trouble("listSubscriber", code=3, times=None)  # no further list sets it right

    both.sleep.act = erase_meanwhile
    both.trouble(method, delay=1.0)
    if method == "listSubscriber":
        await list_again(both)
    else:
        await both.query(text=line.iccid, fresh=True, limit=20)
    assert both.sleep.act is None
    assert await both.world.store.read(rows_of, "select digest from fleet_erased_buyer") != []
    assert not {each for each in await texts(both) if "solberg" in each.lower()}


async def test_a_call_that_gives_a_line_an_erased_address_stores_no_names_of_it(stage: ReadModelStage) -> None:
    line = stage.line()
    await stage.count()
    await stage.sync()
    await erase(stage)
    said = {"firstName": "Ingrid", "lastName": "Solberg", "email": ADDRESS.title()}
    await stage.write("PUT", f"/v1/subscribers/{line.iccid}/contact", **said)
    assert not {each for each in await texts(stage) if "solberg" in each.lower()}
    await nothing_is_stored(stage, line)


@pytest.mark.long
async def test_erasures_outlive_the_key_that_sealed_them_and_without_any_key_no_names_are_stored(stage: ReadModelStage) -> None:
    line, other, deps = named_line(stage), stage.line(1), stage.world.pipeline.deps
    other.name = "Kari Berg"
    await erase(stage)
    [old] = deps.keyring.key_ids
    fresh = f"fresh:{base64.b64encode(bytes(range(32))).decode()}"
    new = Keyring(fresh, deps.ids.bytes)
    stage.world.pipeline.deps = replace(deps, keyring=new)
    await stage.count()
    await stage.sync()
    assert not {each for each in await texts(stage) if "solberg" in each.lower() or "Kari" in each}
    text = f"{fresh},{old}:{base64.b64encode(deps.keyring._keys[old]).decode()}"
    for column in SEALED_COLUMNS:
        await reseal(stage.world.store, Keyring(text, deps.ids.bytes), column)
    await list_again(stage)
    assert "Kari Berg" in await texts(stage)
    await nothing_is_stored(stage, line)


async def test_neither_address_nor_card_of_an_erased_buyer_can_be_read_in_what_is_remembered(stage: ReadModelStage) -> None:
    line = named_line(stage)
    await sell(stage, line)
    await erase(stage)
    kept = [await stage.world.store.read(rows_of, f"select * from {name}") for name in ("fleet_erased_buyer", "fleet_erasure_key")]
    assert [len(rows) for rows in kept] == [2, 1]
    assert "solberg" not in repr(kept).lower() and line.iccid not in repr(kept)
