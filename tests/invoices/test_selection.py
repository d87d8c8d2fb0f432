"""Invoices of some of a month's SIMs: for a recipient, in a currency, and nothing is billed twice."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.faults import NetworkFault
from storage.engine.sql import Connection
from storage.invoices import INVOICED, INVOICED_WHOLE, mark_period_invoiced
from tests.cdr.records import Json
from tests.harness.machine_runner import ServiceMachine
from tests.invoices.billing import DECEMBER, GB, INVOICES, Billing, sim
from tests.length import examples
from tests.world import World, open_world

pytestmark = pytest.mark.long

TO = {"recipient_name": "Fjord Ferries AS", "recipient_email": "accounts@fjord.example"}


def billed(invoice: Json) -> dict[str, tuple[int, int]]:
    return {line["iccid"]: (line["bytes_up"], line["bytes_down"]) for line in invoice["line_items"]}


async def test_an_invoice_of_some_sims_has_its_recipient_its_currency_and_its_largest_lines(bill: Billing) -> None:
    await bill.config(currency="USD", price_per_gb_cents=100)
    await bill.use(*((sim(number), number, number * GB) for number in range(1, 9)))
    made = await bill.create(iccids=[sim(number) for number in (1, 3, 4, 5, 6, 7)], currency="EUR", price_per_gb_cents=250, **TO)
    assert made.status_code == 201, made.text
    answer = made.json()
    assert (answer["currency"], answer["recipient_name"], answer["recipient_email"]) == (
        "EUR",
        "Fjord Ferries AS",
        "accounts@fjord.example",
    )
    assert (answer["subtotal_cents"], answer["line_count"], answer["not_billed"]) == (26 * 250, 6, [])
    assert [(line["iccid"], line["amount_cents"], line["currency"]) for line in answer["largest_lines"]] == [
        (sim(number), number * 250, "EUR") for number in (7, 6, 5, 4, 3)
    ]
    whole = await bill.read(answer["id"])
    assert billed(whole) == {sim(number): (number, number * GB) for number in (1, 3, 4, 5, 6, 7)}
    assert answer["largest_lines"] == sorted(whole["line_items"], key=lambda line: -line["amount_cents"])[:5]


async def test_what_one_invoice_bills_is_on_no_other_and_the_month_s_own_has_the_rest(bill: Billing) -> None:
    await bill.use((sim(1), 1, GB), (sim(2), 0, 2 * GB), (sim(3), 0, 3 * GB))
    first = (await bill.create(iccids=[sim(1)], price_per_gb_cents=100)).json()
    second = await bill.create(iccids=[sim(1), sim(2), sim(9)], price_per_gb_cents=100)
    assert (second.status_code, billed(await bill.read(second.json()["id"])), second.json()["not_billed"]) == (
        201,
        {sim(2): (0, 2 * GB)},
        [{"iccid": sim(1), "reason": "already_billed"}, {"iccid": sim(9), "reason": "no_records"}],
    )
    rest = (await bill.create(price_per_gb_cents=100)).json()
    assert billed(await bill.read(rest["id"])) == {sim(3): (0, 3 * GB)}
    nothing = await bill.create(iccids=[sim(1), sim(3)])
    assert nothing.status_code == 409
    assert nothing.json() | {"request_id": ""} == snapshot(
        {
            "error": "There is nothing left to bill in 2026-12: other invoices bill all of it already; nothing was made",
            "code": "nothing_to_bill",
            "request_id": "",
            "hint": "list_invoices names them; what void_invoice voids can be billed again",
        }
    )
    assert (await bill.void(first["id"])).status_code == 200
    again = (await bill.create(iccids=[sim(1)], price_per_gb_cents=100)).json()
    assert billed(await bill.read(again["id"])) == {sim(1): (1, GB)}
    assert [row["invoice_number"][-6:] for row in (await bill.http.get(INVOICES)).json()["data"]] == [
        "000004",
        "000003",
        "000002",
        "000001",
    ]


async def test_an_invoice_of_the_whole_month_looks_at_others_only_where_some_sims_were_billed_alone(bill: Billing) -> None:
    await bill.use((sim(1), 0, GB), (sim(2), 0, 2 * GB))
    assert bill.world.store.dialect_name == "sqlite"
    statements, lines = list[str](), list[list[str]]()

    def trace(connection: Connection, callback: Callable[[str], None] | None) -> None:
        cast(sqlite3.Connection, connection.driver).set_trace_callback(callback)

    async def make_whole() -> bool:
        """Whether it looked at what was billed."""
        statements.clear()
        made = await bill.create(price_per_gb_cents=100)
        lines.append(sorted(billed(await bill.read(made.json()["id"]))))
        return any("JOIN invoice ON" in statement for statement in statements)

    await bill.world.store.write(trace, callback=statements.append)
    whole = [await make_whole(), await make_whole()]
    for row in (await bill.http.get(INVOICES)).json()["data"]:
        await bill.void(row["id"])
    assert (await bill.create(iccids=[sim(1)], price_per_gb_cents=100)).status_code == 201
    rest = [await make_whole(), await make_whole()]
    await bill.world.store.write(trace, callback=None)
    assert (whole, rest) == ([False, False], [True, True])
    assert lines == [[sim(1), sim(2)], [sim(1), sim(2)], [sim(2)], [sim(2)]]


async def test_a_period_says_whether_invoices_of_some_sims_may_stand_beside_those_of_the_whole_month(bill: Billing) -> None:
    await bill.use(GB)
    period, organisation = await bill.period(), bill.who.organisation

    async def mark(*, whole: bool) -> int | None:
        found = await bill.world.store.write(mark_period_invoiced, period=period, organisation=organisation, whole=whole)
        return None if found is None else found.invoiced

    states = [await mark(whole=whole) for whole in (True, True, False, True, False)]
    assert states == [INVOICED_WHOLE, INVOICED_WHOLE, INVOICED, INVOICED, INVOICED]
    organisation = "org_of_others"
    assert await mark(whole=True) is None


async def test_late_records_of_a_sim_that_was_billed_are_billed_alone(bill: Billing) -> None:
    await bill.use((sim(1), 0, GB))
    await bill.create(iccids=[sim(1)], price_per_gb_cents=100)
    await bill.use((sim(1), 7, GB // 2))
    late = (await bill.create(iccids=[sim(1)], price_per_gb_cents=100)).json()
    assert (billed(await bill.read(late["id"])), late["subtotal_cents"]) == ({sim(1): (7, GB // 2)}, 50)


async def test_a_sim_that_was_billed_more_than_it_used_makes_no_invoice_of_nothing(bill: Billing) -> None:
    await bill.use((sim(1), 0, 10 * GB))
    for _ in range(2):  # two invoices of the whole month may bill the same
        assert (await bill.create(price_per_gb_cents=100)).status_code == 201
    await bill.use((sim(1), 0, 5 * GB))
    nothing = await bill.create(iccids=[sim(1)], price_per_gb_cents=100)
    assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_to_bill")
    assert len((await bill.http.get(INVOICES)).json()["data"]) == 2


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"currency": "EUR"}, "currency"),
        ({"currency": "EUR", "price_per_gb_cents": 0}, "currency"),
        ({"currency": "JPY", "price_per_gb_cents": 1}, "currency"),
        ({"iccids": []}, "iccids"),
        ({"iccids": ["12"]}, "iccids[0]"),
        ({"iccids": [sim(1)], "account_ids": [8101]}, "account_ids"),
        ({"account_ids": [0]}, "account_ids[0]"),
        ({"recipient_email": "nobody"}, "recipient_email"),
        ({"recipient_name": "\u0007"}, "recipient_name"),
    ],
)
async def test_what_makes_no_invoice_is_told_by_its_field_and_changes_nothing(bill: Billing, given: dict[str, Any], param: str) -> None:
    await bill.use((sim(1), 0, GB))
    said = await bill.create(**given)
    assert (said.status_code, said.json()["param"]) == (400, param), said.text
    assert (await bill.http.get(INVOICES)).json()["data"] == []


async def test_sims_that_used_nothing_make_no_invoice(bill: Billing) -> None:
    await bill.use((sim(1), 0, GB))
    said = await bill.create(iccids=[sim(2)])
    assert (said.status_code, said.json()["code"]) == (409, "nothing_to_bill")
    assert (await bill.http.get("/v1/invoices/periods")).json()["data"][0]["status"] == "closed"


async def test_a_key_of_an_invoice_without_a_selection_is_still_that_invoice(bill: Billing) -> None:
    await bill.use((sim(1), 0, GB))
    first = await bill.create(key="k", price_per_gb_cents=100)
    again = await bill.create(key="k", price_per_gb_cents=100, iccids=None, currency=None)
    assert (again.status_code, again.content, again.headers["Idempotent-Replayed"]) == (201, first.content, "true")
    other = await bill.create(key="k", price_per_gb_cents=100, iccids=[sim(1)])
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")


@pytest.fixture
async def connected(world: World) -> AsyncGenerator[Billing]:
    """Somebody who bills and has account 8101."""
    caller = await world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    async with world.client(caller.secret) as http:
        yield Billing(world, caller, http)


async def test_an_account_is_billed_with_every_sim_that_it_has(connected: Billing) -> None:
    network = await connected.world.network()
    own = [line.iccid for line in network.lines_of(8101)][:3]
    foreign = next(line.iccid for line in network.lines_of(8102))
    await connected.use(*((iccid, 0, GB) for iccid in (*own, foreign)))
    made = await connected.create(account_ids=[8101], price_per_gb_cents=100)
    assert made.status_code == 201, made.text
    assert sorted(billed(await connected.read(made.json()["id"]))) == sorted(own)


async def test_an_account_of_others_or_of_nobody_connected_is_not_billed(connected: Billing, bill: Billing) -> None:
    for who, status, code in ((connected, 404, "not_found"), (bill, 409, "org_not_connected")):
        await who.use((sim(1), 0, GB))
        said = await who.create(account_ids=[8102])
        assert (said.status_code, said.json()["code"]) == (status, code)
        assert (await who.http.get(INVOICES)).json()["data"] == []


async def test_an_account_whose_lines_cannot_all_be_read_is_not_billed_in_part(connected: Billing) -> None:
    await connected.use((sim(1), 0, GB))
    (await connected.world.network()).row_cap = 1
    said = await connected.create(account_ids=[8101])
    assert (said.status_code, said.json()["code"], said.json()["param"]) == (409, "account_not_read_whole", "account_ids")
    connected.world.sandbox.faults.add(NetworkFault("listSubscriber", code=7, times=None))
    said = await connected.create(account_ids=[8101])
    assert (said.status_code, said.json()["ocs_code"]) == (502, 7)
    assert (await connected.http.get(INVOICES)).json()["data"] == []


class SelectionMachine(ServiceMachine):
    """Records come, invoices of some SIMs and of the rest are made and voided in any order: no byte is billed twice, and none is lost."""

    def __init__(self) -> None:
        self.used: dict[str, tuple[int, int]] = {}
        self.standing: dict[str, Json] = {}
        self.whole: str | None = None
        super().__init__()

    async def open(self, folder: Path, url: str | None) -> None:
        opening = open_world(folder, CATALOGUE, url=url, limits=Limits(burst_enabled=False))
        self.world = await self.stack.enter_async_context(opening)
        caller = await self.world.caller(Tier.PRO)
        self.bill = Billing(self.world, caller, await self.stack.enter_async_context(self.world.client(caller.secret)))

    def teardown(self) -> None:
        if self.used and self.whole is None:
            self.make(None, 3)
            assert self.sums() == self.used
        super().teardown()

    def sums(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for invoice in self.standing.values():
            for iccid, (up, down) in billed(invoice).items():
                before = found.get(iccid, (0, 0))
                found[iccid] = (before[0] + up, before[1] + down)
        return found

    def make(self, sims: list[int] | None, price: int) -> None:
        given: dict[str, Any] = {} if sims is None else {"iccids": [sim(number) for number in sims]}
        answer: httpx.Response = self.run(self.bill.create(price_per_gb_cents=price, **given))
        assert answer.status_code in (201, 409), answer.text
        if answer.status_code == 409:
            assert answer.json()["code"] == "nothing_to_bill"
            assert all(self.sums().get(iccid) == used for iccid, used in self.used.items() if sims is None or iccid in given["iccids"])
            return
        invoice = self.run(self.bill.read(answer.json()["id"]))
        amounts = [(2 * line["bytes_total"] * price + GB) // (2 * GB) for line in invoice["line_items"]]
        assert [line["amount_cents"] for line in invoice["line_items"]] == amounts and invoice["subtotal_cents"] == sum(amounts)
        self.standing[invoice["id"]] = invoice
        self.whole = invoice["id"] if sims is None else self.whole

    @rule(number=st.integers(1, 4), up=st.integers(0, 3), down=st.sampled_from([0, 1, 499_999_999, GB, 1_005_000_000]))
    def record(self, number: int, up: int, down: int) -> None:
        self.run(self.bill.use((sim(number), up, down), at=DECEMBER))
        before = self.used.get(sim(number), (0, 0))
        self.used[sim(number)] = (before[0] + up, before[1] + down)

    @precondition(lambda self: self.used)
    @rule(sims=st.lists(st.integers(1, 5), min_size=1, max_size=4), price=st.sampled_from([1, 3, 250]))
    def bill_some(self, sims: list[int], price: int) -> None:
        self.make(sims, price)

    @precondition(lambda self: self.used and self.whole is None)
    @rule(price=st.sampled_from([1, 250]))
    def bill_the_rest(self, price: int) -> None:
        self.make(None, price)

    @precondition(lambda self: self.standing)
    @rule(pick=st.integers(0, 9))
    def void(self, pick: int) -> None:
        id = list(self.standing)[pick % len(self.standing)]
        assert self.run(self.bill.void(id)).status_code == 200
        del self.standing[id]
        self.whole = None if self.whole == id else self.whole

    @invariant()
    def nothing_is_billed_twice(self) -> None:
        assert self.world.faults == []
        for iccid, (up, down) in self.sums().items():
            assert up <= self.used[iccid][0] and down <= self.used[iccid][1]


TestSelection = SelectionMachine.TestCase
TestSelection.settings = settings(max_examples=examples(5), stateful_step_count=12, deadline=None)
