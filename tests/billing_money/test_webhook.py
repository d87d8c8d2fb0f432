"""The payments webhook: who is believed, what an event does, and that it does it once."""

import orjson
import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from storage.connect_accounts import find_connect_account
from tests.billing_money.stage import OTHER_PAYEE, PAYEE, START, MoneyStage, charge_json, event_json, sign, with_account

NEWS = event_json("charge.succeeded", charge_json())


@pytest.mark.rule("4.5.66")
async def test_an_event_with_the_processors_signature_is_taken(stage: MoneyStage) -> None:
    await stage.tell(NEWS)
    [charge] = (await stage.listed("charges"))["data"]
    told = ("id", "amount", "status", "payment_intent", "created")
    assert [charge[name] for name in told] == ["ch_1", 10000, "succeeded", "pi_of_ch_1", 1800014340]


@pytest.mark.parametrize(("seconds", "status"), [(299, 200), (300, 200), (301, 401), (-299, 200), (-301, 401)])
async def test_a_signature_holds_for_300_seconds_by_our_clock(stage: MoneyStage, seconds: int, status: int) -> None:
    body = orjson.dumps(NEWS)
    signature = sign(body, stage.world.payments.webhook_secret, START)
    stage.world.clock.advance(seconds)
    assert (await stage.post(body, signature)).status_code == status
    assert len((await stage.listed("charges"))["data"]) == (status == 200)


@pytest.mark.rule("4.5.66")
@pytest.mark.parametrize(
    ("body", "why"), [(b"[]", "the event is unreadable"), (b"{", "the body is not JSON"), (b"{}", "the event is unreadable")]
)
async def test_what_the_processor_signed_and_nobody_here_can_read_is_sent_again_and_told_apart(
    stage: MoneyStage, body: bytes, why: str
) -> None:
    answer = await stage.post(body, sign(body, stage.world.payments.webhook_secret, START))
    assert (answer.status_code, answer.json()["code"]) == (400, "event_unreadable")
    assert answer.json()["error"].startswith(f"The event is signed, and {why}")


@pytest.mark.rule("4.5.66")
async def test_whoever_does_not_sign_as_the_processor_learns_nothing(stage: MoneyStage) -> None:
    body, secret = orjson.dumps(NEWS), stage.world.payments.webhook_secret
    again = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
    good = sign(body, secret, START)
    tries = {
        "another secret": (body, sign(body, "whsec_of_another_endpoint", START)),
        "written again": (again, good),
        "one byte more": (body + b" ", good),
        "in capitals": (body, good[:-64] + good[-64:].upper()),
        "of the old scheme alone": (body, good.replace("v1=", "v0=")),
        "a time with a sign": (body, good.replace("t=", "t=+")),
        "of a body with a byte order mark": (b"\xef\xbb\xbf" + body, good),
        "no time": (body, good.partition(",")[2]),
        "two times": (body, f"t={START},{good}"),
        "no signature": (body, ""),
        "no header": (body, None),
    }
    said = {name: await stage.post(*given) for name, given in tries.items()}
    assert {name: answer.status_code for name, answer in said.items()} == dict.fromkeys(tries, 401)
    bodies = {tuple(sorted((k, v) for k, v in answer.json().items() if k != "request_id")) for answer in said.values()}
    assert [dict(each) for each in bodies] == snapshot(
        [
            {
                "code": "unauthorized",
                "error": "The event is not signed as the payment processor signs it",
                "hint": "Stripe-Signature: t=UNIX,v1=HEX over the exact bytes, with SERVICE_PAYMENTS_WEBHOOK_SECRET, at most 300 s old",
            }
        ]
    )
    assert (await stage.listed("charges"))["data"] == []


async def test_an_event_has_its_effect_once(stage: MoneyStage) -> None:
    first = event_json("charge.succeeded", charge_json(), id="evt_one")
    await stage.tell(first, first)
    # The same id with other news is a repetition all the same: nobody signs that but the processor, who does not.
    await stage.tell(event_json("charge.succeeded", charge_json(amount=99), id="evt_one", created=START + 1))
    assert [row["amount"] for row in (await stage.listed("charges"))["data"]] == [10_000]


async def test_what_is_not_ours_is_taken_and_changes_nothing(stage: MoneyStage) -> None:
    await stage.tell(
        event_json("charge.succeeded", charge_json(), account="acct_1Nobody"),
        event_json("charge.succeeded", charge_json(), account=None),
        event_json("charge.succeeded", charge_json(), live=True),
        event_json("payment_intent.succeeded", {"id": "pi_1", "object": "payment_intent"}),
        event_json("something.new", {"id": "x_1", "object": "something"}),
        event_json("checkout.session.completed", {"id": "cs_1", "object": "something"}),
    )
    assert (await stage.listed("charges"))["data"] == []


async def test_an_event_that_came_before_its_account_may_be_told_again(stage: MoneyStage) -> None:
    early = event_json("charge.succeeded", charge_json(), account=OTHER_PAYEE)
    await stage.tell(early)
    late = await with_account(stage.world, OTHER_PAYEE)
    await stage.tell(early)
    assert [row["id"] for row in (await stage.listed("charges", late))["data"]] == ["ch_1"]


async def test_an_account_that_is_told_complete_becomes_active_and_an_older_word_does_not_undo_it(stage: MoneyStage) -> None:
    def told(*, enabled: bool, created: int) -> dict[str, object]:
        about = {"id": PAYEE, "object": "account", "type": "express", "charges_enabled": enabled, "payouts_enabled": enabled}
        return event_json("account.updated", {**about, "details_submitted": enabled, "default_currency": "eur"}, created=created)

    async def status() -> str | None:
        found = await stage.world.store.read(find_connect_account, organisation=stage.who.organisation)
        return None if found is None else found.status

    await stage.tell(told(enabled=False, created=START))
    assert await status() == "pending"
    await stage.tell(told(enabled=True, created=START + 2), told(enabled=False, created=START + 1))
    assert await status() == "active"
    await stage.tell(event_json("account.application.deauthorized", {"id": "ca_1", "object": "application"}, created=START + 3))
    assert await status() is None
    assert (await stage.listed("charges"))["data"] == []


async def test_an_event_of_another_account_says_nothing_of_this_one(stage: MoneyStage) -> None:
    other = await with_account(stage.world, OTHER_PAYEE, Tier.PRO)
    await stage.tell(event_json("charge.succeeded", charge_json("ch_theirs"), account=OTHER_PAYEE), NEWS)
    assert [row["id"] for row in (await stage.listed("charges"))["data"]] == ["ch_1"]
    assert [row["id"] for row in (await stage.listed("charges", other))["data"]] == ["ch_theirs"]


async def test_no_amount_reaches_the_request_log(stage: MoneyStage) -> None:
    await stage.tell(event_json("charge.succeeded", charge_json(amount=7_654_321)))
    assert stage.world.lines
    assert "7654321" not in repr(stage.world.lines)
