"""Webhooks: which are believed, and what is made of them."""

import asyncio
import hmac
import json
from hashlib import sha256

import pytest

from clients.payments.port import BadProcessorEvent
from clients.payments.records import (
    ApplicationFee,
    Charge,
    CheckoutSession,
    ConnectedAccount,
    Dispute,
    Payout,
    ProcessorEvent,
    ProcessorInvoice,
    Refund,
    Review,
)
from tests.clients.payments.processor import (
    CONNECTED,
    EMAIL,
    OLD_SECRET,
    PROCESSOR_SECRET,
    Vendor,
    account,
    charge_body,
    dispute_body,
    fee_body,
    invoice_body,
    payout_body,
    refund_body,
    review,
    session,
)

NOW = 1_800_000_500
CLIENT = Vendor(port=1).client()


def told(kind: str, about: object, **changes: object) -> bytes:
    """An event as the processor writes it: indented, which a body that is read and written again is not."""
    event = {"id": "evt_1", "object": "event", "type": kind, "created": NOW - 2, "livemode": False, "data": {"object": about}, **changes}
    return json.dumps(event, indent=2).encode()


def mac(body: bytes, secret: str = PROCESSOR_SECRET, at: int = NOW) -> str:
    return hmac.new(secret.encode(), b"%d." % at + body, sha256).hexdigest()


def signed(body: bytes, secret: str = PROCESSOR_SECRET, at: int = NOW) -> str:
    return f"t={at},v1={mac(body, secret, at)}"


def read(body: bytes, signature: str, now: float) -> ProcessorEvent:
    return asyncio.run(CLIENT.read_event(body, signature, now))


def refused(body: bytes, signature: str, now: float = NOW) -> str:
    with pytest.raises(BadProcessorEvent) as bad:
        read(body, signature, now)
    assert bad.value.__cause__ is None and bad.value.__context__ is None
    return bad.value.reason


BODY = told("charge.succeeded", charge_body(), account=CONNECTED)


def test_an_event_is_told_with_its_account_and_record() -> None:
    event = read(BODY, signed(BODY), NOW)
    record = Charge("ch_1", 1250, 0, "EUR", "succeeded", False, False, 1_800_000_000, "pi_1", "fee_1", None, {"order": "ord_1"})
    assert event == ProcessorEvent("evt_1", "charge.succeeded", CONNECTED, NOW - 2, False, record)


@pytest.mark.parametrize(
    ("kind", "about", "record"),
    [
        ("account.updated", account(), ConnectedAccount),
        ("charge.refunded", charge_body(refunded=True), Charge),
        ("charge.failed", charge_body(status="failed"), Charge),
        ("charge.refund.updated", refund_body(), Refund),
        ("refund.created", refund_body(), Refund),
        ("refund.failed", refund_body(status="failed"), Refund),
        ("charge.dispute.created", dispute_body(), Dispute),
        ("charge.dispute.funds_withdrawn", dispute_body(), Dispute),
        ("charge.dispute.closed", dispute_body(status="lost"), Dispute),
        ("payout.paid", payout_body(status="paid"), Payout),
        ("application_fee.created", fee_body(), ApplicationFee),
        ("application_fee.refunded", fee_body(amount_refunded=13), ApplicationFee),
        ("review.opened", review(), Review),
        ("review.closed", review(open=False, reason="approved"), Review),
        ("invoice.paid", invoice_body(status="paid"), ProcessorInvoice),
        ("invoice.finalized", invoice_body(status="open"), ProcessorInvoice),
        ("checkout.session.completed", session(status="complete", payment_status="paid"), CheckoutSession),
        ("checkout.session.expired", session(status="expired"), CheckoutSession),
        ("account.application.deauthorized", {"id": "ca_1", "object": "application", "name": "Us"}, type(None)),
        ("application_fee.refund.updated", {"id": "fr_1", "object": "fee_refund"}, type(None)),
        ("invoice.upcoming", {"object": "invoice", "total": 1}, type(None)),
        ("invoice_payment.paid", {"id": "inpay_1", "object": "invoice_payment"}, type(None)),
        ("customer.created", {"id": "cus_1", "object": "customer", "email": EMAIL}, type(None)),
        ("something.of_the_future", {"object": "thing"}, type(None)),
        ("balance.available", {"object": "balance", "available": []}, type(None)),
    ],
)
def test_each_kind_of_event_has_the_record_that_it_is_about(kind: str, about: object, record: type) -> None:
    body = told(kind, about, account=CONNECTED, livemode=True)
    event = read(body, signed(body), NOW)
    assert (type(event.record), event.type, event.account, event.live) == (record, kind, CONNECTED, True)


def test_an_event_of_the_services_own_account_names_none() -> None:
    body = told("payout.paid", payout_body())
    assert read(body, signed(body), NOW).account is None


