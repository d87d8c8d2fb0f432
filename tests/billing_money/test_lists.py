"""The lists of an organisation's money: newest first, page by page, its own."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from registry.caller import Role, Tier
from storage.engine.sql import sqlite_dialect
from storage.payment_records import LIST_PAYMENT_RECORDS
from tests.billing_money.stage import (
    OTHER_PAYEE,
    START,
    MoneyStage,
    Object,
    charge_json,
    dispute_json,
    event_json,
    fee_json,
    payout_json,
    refund_json,
    with_account,
)
from tests.databases import migrated_sqlite

LISTS = ("charges", "refunds", "disputes", "payouts", "fees")


@pytest.mark.rule("4.5.61")
@pytest.mark.rule("4.5.63")
@pytest.mark.rule("4.5.62")
@pytest.mark.rule("4.5.65")
@pytest.mark.rule("4.5.60")
async def test_the_lists_show_what_was_told(stage: MoneyStage) -> None:
    await stage.tell(
        event_json("charge.succeeded", charge_json(application_fee="fee_1", metadata={"order": "ord_1", "invoice": "inv_1", "other": "x"})),
        event_json("refund.created", refund_json()),
        event_json("charge.dispute.created", dispute_json()),
        event_json("payout.created", payout_json()),
        event_json("application_fee.created", fee_json(), account=None),
    )
    shown = {what: (await stage.listed(what))["data"] for what in LISTS}
    assert [[row["id"] for row in shown[what]] for what in ("refunds", "disputes", "payouts")] == [["re_1"], ["du_1"], ["po_1"]]
    assert {what: shown[what] for what in ("charges", "fees")} == snapshot(
        {
            "charges": [
                {
                    "id": "ch_1",
                    "object": "charge",
                    "amount": 10000,
                    "amount_refunded": 0,
                    "currency": "EUR",
                    "status": "succeeded",
                    "refunded": False,
                    "disputed": True,
                    "failure_code": None,
                    "payment_intent": "pi_of_ch_1",
                    "application_fee": "fee_1",
                    "invoice": "inv_1",
                    "order": "ord_1",
                    "created": 1800014340,
                    "refunds": ["re_1"],
                    "disputes": ["du_1"],
                }
            ],
            "fees": [
                {
                    "id": "fee_1",
                    "object": "application_fee",
                    "amount": 100,
                    "amount_refunded": 0,
                    "currency": "EUR",
                    "charge": "ch_1",
                    "account": "acct_1Fjord",
                    "created": 1800014400,
                }
            ],
        }
    )


@pytest.mark.rule("4.5.63")
@pytest.mark.parametrize(("what", "make", "type"), [("charges", charge_json, "charge.succeeded"), ("payouts", payout_json, "payout.paid")])
async def test_a_list_goes_on_behind_the_last_of_its_page(stage: MoneyStage, what: str, make: Callable[..., Object], type: str) -> None:
    await stage.tell(*(event_json(type, make(f"x_{n}", created=START - n // 2)) for n in range(7)))
    seen: list[str] = []
    while True:
        page = await stage.listed(what, None, limit=3, **({"starting_after": seen[-1]} if seen else {}))
        seen += [row["id"] for row in page["data"]]
        if not page["has_more"]:
            break
    assert seen == ["x_1", "x_0", "x_3", "x_2", "x_5", "x_4", "x_6"]


async def test_a_page_behind_nothing_is_refused(stage: MoneyStage) -> None:
    await with_account(stage.world, OTHER_PAYEE)
    await stage.tell(event_json("charge.succeeded", charge_json("ch_theirs"), account=OTHER_PAYEE))
    async with stage.http() as http:
        said = await http.get("/v1/operator-billing/charges", params={"starting_after": "ch_theirs"})
    assert (said.status_code, said.json()["param"], said.json()["error"]) == snapshot(
        (400, "starting_after", "starting_after: you have no charge with this id")
    )


@pytest.mark.parametrize("what", LISTS)
async def test_without_an_account_a_list_is_empty(stage: MoneyStage, what: str) -> None:
    bare = await stage.world.caller(Tier.ENTERPRISE)
    assert await stage.listed(what, bare) == {"object": "list", "data": [], "has_more": False}


@pytest.mark.rule("4.5.62")
async def test_fees_are_for_admins(stage: MoneyStage) -> None:
    answers: list[int] = []
    for tier, role in ((Tier.PRO, Role.ADMIN), (Tier.ENTERPRISE, Role.MEMBER), (Tier.ENTERPRISE, Role.ADMIN)):
        async with stage.http(await stage.world.caller(tier, role)) as http:
            answers.append((await http.get("/v1/operator-billing/fees")).status_code)
    assert answers == [402, 402, 200]


def test_a_page_far_behind_is_looked_up_in_the_index(tmp_path: Path) -> None:
    path = migrated_sqlite(tmp_path).removeprefix("sqlite:///")
    text = LIST_PAYMENT_RECORDS.text(sqlite_dialect())
    given = dict.fromkeys(("account", "organisation", "kind", "before", "after", "most"), 1)
    with closing(sqlite3.connect(path)) as raw:
        plan = raw.execute(f"explain query plan {text.sql}", {**text.literals, **given}).fetchall()
    assert [row[3] for row in plan] == [
        "SEARCH payment_record USING INDEX payment_record_list (organisation=? AND kind=? AND (created,id)<(?,?))"
    ]
