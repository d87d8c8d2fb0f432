"""How the processor fails, what is repeated, and what the caller is told: never a word of the processor's own."""

import logging
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable

import pytest

from clients.payments.client import ProcessorClient
from clients.payments.port import AccountDetached, KeyRefused
from clients.payments.records import Charge, Payout
from registry.errors import NotFound, PaymentsError, PaymentsRefused, Refusal
from tests.clients.payments.processor import (
    CLOSE,
    CONNECTED,
    EMAIL,
    NO_ANSWER,
    PROCESSOR_KEY,
    ProcessorAnswer,
    Vendor,
    charge_body,
    fails,
    payout_body,
    vendor,
)

Ask = Callable[[ProcessorClient], Awaitable[object]]
CLOSED, HUNG = ProcessorAnswer(instead=CLOSE), ProcessorAnswer(instead=NO_ANSWER)
TROUBLE = fails(500, type="api_error")
GARBAGE = ProcessorAnswer(b'{"id": "ch_')
SECRETS = (PROCESSOR_KEY, EMAIL, "vendor.example", "127.0.0.1")


async def read(client: ProcessorClient) -> Charge:
    return await client.find_charge(CONNECTED, "ch_1")


async def write(client: ProcessorClient) -> Payout:
    return await client.pay_out(CONNECTED, amount=500, currency="EUR", key="k-1", metadata={"mail": EMAIL})


async def failure(ask: Ask, *answers: ProcessorAnswer) -> tuple[Refusal, Vendor]:
    async with vendor(*answers) as (there, client):
        try:
            await ask(client)
        except Refusal as refusal:
            told = "".join([*traceback.format_exception(refusal, chain=True), repr(refusal), str(refusal.body("req_x")), repr(client)])
            assert not [secret for secret in SECRETS if secret in told]
            assert refusal.__cause__ is None and refusal.__context__ is None
            return refusal, there
    raise AssertionError("the call did not fail")


def said(refusal: Refusal) -> tuple[str, int, bool, bool]:
    assert isinstance(refusal, PaymentsError)
    return refusal.error_code, refusal.status, refusal.outcome_unknown, refusal.before_execution


READ_FAILED, READ_LATE = ("payments_error", 502, False, False), ("payments_timeout", 502, False, False)
UNKNOWN, UNSENT = ("OUTCOME_UNKNOWN", 502, True, False), ("payments_error", 502, False, True)


@pytest.mark.cases
@pytest.mark.parametrize(
    "trouble",
    [
        TROUBLE,
        fails(503),
        ProcessorAnswer(b"<html>Bad gateway</html>", 502),
        CLOSED,
        GARBAGE,
        ProcessorAnswer(b""),
        ProcessorAnswer([]),
        ProcessorAnswer("text"),
        ProcessorAnswer(5),
        ProcessorAnswer({"error": 5}, 400),
        ProcessorAnswer({"error": [1]}, 400),
        ProcessorAnswer({}, 400),
        ProcessorAnswer(b"not found", 404),
        ProcessorAnswer(b"", 302, {"location": "https://elsewhere.example"}),
        ProcessorAnswer({"id": "po_1", "object": "payout"}),
        ProcessorAnswer(b"[" * 100_000),
        ProcessorAnswer(b"\xff\xfe"),
        ProcessorAnswer(b" " * (8 << 20) + b"{}"),
    ],
    ids=lambda answer: repr(answer)[:40],
)
async def test_trouble_is_met_by_another_try_and_a_write_may_have_happened(trouble: ProcessorAnswer) -> None:
    refusal, there = await failure(read, trouble)
    assert (said(refusal), there.slept) == (READ_FAILED, [0.25])
    assert len(there.asked) == 2 or trouble is CLOSED  # the network library itself repeats a GET whose connection was closed
    refusal, there = await failure(write, trouble)
    assert (said(refusal), len(there.asked), there.slept) == (UNKNOWN, 3, [0.25, 1.0])
    assert len({(asked.key, tuple(asked.form.items())) for asked in there.asked}) == 1


