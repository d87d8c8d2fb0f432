"""A filled database of release 1.0, where an order's id was its key: upgraded at rest, amid a refund, amid a draw, amid a payment."""

import re
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
import orjson
import pytest

from registry.ids import former_order_number
from registry.ports import SharedSecrets
from storage.storefronts import take_address
from tests.databases import sqlite_url
from tests.fulfilment.floor import PRICE, Floor, open_floor
from tests.fulfilment.release_1_0 import as_release_1_0, every_text, upgraded
from tests.fulfilment.test_refund import FAILED, failing
from tests.fulfilment.test_refund_doubt import begun_refund, owed, synced
from tests.network_facts import HOUR, MINUTE

TOKEN = re.compile(r"ord_[0-9a-z]{26}")


@dataclass
class House:
    floor: Floor
    url: str

    async def upgraded(self) -> dict[str, str]:
        """Back to release 1.0 and up again: the ids of then, by the numbers that the test knows."""
        ids = await as_release_1_0(self.floor, self.url)
        await upgraded(self.floor, self.url)
        return dict(ids)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_floor(tmp_path) as floor:
        yield House(floor, sqlite_url(tmp_path))


@pytest.fixture
async def on_both(tmp_path: Path, whole_database_url: str | None) -> AsyncGenerator[House]:
    async with open_floor(tmp_path, whole_database_url) as floor:
        yield House(floor, whole_database_url or sqlite_url(tmp_path))


@pytest.mark.long
async def test_after_the_upgrade_the_old_id_opens_its_order_and_the_organisation_sees_a_number(on_both: House) -> None:
    house = on_both
    floor, shop = house.floor, house.floor.shop
    before = await shop.buy()
    top_up = await shop.top_up(before)
    await floor.work()
    esim = (await shop.http.get(f"/api/orders/{before}")).json()["esim"]
    old = (await house.upgraded())[before]
    number = former_order_number(old)
    shown = (await shop.http.get(f"/api/orders/{number}")).json()
    assert (shown["number"], shown["status"], shown["esim"]) == (number, "ready", esim)
    assert [one["id"] for one in shown["top_ups"]] == [top_up]
    shop.world.pipeline.secrets = SharedSecrets()
    async with shop.world.client() as buyer, shop.world.client(shop.me.secret) as operator:
        assert (await buyer.get(f"/api/orders/{old}")).json() == shown | {"id": old}
        assert (await buyer.get(f"/api/orders/{number}")).status_code == 404
        seen = [await operator.get(path) for path in ("/v1/storefronts/orders", "/v1/connectivity/events", "/v1/operator-billing/charges")]
        assert [TOKEN.findall(answer.text) for answer in seen] == [[]] * 3
        assert [number in answer.text for answer in seen] == [True] * 3
        await require_known(operator, old)
    assert TOKEN.findall(every_text(house.url)) == []


async def require_known(operator: httpx.AsyncClient, key: str) -> None:
    """The operator's roll-back takes the key of before: the issuance is found, though a top-up is on its line, so nothing is taken back."""
    path = f"/v1/subscribers/issue-from-inventory/{key}"
    asked = await operator.delete(path)
    assert asked.status_code == 202, asked.text
    said = await operator.delete(path, headers={"X-Confirm-Token": asked.json()["confirm_token"]})
    assert (said.status_code, said.json()["code"]) == (409, "line_has_packages"), said.text


@pytest.mark.long
async def test_a_word_of_an_old_charge_that_comes_later_brings_no_id_back(house: House) -> None:
    floor, shop = house.floor, house.floor.shop
    before = await shop.buy()
    ids = await as_release_1_0(floor, house.url)
    async with shop.world.payments.turn(writes=True) as state:
        processor = orjson.dumps(asdict(state))  # a real processor keeps what it was told
    assert ids[before].encode() in processor
    await upgraded(floor, house.url)
    async with shop.world.payments.turn(writes=True) as state:
        for charge in state.book(shop.payee).charges.values():
            charge.metadata = {"order": ids[before]}
    await synced(floor)
    assert TOKEN.findall(every_text(house.url)) == []


