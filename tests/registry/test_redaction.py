"""What opens an order is masked wherever it stands in a text, whole or cut short, behind an escape or in another case."""

import pytest

from registry.ids import former_order_number, without_order_tokens
from registry.redaction import redact

TOKEN = "ord_7m2q9k4xb1zdp0rt5v8w3y6h2n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TOKEN, "ord_***"),
        (f"GET /shop/fjord/orders/{TOKEN}/cancel HTTP/1.1", "GET /shop/fjord/orders/ord_***/cancel HTTP/1.1"),
        (f"/api/orders/{TOKEN}?x=1", "/api/orders/ord_***?x=1"),
        (f"next=%2Fshop%2Ffjord%2Forders%2F{TOKEN}", "next=%2Fshop%2Ffjord%2Forders%2Ford_***"),
        (f"order-refund:{TOKEN}:att_1", "order-refund:ord_***:att_1"),
        (f"Cookie: __Secure-order_01k0a8w7zv6q4k3m2n1p0r9s8t={TOKEN}", "Cookie: __Secure-order_01k0a8w7zv6q4k3m2n1p0r9s8t=ord_***"),
        (TOKEN.upper(), "ord_***"),
        (TOKEN[:-3] + "...", "ord_***..."),
        ("onr_01k0a8w7zv6q4k3m2n1p0r9s8t", "onr_01k0a8w7zv6q4k3m2n1p0r9s8t"),
    ],
)
def test_a_token_is_masked_whole_and_a_number_is_not(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_the_number_of_an_order_of_before_is_always_the_same_and_is_found_in_the_middle_of_a_text() -> None:
    number = former_order_number(TOKEN)
    assert number == "onr_dncwb3x9ghypfmtfp4tgdwc4z3"
    assert without_order_tokens(f'{{"order":"{TOKEN}","url":"/orders/{TOKEN}/x"}}') == f'{{"order":"{number}","url":"/orders/{number}/x"}}'
    assert without_order_tokens(number) == number