@pytest.mark.parametrize("trouble", [TROUBLE, CLOSED, GARBAGE, fails(409, code="idempotency_key_in_use")])
async def test_a_call_that_succeeds_at_last_is_answered_and_sent_under_one_key(trouble: ProcessorAnswer) -> None:
    async with vendor(trouble, ProcessorAnswer(charge_body())) as (there, client):
        assert (await read(client)).id == "ch_1"
    assert len(there.asked) == 2
    async with vendor(trouble, trouble, ProcessorAnswer(payout_body())) as (there, client):
        assert (await write(client)).id == "po_1"
    assert [asked.key for asked in there.asked] == ["k-1"] * 3


async def test_the_processor_may_say_that_another_try_is_of_no_use_or_is_of_use() -> None:
    refusal, there = await failure(write, fails(500, {"stripe-should-retry": "false"}))
    assert (said(refusal), len(there.asked)) == (UNKNOWN, 1)
    async with vendor(fails(429, {"stripe-should-retry": "true"}, code="lock_timeout"), ProcessorAnswer(payout_body())) as (there, client):
        assert (await write(client)).id == "po_1"


async def test_a_call_of_which_another_one_is_under_way_has_an_unknown_outcome() -> None:
    refusal, there = await failure(write, fails(409, code="idempotency_key_in_use"))
    assert (said(refusal), len(there.asked)) == (UNKNOWN, 3)


@pytest.mark.long
async def test_an_answer_that_does_not_come_is_waited_for_no_longer_than_the_limit() -> None:
    for ask, expected in ((read, READ_LATE), (write, UNKNOWN)):
        async with vendor(ProcessorAnswer(charge_body()), HUNG) as (there, _):
            client = there.client(seconds=0.3)
            await read(client)  # opens the way, which takes time of its own
            with pytest.raises(PaymentsError) as late:
                await ask(client)
            await client.aclose()
        assert (said(late.value), len(there.asked)) == (expected, 2)


async def test_a_door_that_is_closed_means_that_nothing_was_sent() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        there = Vendor(port=taken.getsockname()[1])
        client = there.client()
        for ask, tries in ((read, 2), (write, 3)):
            there.slept.clear()
            with pytest.raises(PaymentsError) as failed:
                await ask(client)
            assert (said(failed.value), len(there.slept)) == (UNSENT, tries - 1)
        await client.aclose()


@pytest.mark.parametrize("after", [fails(429), fails(401), fails(403, code="account_invalid")])
async def test_a_call_that_was_heard_once_is_not_told_as_unsent_because_of_its_second_try(after: ProcessorAnswer) -> None:
    refusal, there = await failure(write, CLOSED, after)
    assert (said(refusal), len(there.asked)) == (UNKNOWN, 2)


async def test_a_refusal_of_the_second_try_is_the_answer_of_both() -> None:
    refusal, _ = await failure(write, CLOSED, fails(400, code="charge_already_refunded"))
    assert isinstance(refusal, PaymentsRefused)


@pytest.mark.parametrize(("ask", "noun"), [(read, "charge"), (write, "bank account")])
async def test_what_is_not_there_is_not_found_in_our_own_words(ask: Ask, noun: str) -> None:
    refusal, there = await failure(ask, fails(404, code="resource_missing", param="charge"))
    assert isinstance(refusal, NotFound)
    assert (refusal.message, refusal.param, len(there.asked)) == (f"The payment processor has no such {noun} in this account", None, 1)


async def test_a_place_in_a_list_that_is_not_there_is_a_mistake_of_the_caller() -> None:
    refusal, _ = await failure(
        lambda client: client.list_charges(CONNECTED, limit=1, starting_after="ch_9"),
        fails(400, code="resource_missing", param="starting_after"),
    )
    assert isinstance(refusal, PaymentsRefused)
    assert (refusal.param, refusal.processor_code) == ("starting_after", "resource_missing")


@pytest.mark.parametrize(
    ("answer", "code", "param", "text"),
    [
        (fails(400, code="charge_already_refunded"), "charge_already_refunded", None, "the charge has been refunded in full"),
        (fails(400, code="amount_too_large", param="amount"), "amount_too_large", "amount", "more than the processor takes"),
        (fails(400, code="parameter_unknown", param="amount[gte]"), "parameter_unknown", None, "its code for why is parameter_unknown"),
        (fails(400, param="metadata"), "invalid_request_error", None, "its code for why is invalid_request_error"),
        (fails(402, type="card_error", code="balance_insufficient"), "balance_insufficient", None, "available balance does not cover it"),
        (fails(400, code=f"{EMAIL} is wrong", type=f"mail {EMAIL}", param=EMAIL), None, None, "it gave no code for why"),
    ],
)
async def test_a_refusal_is_told_by_its_code_in_our_own_words(
    answer: ProcessorAnswer, code: str | None, param: str | None, text: str
) -> None:
    refusal, there = await failure(write, answer)
    assert isinstance(refusal, PaymentsRefused)
    assert (refusal.status, refusal.error_code, refusal.processor_code, refusal.param) == (400, "payments_refused", code, param)
    assert text in refusal.message and refusal.message.endswith("Nothing was done.")
    assert len(there.asked) == 1


