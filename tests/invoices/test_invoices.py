"""Making and reading invoices."""

from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from storage.organisations import set_fee_bps
from tests.cdr.records import PERIODS
from tests.invoices.billing import DECEMBER, GB, INVOICES, SIM, Billing, invoice_of, sim
from tests.stage import without_request_id

DAY = 86_400
USED = ("iccid", "bytes_up", "bytes_down", "bytes_total", "amount_cents")


@pytest.mark.rule("2.9.1")
@pytest.mark.rule("4.4.21")
async def test_an_invoice_is_a_draft_of_the_months_records(bill: Billing) -> None:
    await bill.config(currency="EUR", price_per_gb_cents=199, invoice_prefix="FJORD")
    await bill.use((sim(2), 10**6, 2 * GB), (sim(1), 0, 499_999_999), (sim(2), 0, 3 * GB), (sim(3), 0, 0))
    answer = await bill.create()
    assert answer.status_code == 201
    made = answer.json()
    lines = made.pop("largest_lines")
    assert made == snapshot(
        {
            "id": "inv_01mcckg2g0000000000000000d",
            "org_id": "org_01mcckg2g00000000000000004",
            "period_id": "per_01mcckg2g0000000000000000a",
            "invoice_number": "FJORD-2027-000001",
            "status": "draft",
            "currency": "EUR",
            "subtotal_cents": 1094,
            "tax_cents": 0,
            "total_cents": 1105,
            "platform_fee_cents": 11,
            "payments_connect_account_id": None,
            "payments_invoice_id": None,
            "recipient_name": None,
            "recipient_email": None,
            "notes": None,
            "pdf_url": None,
            "payment_url": None,
            "issued_at": None,
            "due_at": None,
            "paid_at": None,
            "created_at": 1800014400,
            "updated_at": 1800014400,
            "line_count": 3,
            "not_billed": [],
        }
    )
    assert [[line[name] for name in USED] for line in lines] == snapshot(
        [
            ["8988303000000000002", 1000000, 5000000000, 5001000000, 995],
            ["8988303000000000001", 0, 499999999, 499999999, 99],
            ["8988303000000000003", 0, 0, 0, 0],
        ]
    )
    assert (await bill.http.get(INVOICES)).json() == {"object": "list", "data": [invoice_of(answer.json())], "has_more": False}


async def test_invoices_are_found_by_their_status_their_month_and_by_when_they_were_made(bill: Billing) -> None:
    await bill.use((sim(1), 0, GB))
    await bill.use((sim(1), 0, GB), at=DECEMBER - 31 * DAY)
    december, november = [row["id"] for row in (await bill.http.get(PERIODS)).json()["data"]]
    made = list[str]()
    for period in (december, november, december, november):
        made.append((await bill.create(period, price_per_gb_cents=100)).json()["id"])
        bill.world.clock.advance(60)
    start = int(bill.world.clock.now()) - 240
    for voided in made[:2]:
        await bill.http.delete(f"{INVOICES}/{voided}")

    async def found(**asked: object) -> list[int]:
        page = (await bill.http.get(INVOICES, params={name: str(value) for name, value in asked.items()})).json()
        return [made.index(invoice["id"]) for invoice in page["data"]]

    assert await found(status="void") == [1, 0] and await found(status="draft") == [3, 2]
    assert await found(period_id=december) == [2, 0] and await found(period_id="per_nobodys") == []
    assert await found(period_id=november, status="draft") == [3] and await found(status="paid") == []
    assert await found(since=start + 60, until=start + 180) == [2, 1]
    assert await found(status="draft", limit=1) == [3] and await found(status="draft", starting_after=made[3]) == [2]
    refused = await bill.http.get(INVOICES, params={"status": "lost"})
    assert (refused.status_code, refused.json()["param"]) == (400, "status")


