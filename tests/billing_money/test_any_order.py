"""Whatever the order in which events come, and however often, the records and what is left to refund end alike."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.caller import Tier
from storage.payment_records import find_refunds, list_payment_records, open_refunds
from tests.billing_money.stage import (
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
from tests.length import examples

KINDS = ("charge", "refund", "dispute", "payout", "fee")
ENDS = ["failed", "canceled"]
MOMENTS = st.integers(0, 3)
WORDS = st.one_of(
    st.builds(
        lambda status, refunded, disputed: ("charge.updated", charge_json(status=status, amount_refunded=refunded, disputed=disputed)),
        st.sampled_from(["pending", "succeeded", "failed"]),
        st.integers(0, 4).map(lambda n: n * 1000),
        st.booleans(),
    ),
    st.builds(
        lambda id, status: ("refund.updated", refund_json(id, status=status)),
        st.sampled_from(["re_1", "re_2"]),
        st.sampled_from(["pending", "requires_action", "succeeded", *ENDS]),
    ),
    st.builds(
        lambda status, sent: (
            "charge.dispute.updated",
            dispute_json(status=status, evidence_details={"due_by": 1, "submission_count": sent}),
        ),
        st.sampled_from(["warning_needs_response", "needs_response", "under_review", "won", "lost"]),
        st.integers(0, 2),
    ),
    st.builds(lambda status: ("payout.updated", payout_json(status=status)), st.sampled_from(["pending", "in_transit", "paid", *ENDS])),
    st.builds(lambda back: ("application_fee.refunded", fee_json(amount_refunded=back)), st.integers(0, 100)),
)
Told: TypeAlias = tuple[int, tuple[str, Object]]
"""An event's second, type and object."""


async def told(stage: MoneyStage, account: str, events: Sequence[Told]) -> Any:
    """What an account that heard these knows in the end."""
    who = await with_account(stage.world, account, Tier.PRO)
    # Somebody has refunded of it through us before, so what is left is worked out at each word.
    named = {"account": account, "charge": "ch_1"}
    await stage.world.store.write(open_refunds, **named, amount=10_000, reserved=0, now=START)
    for moment, (type, about) in events:
        about = {**about, "account": account} if about["object"] == "application_fee" else about
        await stage.tell(event_json(type, about, account=None if about["object"] == "application_fee" else account, created=START + moment))
    mine = partial(list_payment_records, account=account, organisation=who.organisation, most=100)
    rows = [await stage.world.store.read(mine, kind=kind) for kind in KINDS]
    left = await stage.world.store.read(find_refunds, **named)
    kept = [(row.kind, row.id, row.body.replace(account, "acct"), row.as_of, row.stage) for each in rows for row in each]
    return kept, left


@st.composite
def courses(draw: st.DrawFn) -> tuple[Sequence[Told], Sequence[Told]]:
    """A history, and the same in another order with some of it twice."""
    history = draw(st.lists(st.tuples(MOMENTS, WORDS), min_size=1, max_size=10))
    again = draw(st.lists(st.sampled_from(history), max_size=4))
    return history, draw(st.permutations([*history, *again]))


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(course=courses())
async def test_any_order_and_number_of_events_ends_alike(stage: MoneyStage, course: tuple[Sequence[Told], Sequence[Told]]) -> None:
    first, second = (stage.world.ids.new("acct_") for _ in range(2))
    assert await told(stage, first, course[0]) == await told(stage, second, course[1])


async def test_of_two_words_of_one_second_the_later_stage_stays(stage: MoneyStage) -> None:
    later = {
        "charges": [
            ("charge.pending", charge_json(status="pending")),
            ("charge.succeeded", charge_json()),
            ("charge.refunded", charge_json(amount_refunded=500)),
        ],
        "refunds": [
            ("refund.created", refund_json(charge="ch_2", status=status))
            for status in ("pending", "requires_action", "succeeded", "failed")
        ],
        "payouts": [("payout.updated", payout_json(status=status)) for status in ("pending", "in_transit", "paid", "failed")],
        "disputes": [("charge.dispute.updated", dispute_json(status=status)) for status in ("needs_response", "under_review", "lost")],
    }
    for words in later.values():
        await stage.tell(*(event_json(type, about) for type, about in reversed(words)))
    found = {what: (await stage.listed(what))["data"][0] for what in later}
    assert found["charges"]["amount_refunded"] == 500
    assert [found[what]["status"] for what in later] == ["succeeded", "failed", "failed", "lost"]


async def test_a_later_second_wins_over_a_later_stage(stage: MoneyStage) -> None:
    await stage.tell(
        event_json("charge.refunded", charge_json(amount_refunded=500), created=START),
        event_json("charge.refund.updated", charge_json(amount_refunded=0), created=START + 1),
    )
    assert (await stage.listed("charges"))["data"][0]["amount_refunded"] == 0


async def test_one_event_told_many_times_at_once_has_one_effect(stage: MoneyStage) -> None:
    one = event_json("charge.succeeded", charge_json())
    await asyncio.gather(*(stage.tell(one) for _ in range(16)))
    assert len((await stage.listed("charges"))["data"]) == 1