async def test_a_key_that_was_used_for_other_values_is_named_as_what_is_wrong() -> None:
    refusal, _ = await failure(write, fails(400, type="idempotency_error"))
    assert isinstance(refusal, PaymentsRefused)
    assert (refusal.processor_code, refusal.hint) == ("idempotency_error", "Use a new Idempotency-Key for other values")


@pytest.mark.parametrize("ask", [read, write])
@pytest.mark.parametrize(
    "answer", [fails(401), fails(403), ProcessorAnswer({"error": "invalid_client", "error_description": PROCESSOR_KEY}, 401)]
)
async def test_a_key_that_is_not_accepted_is_the_operators_business(ask: Ask, answer: ProcessorAnswer) -> None:
    refusal, there = await failure(ask, answer)
    assert isinstance(refusal, KeyRefused)
    assert (said(refusal), len(there.asked)) == (UNSENT, 1)
    assert "`reseller doctor`" in refusal.message


@pytest.mark.parametrize("ask", [read, write])
async def test_an_account_that_let_the_service_go_is_told_as_that(ask: Ask) -> None:
    refusal, _ = await failure(ask, fails(403, code="account_invalid"))
    assert isinstance(refusal, AccountDetached)
    assert said(refusal) == UNSENT
    assert "no longer attached" in refusal.message


@pytest.mark.parametrize("ask", [read, write])
@pytest.mark.parametrize(("headers", "seconds"), [({}, "1"), ({"retry-after": "7"}, "7"), ({"retry-after": "soon"}, "1")])
async def test_too_many_calls_are_to_be_repeated_later(ask: Ask, headers: dict[str, str], seconds: str) -> None:
    refusal, there = await failure(ask, fails(429, headers, code="rate_limit"))
    assert (said(refusal), refusal.headers["Retry-After"], len(there.asked)) == (UNSENT, seconds, 1)


async def test_nothing_that_is_secret_or_personal_is_logged_or_printed(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="stripe")
    for answer in (ProcessorAnswer(payout_body()), TROUBLE, fails(400), GARBAGE, ProcessorAnswer({"id": EMAIL})):
        async with vendor(answer) as (_, client):
            try:
                await write(client)
            except Refusal:
                continue
    shown = caplog.text + "".join(capfd.readouterr())
    assert "HTTP 500 about a bank account, its request req_1" in shown
    assert not [secret for secret in SECRETS if secret in shown]
    assert not [record for record in caplog.records if record.name.startswith("stripe")]


@pytest.mark.long
def test_no_variable_of_the_environment_makes_the_library_talk() -> None:
    program = "from clients.payments.vendor import stripe; from stripe._util import log_debug, log_info; log_info('a'); log_debug('b')"
    environment = {**os.environ, "STRIPE_LOG": "debug"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_a_notice_of_the_processors_is_not_printed() -> None:
    async with vendor(ProcessorAnswer(charge_body(), headers={"Stripe-Notice": f"Your key {PROCESSOR_KEY} is old"})) as (_, client):
        assert (await read(client)).id == "ch_1"  # a warning would be an error here


def test_whether_money_is_real_is_told_by_the_key() -> None:
    from clients.http import Outbound
    from clients.payments.port import ProcessorSettings

    keys = {"sk_live_x": True, "rk_live_x": True, "sk_test_live_x": False, "rk_test_x": False}
    clients = {key: ProcessorClient(ProcessorSettings(key, ("whsec_hidden",)), Outbound()) for key in keys}
    assert {key: client.live for key, client in clients.items()} == keys
    assert "whsec_hidden" not in repr(ProcessorSettings("sk_live_hidden", ("whsec_hidden",))) + repr(clients)
    assert "sk_live_hidden" not in repr(ProcessorSettings("sk_live_hidden", ("whsec_hidden",)))
