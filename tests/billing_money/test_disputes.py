"""Disputes, and the evidence that answers them."""

from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from tests.billing_money.stage import START, MoneyStage, Object, dispute_json, event_json
from tests.stage import without_request_id


async def disputed(shop: MoneyStage) -> str:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    opened = await shop.world.ask_payments("POST", "disputes", {"account": shop.account, "charge": made})
    await shop.world.settle_payments()
    return str(opened["id"])


async def answer(shop: MoneyStage, id: str, key: str | None = None, **body: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    async with shop.http() as http:
        return await http.post(f"/v1/operator-billing/disputes/{id}/evidence", json=body, headers=headers)


@pytest.mark.rule("4.5.61")
async def test_evidence_goes_to_the_bank_and_its_decision_is_told(shop: MoneyStage) -> None:
    opened = await disputed(shop)
    sent = await answer(shop, opened, uncategorized_text="The eSIM was used on 12 days")
    body: Object = sent.json()
    assert sent.status_code == 200
    assert {**body, "id": "du_", "charge": "ch_", "payment_intent": "pi_"} == snapshot(
        {
            "id": "du_",
            "object": "dispute",
            "amount": 10000,
            "currency": "EUR",
            "status": "under_review",
            "reason": "fraudulent",
            "charge": "ch_",
            "payment_intent": "pi_",
            "evidence_due_by": 1800792000,
            "evidence_submissions": 1,
            "created": 1800014400,
        }
    )
    assert (await shop.listed("disputes"))["data"] == [body]
    (charge,) = (await shop.listed("charges"))["data"]
    assert (charge["disputed"], charge["disputes"]) == (True, [opened])
    await shop.world.ask_payments("POST", f"disputes/{opened}", {"account": shop.account, "outcome": "lost"})
    await shop.world.settle_payments()
    assert (await shop.listed("disputes"))["data"][0]["status"] == "lost"
    closed = await answer(shop, opened, uncategorized_text="once more")
    assert (closed.status_code, closed.json()["code"]) == (409, "dispute_closed")


async def test_evidence_that_was_submitted_is_not_asked_for_again(shop: MoneyStage) -> None:
    opened = await disputed(shop)
    await answer(shop, opened, uncategorized_text="The eSIM was used on 12 days")
    asked = len(shop.world.payments.calls)
    again = await answer(shop, opened, "other", uncategorized_text="and on a 13th")
    assert again.status_code == 409
    assert without_request_id(again) == snapshot(
        {
            "error": "Evidence was submitted to this dispute already, which is under_review, and the bank takes it once; nothing was done",
            "code": "evidence_submitted",
            "hint": "Nothing is left to do: the bank decides, and operator_billing_list_disputes shows what it decided",
        }
    )
    assert len(shop.world.payments.calls) == asked


async def test_an_inquiry_that_became_a_dispute_is_answered_once_more(shop: MoneyStage) -> None:
    opened = await disputed(shop)
    await answer(shop, opened, uncategorized_text="used")
    shop.at_processor("disputes")[0].status = "needs_response"
    told = dispute_json(id=opened, status="needs_response", evidence_details={"submission_count": 1}, created=START)
    await shop.tell(event_json("charge.dispute.updated", told, account=shop.account, created=START + 60))
    again = await answer(shop, opened, uncategorized_text="used, and paid")
    assert (again.status_code, again.json()["evidence_submissions"]) == (200, 2)


async def test_a_draft_is_not_submitted(shop: MoneyStage) -> None:
    opened = await disputed(shop)
    draft = await answer(shop, opened, submit=False, product_description="5 GB in Norway")
    assert (draft.status_code, draft.json()["evidence_submissions"], draft.json()["status"]) == (200, 0, "needs_response")


async def test_a_key_submits_once(shop: MoneyStage) -> None:
    opened = await disputed(shop)
    first, again = [await answer(shop, opened, "k", uncategorized_text="used") for _ in range(2)]
    assert (first.content, again.headers["idempotent-replayed"]) == (again.content, "true")
    posts = [call for call in shop.world.payments.calls if call.method == "POST" and call.path == f"/v1/disputes/{opened}"]
    assert [call.key for call in posts] == ["evidence:k"]


async def test_too_much_or_too_little_evidence_is_refused_before_anything_is_sent(shop: MoneyStage) -> None:
    opened = await disputed(shop)
    long = "x" * 20_000
    names = ("access_activity_log", "cancellation_rebuttal", "product_description", "refund_policy_disclosure", "service_date")
    more = ("cancellation_policy_disclosure", "refund_refusal_explanation", "uncategorized_text")
    wrong = [
        await answer(shop, opened),
        await answer(shop, opened, uncategorized_text=""),
        await answer(shop, opened, uncategorized_text=long + "x"),
        await answer(shop, opened, **dict.fromkeys((*names, *more), long)),
        await answer(shop, opened, evidence={"uncategorized_text": "x"}),
    ]
    assert [(said.status_code, said.json()["param"], said.json()["error"]) for said in wrong] == snapshot(
        [
            (400, "uncategorized_text", "There is no evidence in it: give at least one text; nothing was done"),
            (400, "uncategorized_text", 'uncategorized_text: got ""; must be at least 1 character'),
            (
                400,
                "uncategorized_text",
                'uncategorized_text: got "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."; must be at most 20000 characters',
            ),
            (400, "uncategorized_text", "The texts of evidence have 160000 characters together; at most 150000 are taken"),
            (400, "evidence", "evidence: unknown field"),
        ]
    )
    assert shop.at_processor("disputes")[0].status == "needs_response"


async def test_a_dispute_that_no_event_told_of_is_answered(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    opened = await shop.world.ask_payments("POST", "disputes", {"account": shop.account, "charge": made})
    assert (await answer(shop, str(opened["id"]), uncategorized_text="used")).status_code == 200


async def test_a_dispute_that_was_told_closed_takes_no_evidence(stage: MoneyStage) -> None:
    await stage.tell(event_json("charge.dispute.closed", dispute_json(status="won")))
    assert (await answer(stage, "du_1", uncategorized_text="used")).json()["code"] == "dispute_closed"


async def test_two_of_the_longest_keys_are_two_to_the_processor(shop: MoneyStage) -> None:
    opened, long = await disputed(shop), "k" * 254
    said = [await answer(shop, opened, f"{long}{n}", submit=False, uncategorized_text=f"word {n}") for n in range(2)]
    assert [each.status_code for each in said] == [200, 200]
    assert shop.at_processor("disputes")[0].evidence["uncategorized_text"] == "word 1"
