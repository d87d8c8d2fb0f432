"""Products: define, list, read."""

import httpx
from inline_snapshot import snapshot

from tests.storefronts.asking import PRODUCT

PRODUCTS = "/v1/connectivity/products"


async def define(http: httpx.AsyncClient, key: str = "k", **changes: object) -> httpx.Response:
    return await http.post(PRODUCTS, json=PRODUCT | changes, headers={"Idempotency-Key": key})


async def test_a_product_is_answered_as_a_plan(pro: httpx.AsyncClient) -> None:
    answer = await define(pro)
    assert answer.status_code == 201
    assert answer.json() == snapshot(
        {
            "id": "cnp_01mcckg2g00000000000000009",
            "object": "connectivity.plan",
            "name": "Nordic 5 GB",
            "data_mb": 5000,
            "unlimited": False,
            "validity_days": 30,
            "countries": ["DK", "NO", "SE"],
            "livemode": True,
            "price": {"amount": 1490, "currency": "EUR"},
        }
    )
    read = await pro.get(f"{PRODUCTS}/{answer.json()['id']}")
    assert (read.status_code, read.json()) == (200, answer.json())


async def test_the_same_key_and_body_return_the_original_plan(pro: httpx.AsyncClient) -> None:
    first, second = await define(pro), await define(pro)
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert len((await pro.get(PRODUCTS)).json()["data"]) == 1


async def test_products_are_listed_newest_first_and_in_pages(pro: httpx.AsyncClient) -> None:
    made = [(await define(pro, key, name=key)).json()["id"] for key in ("one", "two", "three")]
    whole = (await pro.get(PRODUCTS)).json()
    assert ([plan["id"] for plan in whole["data"]], whole["has_more"]) == (made[::-1], False)
    page = (await pro.get(PRODUCTS, params={"limit": 2})).json()
    assert ([plan["id"] for plan in page["data"]], page["has_more"]) == (made[:0:-1], True)
    rest = (await pro.get(PRODUCTS, params={"limit": 2, "starting_after": made[1]})).json()
    assert ([plan["id"] for plan in rest["data"]], rest["has_more"]) == (made[:1], False)


async def test_a_foreign_product_answers_as_an_unknown_one(pro: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    id = (await define(pro)).json()["id"]
    foreign, unknown = await http.get(f"{PRODUCTS}/{id}"), await http.get(f"{PRODUCTS}/cnp_unknown")
    assert foreign.status_code == unknown.status_code == 404
    assert (
        {**foreign.json(), "request_id": ""}
        == {**unknown.json(), "request_id": ""}
        == snapshot(
            {
                "error": "Your organisation has no product with this id",
                "code": "not_found",
                "request_id": "",
                "param": "id",
                "hint": "list_connectivity_products names the ones you defined",
            }
        )
    )


async def test_one_name_of_80_characters_is_taken(pro: httpx.AsyncClient) -> None:
    assert (await define(pro, name="ü" * 80)).json()["name"] == "ü" * 80