@pytest.mark.parametrize("away", [-300, -299, 0, 299, 300])
def test_a_signature_up_to_300_seconds_off_is_believed(away: int) -> None:
    assert read(BODY, signed(BODY, at=NOW + away), NOW).id == "evt_1"


@pytest.mark.parametrize("away", [-86400, -301, 301, 86400])
def test_a_signature_more_than_300_seconds_off_is_not_believed_before_or_after(away: int) -> None:
    side = "ahead of" if away > 0 else "behind"
    assert refused(BODY, signed(BODY, at=NOW + away)) == f"its time is {abs(away)} s {side} this service's clock, more than 300 s"


def test_a_part_of_a_second_counts() -> None:
    assert read(BODY, signed(BODY), NOW + 300.0).id == "evt_1"
    assert refused(BODY, signed(BODY), NOW + 300.4).startswith("its time is 300 s behind")


def test_each_of_our_secrets_is_good_and_one_of_several_signatures_is_enough() -> None:
    assert read(BODY, signed(BODY, OLD_SECRET), NOW).id == "evt_1"
    several = f"t={NOW},v1={'0' * 64},v0={mac(BODY)},v1={mac(BODY)}"
    assert read(BODY, several, NOW).id == "evt_1"


NOBODY = "it is signed by none of the webhook secrets"


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        (BODY, signed(BODY, "whsec_of_somebody_else")),
        (BODY.replace(b"1250", b"9250"), signed(BODY)),
        (json.dumps(json.loads(BODY)).encode(), signed(BODY)),
        (BODY + b"\n", signed(BODY)),
        (BODY, signed(BODY).replace(f"t={NOW}", f"t={NOW + 1}")),
        (BODY, f"t={NOW},v0={mac(BODY)}"),
        (BODY, f"t={NOW},v1="),
        (BODY, f"t={NOW}"),
        (BODY, f"t={NOW},v1"),
        (BODY, f"t={NOW},,,=,v1=abc"),
        (BODY, f"t={NOW},v1={mac(BODY).upper()}"),
        (b"\xff\xfe", f"t={NOW},v1={mac(bytes([255, 254]))}"),
        (b"", f"t={NOW},v1={'0' * 64}"),
    ],
    ids=[
        "another secret",
        "changed",
        "written again",
        "longer",
        "another time",
        "another scheme",
        "empty",
        "none",
        "no value",
        "garbage",
        "capitals",
        "no text",
        "no body",
    ],
)
def test_what_none_of_our_secrets_signed_is_not_believed(body: bytes, signature: str) -> None:
    assert refused(body, signature) == NOBODY


@pytest.mark.parametrize("signature", ["", "é", "t=1" * 2000, f"t={NOW},v1=\u00e9"])
def test_what_can_be_no_signature_is_not_looked_at(signature: str) -> None:
    assert refused(BODY, signature) == "there is no signature that can be one"


@pytest.mark.parametrize("time", ["", "t=", "t=now", f"t={'9' * 16}", "t=-5", f"t={NOW},t={NOW}", f"t={NOW}.0"])
def test_a_signature_needs_one_time(time: str) -> None:
    assert refused(BODY, f"{time},v1={mac(BODY)}") == "the signature has no time"


def test_no_secret_means_that_nothing_is_believed() -> None:
    from clients.payments.client import read_event

    for secrets in ((), ("",)):
        with pytest.raises(BadProcessorEvent):
            read_event(BODY, signed(BODY, ""), NOW, secrets)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"[]", "the event is unreadable: the event is no object"),
        (b"{}", "the event is unreadable: type is missing"),
        (b'{"type": 5}', "the event is unreadable: type is no text"),
        (told("charge.succeeded", [EMAIL]), "the event is unreadable: object is no object"),
        (told("charge.succeeded", charge_body(), data=None, created="now"), "the event is unreadable: created is no whole number"),
        (told("charge.succeeded", charge_body(), livemode="no"), "the event is unreadable: livemode is neither true nor false"),
        (told("charge.succeeded", charge_body(amount="12.50")), "the event is unreadable: amount is no whole number"),
        (told("charge.succeeded", charge_body(amount=True)), "the event is unreadable: amount is no whole number"),
        (told("charge.succeeded", charge_body(amount=12.5)), "the event is unreadable: amount is no whole number"),
        (told("charge.succeeded", charge_body(status="odd " + EMAIL)), "the event is unreadable: status is a word that is not known"),
        (told("charge.succeeded", {"object": "charge"}), "the event is unreadable: id is missing"),
        (told("charge.succeeded", charge_body(), id=None), "the event is unreadable: id is missing"),
    ],
)
def test_a_signed_body_that_is_no_event_is_refused_without_repeating_it(body: bytes, reason: str) -> None:
    assert refused(body, signed(body)) == reason
