"""Signatures of deliveries, checked against the published reference package."""

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from clients.webhooks.signature import BadWebhookSignature, new_webhook_secret, sign_delivery, verify_webhook_signature

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OTHER = new_webhook_secret(bytes(range(32, 64)))
BODY = b'{"a":1}'
NOW = 1_700_000_000


def test_a_secret_is_made_of_the_given_32_bytes() -> None:
    assert new_webhook_secret(bytes(range(32))) == SECRET
    with pytest.raises(ValueError, match="32"):
        new_webhook_secret(b"short")


@pytest.mark.rule("5.5.1")
def test_both_schemes_equal_the_published_vectors() -> None:
    assert sign_delivery([SECRET], "evt_1", NOW, BODY) == {
        "webhook-id": "evt_1",
        "webhook-timestamp": "1700000000",
        "webhook-signature": "v1,hUVxIYXs8Zy9GDiZD1uQbBwXoZGMAB6RVLdZZ3ffmek=",
        "Connectivity-Signature": "t=1700000000,v1=7ca151e4fc23256c89e882261933d6af9a8be1f09f32dd687e83b0e34da7e68f",
    }


@settings(max_examples=200, deadline=None, derandomize=True)
@given(body=st.text(), key=st.binary(min_size=32, max_size=32))
def test_the_reference_package_signs_any_body_alike(body: str, key: bytes) -> None:
    secret = new_webhook_secret(key)
    headers = sign_delivery([secret], "evt_1", NOW, body.encode())
    assert headers["webhook-signature"] == Webhook(secret).sign("evt_1", datetime.fromtimestamp(NOW, UTC), body)
    verify_webhook_signature([secret], headers, body.encode(), NOW)


def standard(event_id: str, timestamp: object, signature: str) -> dict[str, str]:
    return {"webhook-id": event_id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}


def test_during_a_rotation_each_scheme_carries_a_value_per_secret() -> None:
    headers = sign_delivery([OTHER, SECRET], "evt_1", NOW, BODY)
    assert headers["webhook-signature"].split(" ") == [
        sign_delivery([secret], "evt_1", NOW, BODY)["webhook-signature"] for secret in (OTHER, SECRET)
    ]
    members = headers["Connectivity-Signature"].split(",")
    assert [member.partition("=")[0] for member in members] == ["t", "v1", "v1"]
    for secret in (OTHER, SECRET):
        verify_webhook_signature([secret], headers, BODY, NOW)


def test_a_delivery_is_never_sent_unsigned_or_with_an_ambiguous_id() -> None:
    with pytest.raises(ValueError, match="none given"):
        sign_delivery([], "evt_1", NOW, BODY)
    with pytest.raises(ValueError, match="dot"):
        sign_delivery([SECRET], "evt.1", NOW, BODY)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not base64", "whsec_\u00e9"])
def test_a_secret_that_is_no_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match=r"^A signing secret is whsec_ and base64 of random bytes; this one is not\.$"):
        sign_delivery([secret], "evt_1", NOW, BODY)


@pytest.mark.parametrize("skew", [-300, -299, 0, 299, 300])
def test_a_message_within_300_seconds_either_way_is_accepted(skew: int) -> None:
    verify_webhook_signature([SECRET], sign_delivery([SECRET], "evt_1", NOW, BODY), BODY, NOW + skew)


@pytest.mark.parametrize("skew", [-301, 301, 300.5, 10**9])
def test_a_message_further_away_in_time_is_refused(skew: float) -> None:
    with pytest.raises(BadWebhookSignature, match="300 seconds"):
        verify_webhook_signature([SECRET], sign_delivery([SECRET], "evt_1", NOW, BODY), BODY, NOW + skew)


GOOD = sign_delivery([SECRET], "evt_1", NOW, BODY)["webhook-signature"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"webhook-id": "evt_1", "webhook-timestamp": str(NOW)},
        standard("evt_2", NOW, GOOD),
        standard("evt_1", NOW + 1, GOOD),
        standard("evt_1", f"0{NOW}", GOOD),
        standard("evt_1", f" {NOW}", GOOD),
        standard("evt_1", "١٧٠٠٠٠٠٠٠٠", GOOD),
        standard("evt_1", "NaN", GOOD),
        standard("evt_1", "9" * 5000, GOOD),
        standard("evt_1", NOW, GOOD.replace("v1,", "v1a,")),
        standard("evt_1", NOW, GOOD.replace("v1,", "v2,")),
        standard("evt_1", NOW, GOOD.replace("v1,", "")),
        standard("evt_1", NOW, GOOD[:-1]),
        standard("evt_1", NOW, "v1,"),
        standard("evt_1", NOW, "v1,é"),
    ],
)
def test_a_message_with_altered_headers_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BadWebhookSignature):
        verify_webhook_signature([SECRET], headers, BODY, NOW)


def test_another_body_another_secret_or_no_secret_at_all_is_refused() -> None:
    headers = sign_delivery([SECRET], "evt_1", NOW, BODY)
    for secrets, body in (([SECRET], BODY + b" "), ([OTHER], BODY), ([], BODY)):
        with pytest.raises(BadWebhookSignature):
            verify_webhook_signature(secrets, headers, body, NOW)


def test_a_secret_without_padding_is_the_same_secret() -> None:
    assert sign_delivery([SECRET.rstrip("=")], "evt_1", NOW, BODY)["webhook-signature"] == GOOD


def test_any_matching_member_of_the_header_is_enough() -> None:
    foreign = "v1," + base64.b64encode(bytes(32)).decode()
    verify_webhook_signature([OTHER, SECRET], standard("evt_1", NOW, f"{foreign} v1a,xyz {GOOD}"), BODY, NOW)