@pytest.mark.long
async def test_a_refund_whose_answer_was_lost_before_the_upgrade_is_sent_under_the_key_that_was_sent(on_both: House) -> None:
    house, floor, world = on_both, on_both.floor, on_both.floor.shop.world
    before = await failing(floor)
    await floor.at_processor("timeout", after=True, times=99)
    await floor.work(2, every=1)
    await floor.calm()
    assert ((await floor.row(before)).refund, floor.refunds()) == ("unknown", [PRICE])
    sent = [call.key for call in world.payments.calls if call.path == "/v1/refunds"]
    old = (await house.upgraded())[before]
    number = former_order_number(old)
    assert f"order-refund:{old}" in every_text(house.url)  # what may have been sent keeps its key
    await floor.work(4, every=5 * MINUTE)
    again = [call.key for call in world.payments.calls if call.path == "/v1/refunds"][len(sent) :]
    assert set(again) == {f"order-refund:{old}"}
    assert (await floor.end(number), floor.refunds()) == (("failed", FAILED, "done"), [PRICE])
    assert TOKEN.findall(every_text(house.url)) == []


@pytest.mark.long
async def test_a_refund_that_was_committed_and_not_sent_before_the_upgrade_is_made_once(house: House) -> None:
    floor = house.floor
    before = await owed(floor)
    await begun_refund(floor, "att_1")
    number = former_order_number((await house.upgraded())[before])
    await floor.work(4, every=5 * MINUTE)
    await synced(floor)
    await floor.work(4, every=5 * MINUTE)
    assert (await floor.end(number), floor.refunds()) == (("failed", FAILED, "done"), [PRICE])
    assert TOKEN.findall(every_text(house.url)) == []


@pytest.mark.long
async def test_an_esim_that_was_being_drawn_at_the_upgrade_is_drawn_once(house: House) -> None:
    floor = house.floor
    before = await floor.paid()
    floor.strike(drop_after=True)
    await floor.work()
    assert (await floor.row(before)).status == "needs_review"
    number = former_order_number((await house.upgraded())[before])
    await floor.reconcile(5 * MINUTE)
    await floor.work(3, every=1)
    row, ledger = await floor.row(number), await floor.ledger(number)
    assert ledger is not None
    assert (row.status, ledger.state, row.iccid) == ("ready", "issued", ledger.held)
    assert (floor.draws(), await floor.gone(), await floor.told()) == (1, 1, [row.iccid])


@pytest.mark.long
async def test_an_order_whose_worker_died_with_the_old_release_is_never_drawn_again(house: House) -> None:
    floor = house.floor
    before = await floor.paid()
    floor.strike(drop_before=True)
    await floor.work()
    number = former_order_number((await house.upgraded())[before])
    await floor.mourn()
    await floor.work(5, every=MINUTE)
    assert floor.draws() == 1
    await floor.reconcile(HOUR)
    await floor.work(3, every=1)
    assert (await floor.row(number)).status == "failed"
    assert (floor.draws(), await floor.gone(), floor.refunds()) == (1, 0, [PRICE])


@pytest.mark.long
async def test_a_page_that_was_open_at_the_upgrade_pays_its_order(house: House) -> None:
    floor, shop = house.floor, house.floor.shop
    before = (await shop.begin()).order
    number = former_order_number((await house.upgraded())[before])
    await shop.pay(number)
    await shop.told()
    await floor.work()
    assert ((await floor.row(number)).status, floor.draws()) == ("ready", 1)


@pytest.mark.long
async def test_the_address_that_a_shop_had_at_the_upgrade_is_its_organisations(house: House) -> None:
    shop = house.floor.shop
    await house.upgraded()
    theirs, ours = shop.shop._replace(organisation="org_theirs"), shop.shop._replace(id="sf_another")
    assert [await shop.world.store.write(take_address, row=row, now=1.0) for row in (theirs, ours)] == [False, True]