async def test_invoices_are_found_by_a_part_of_the_customers_name_or_address(bill: Billing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.invoices.CUSTOMERS_AT_ONCE", 2)
    await bill.use(GB)
    customers = [{"recipient_name": "Øst & Sønn"}, {"recipient_email": "post@oest.example"}, {}, {"recipient_name": "Øst 100 %"}, {}]
    made = [(await bill.create()).json()["id"] for _ in customers]
    for invoice, named in zip(made, customers, strict=True):
        assert not named or (await bill.update(invoice, **named)).status_code == 200

    async def found(**asked: str) -> list[int]:
        return [made.index(invoice["id"]) for invoice in (await bill.http.get(INVOICES, params=asked)).json()["data"]]

    assert await found(recipient="øST") == [3, 0] and await found(recipient="POST@") == [1] and await found(recipient="%") == [3]
    assert await found(recipient="øst", limit="1") == [3] and await found(recipient="øst", starting_after=made[3]) == [0]
    assert await found(recipient="øst", status="void") == [] and await found(recipient="Nordwind") == []
    assert (await bill.http.get(INVOICES, params={"recipient": ""})).json()["param"] == "recipient"


@pytest.mark.rule("2.9.2")
@pytest.mark.rule("4.4.24")
async def test_an_invoice_is_read_with_its_period_and_a_line_per_sim(bill: Billing) -> None:
    await bill.use((sim(2), 10**6, 2 * GB), (sim(1), 5, GB), network="Nordic Mobile", country="NO")
    await bill.use((sim(2), 0, GB), network="Nordic Mobile", country="SE")
    made = (await bill.create(price_per_gb_cents=199)).json()
    whole = await bill.read(made["id"])
    assert {"period": whole["period"], "line_items": whole["line_items"][:1]} == snapshot(
        {
            "period": {
                "id": "per_01mcckg2g00000000000000009",
                "org_id": "org_01mcckg2g00000000000000004",
                "year": 2026,
                "month": 12,
                "status": "invoiced",
                "closed_at": 1800014400,
                "created_at": 1800014400,
            },
            "line_items": [
                {
                    "id": "ili_01mcckg2g0000000000000000f",
                    "invoice_id": "inv_01mcckg2g0000000000000000e",
                    "iccid": "8988303000000000001",
                    "description": "Mobile data December 2026",
                    "bytes_up": 5,
                    "bytes_down": 1000000000,
                    "bytes_total": 1000000005,
                    "unit_price_cents": 199,
                    "quantity": 1,
                    "amount_cents": 199,
                    "currency": "USD",
                    "network": "Nordic Mobile",
                    "country": "NO",
                    "created_at": 1800014400,
                }
            ],
        }
    )
    second = whole["line_items"][1]
    assert [second[name] for name in (*USED, "network", "country")] == snapshot(
        ["8988303000000000002", 1000000, 3000000000, 3001000000, 597, "Nordic Mobile", None]
    )
    assert whole["line_items_total"] == 2
    assert {name: value for name, value in whole.items() if name not in ("period", "line_items_total", "line_items")} == invoice_of(made)
    assert (made["line_count"], made["largest_lines"]) == (2, sorted(whole["line_items"], key=lambda line: -line["amount_cents"]))
    assert sum(line["amount_cents"] for line in whole["line_items"]) == made["subtotal_cents"]


@pytest.mark.rule("4.4.22")
@pytest.mark.parametrize(("given", "subtotal"), [({}, 100), ({"price_per_gb_cents": 0}, 100), ({"price_per_gb_cents": 7}, 7)])
async def test_the_price_is_the_organisations_where_none_is_given(bill: Billing, given: dict[str, Any], subtotal: int) -> None:
    await bill.config(price_per_gb_cents=100)
    await bill.use(GB)
    assert (await bill.create(**given)).json()["subtotal_cents"] == subtotal


@pytest.mark.rule("3.2.1")
@pytest.mark.rule("4.4.23")
async def test_late_records_change_no_invoice_and_the_next_one_has_them(bill: Billing) -> None:
    first = await bill.draft((SIM, 1, GB), price=100)
    before = await bill.read(first["id"])
    await bill.use((SIM, 0, GB), (sim(7), 0, GB))
    await bill.config(currency="CHF", price_per_gb_cents=9, invoice_prefix="NEW")
    assert await bill.read(first["id"]) == before
    second = (await bill.create(price_per_gb_cents=100)).json()
    assert (first["subtotal_cents"], second["subtotal_cents"]) == (100, 300)
    assert (first["invoice_number"], second["invoice_number"]) == ("INV-2027-000001", "NEW-2027-000002")
    assert (second["period_id"], second["currency"]) == (first["period_id"], "CHF")


@pytest.mark.rule("4.4.31")
@pytest.mark.rule("3.3.1")
async def test_a_period_is_invoiced_once_an_invoice_was_made_for_it(bill: Billing) -> None:
    await bill.use(GB)
    assert (await bill.http.get(PERIODS)).json()["data"][0]["status"] == "closed"
    made = (await bill.create()).json()
    await bill.void(made["id"])
    assert (await bill.http.get(PERIODS)).json()["data"][0]["status"] == "invoiced"


async def test_a_month_under_way_can_be_billed(bill: Billing) -> None:
    await bill.use(GB, at=int(bill.world.clock.now()) - 60)
    assert (await bill.create(price_per_gb_cents=100)).json()["subtotal_cents"] == 100


async def test_the_months_are_billed_apart(bill: Billing) -> None:
    await bill.use(GB)
    december = await bill.period()
    await bill.use(3 * GB, at=DECEMBER + 31 * DAY)
    made = [(await bill.create(period, price_per_gb_cents=100)).json()["subtotal_cents"] for period in (december, None)]
    assert made == [100, 300]


async def test_the_platform_fee_is_the_organisations_own_where_it_has_one(bill: Billing) -> None:
    first = await bill.draft(GB, price=10_050)
    await bill.world.store.write(set_fee_bps, organisation=bill.who.organisation, bps=0)
    second = (await bill.create(price_per_gb_cents=10_050)).json()
    await bill.world.store.write(set_fee_bps, organisation=bill.who.organisation, bps=5000)
    third = (await bill.create(price_per_gb_cents=10_050)).json()
    assert [(each["platform_fee_cents"], each["total_cents"]) for each in (first, second, third)] == [
        (101, 10_151),
        (0, 10_050),
        (5025, 15_075),
    ]


async def test_a_price_of_nothing_makes_an_invoice_of_nothing(bill: Billing) -> None:
    made = await bill.draft(GB, price=0)
    assert (made["subtotal_cents"], made["platform_fee_cents"], made["total_cents"]) == (0, 0, 0)


async def test_usage_that_comes_to_less_than_half_a_cent_is_a_line_of_nothing(bill: Billing) -> None:
    made = await bill.draft((sim(1), 0, 1), (sim(2), 0, 4_999_999), (sim(3), 0, 5_000_000), price=100)
    assert [line["amount_cents"] for line in (await bill.read(made["id"]))["line_items"]] == [0, 0, 1]


async def test_a_figure_that_no_json_number_holds_is_refused_and_no_number_is_lost(bill: Billing) -> None:
    await bill.use(*[(sim(number), 0, 10**15) for number in range(10)])
    answer = await bill.create(price_per_gb_cents=10**9)
    assert answer.status_code == 409
    assert without_request_id(answer) == snapshot(
        {
            "error": "A figure of the invoice would be 10100000000000000, and none may exceed 9007199254740991; nothing was made",
            "code": "invoice_too_large",
            "param": "price_per_gb_cents",
            "hint": "The price is 1000000000 cents per GB; check it, and the records of the month with cdr_aggregate",
        }
    )
    assert (await bill.http.get(INVOICES)).json()["data"] == []
    assert (await bill.create(price_per_gb_cents=1)).json()["invoice_number"] == "INV-2027-000001"


async def test_the_same_key_makes_one_invoice_and_no_key_makes_another(bill: Billing) -> None:
    await bill.use(GB)
    first, again = [await bill.create(key="month-12") for _ in range(2)]
    assert (again.status_code, again.content, again.headers["Idempotent-Replayed"]) == (201, first.content, "true")
    assert (await bill.create(key="month-12", price_per_gb_cents=1)).json()["code"] == "idempotency_key_reused"
    assert (await bill.create()).json()["invoice_number"] == "INV-2027-000002"


@pytest.mark.rule("4.4.20")
async def test_invoices_are_listed_newest_first_and_in_pages(bill: Billing) -> None:
    await bill.use(GB)
    made = [(await bill.create()).json()["id"] for _ in range(3)]
    page = (await bill.http.get(INVOICES, params={"limit": 2})).json()
    assert ([each["id"] for each in page["data"]], page["has_more"]) == (made[:0:-1], True)
    rest = (await bill.http.get(INVOICES, params={"limit": 2, "starting_after": made[1]})).json()
    assert ([each["id"] for each in rest["data"]], rest["has_more"]) == (made[:1], False)


async def test_what_is_another_organisations_answers_as_what_is_unknown(bill: Billing, stranger: httpx.AsyncClient) -> None:
    made = await bill.draft()
    said: list[object] = []
    for invoice, period in ((made["id"], made["period_id"]), ("inv_unknown", "per_unknown")):
        calls = [
            await stranger.get(f"{INVOICES}/{invoice}"),
            await stranger.patch(f"{INVOICES}/{invoice}", json={"status": "sent"}),
            await stranger.delete(f"{INVOICES}/{invoice}"),
            await stranger.post(INVOICES, json={"period_id": period}),
        ]
        assert [call.status_code for call in calls] == [404] * 4
        said.append([{**call.json(), "request_id": ""} for call in calls])
    assert said[0] == said[1]
    assert (await stranger.get(INVOICES)).json()["data"] == []
    assert (await bill.read(made["id"]))["status"] == "draft"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "paid"),
        ("org_id", "org_1"),
        ("platform_fee_bps", 0),
        ("platform_fee_cents", 0),
        ("total_cents", 0),
        ("invoice_number", "INV-1"),
        ("currency", "EUR"),
    ],
)
async def test_a_field_that_is_wrong_or_not_theirs_is_named_and_makes_nothing(bill: Billing, field: str, value: object) -> None:
    await bill.use(GB)
    period = await bill.period()
    answer = await bill.http.post(INVOICES, json={"period_id": period, field: value})
    assert (answer.status_code, answer.json()["param"]) == (400, field)
    assert (await bill.http.get(INVOICES)).json()["data"] == []


@pytest.mark.long
async def test_five_thousand_sims_are_five_thousand_lines(bill: Billing) -> None:
    made = await bill.draft(*((sim(number), number, 10**6 * number) for number in range(5000)), price=100)
    whole = await bill.read(made["id"])
    assert [line["iccid"] for line in whole["line_items"]] == [sim(number) for number in range(5000)]
    assert sum(line["amount_cents"] for line in whole["line_items"]) == made["subtotal_cents"]
    assert len({line["id"] for line in whole["line_items"]}) == 5000
