"""What a product promises is compared with the template that it draws from."""

from decimal import Decimal
from typing import Any, get_args

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.plans import BYTES_PER_MB, PlanWarningCode
from operations.upstream.template_terms import (
    COST_CURRENCY,
    PlanPromise,
    PromiseExceedsTemplate,
    TemplateTerms,
    compare_terms,
    plain_countries,
    require_promise_kept,
)
from registry.caller import Tier
from simulators.network.faults import NetworkFault
from tests.connectivity.test_products import PRODUCTS
from tests.network_facts import ACCOUNT
from tests.stage import without_request_id
from tests.world import World

EUROPE_3GB = 55015
"""3 GiB for 30 days in all of Europe, at 9.90 EUR."""
EXACT: dict[str, Any] = {
    "name": "Nordic 5 GB",
    "data_mb": 5368,
    "validity_days": 30,
    "countries": ["DK", "FI", "IS", "NO", "SE"],
    "price_cents": 1490,
    "currency": "EUR",
    "package_template_id": 55011,
}
COUNTRIES = ("DE", "FR", "GB", "UK", "GR", "EL", "NO", "SE")


async def define(world: World, *, template: int = 55011, **fields: Any) -> httpx.Response:
    caller = await world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    async with world.client(caller.secret) as http:
        body = {**EXACT, "package_template_id": template, **fields}
        return await http.post(PRODUCTS, json=body, headers={"Idempotency-Key": "k"})


def codes(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 201, answer.text
    return [warning["code"] for warning in answer.json()["warnings"]]


@pytest.mark.long
async def test_a_product_that_is_as_its_template_has_no_warnings(world: World) -> None:
    assert codes(await define(world)) == []


async def test_a_product_that_promises_less_below_cost_is_taken_with_warnings(world: World) -> None:
    asked = {"data_mb": 3000, "validity_days": 14, "countries": ["DE", "FR", "IT"], "price_cents": 790}
    said = await define(world, template=EUROPE_3GB, **asked)
    assert codes(said) == ["data_below_template", "days_below_template", "countries_below_template", "price_below_cost"]
    texts = [warning["message"] for warning in said.json()["warnings"]]
    assert texts[0] == "3000 MB are promised, and a package of the template holds 3221 MB (of 10^6 bytes): buyers get more"
    assert texts[1] == "14 days are promised, and a package of the template runs 30: buyers get more"
    assert texts[3] == "The price, 7.90 EUR, is below what the template costs, 9.90 EUR"


@pytest.mark.parametrize(
    ("field", "value", "fix"),
    [
        ("data_mb", 5369, "lower data_mb to 5368"),
        ("validity_days", 31, "lower validity_days to 30"),
        ("countries", ["NO", "DE"], "leave DE out of countries"),
    ],
)
async def test_a_product_that_promises_more_is_refused_and_told_how(world: World, field: str, value: Any, fix: str) -> None:
    said = await define(world, **{field: value})
    body = without_request_id(said)
    assert (said.status_code, body["code"], body["param"]) == (400, "promise_exceeds_template", field)
    assert fix in body["hint"] and ("adapt: true" in body["hint"]) is (field != "countries")
    assert codes(await define(world)) == []  # nothing was kept of it, and its key is free


async def test_all_that_is_promised_too_much_is_told_at_once(world: World) -> None:
    said = await define(world, data_mb=9000, validity_days=60, countries=["NO", "US"])
    assert [word in said.json()["error"] for word in ("9000 MB", "60 days", "US")] == [True] * 3


async def test_with_adapt_data_and_days_are_the_products_own_and_countries_are_not(world: World) -> None:
    said = await define(world, data_mb=9000, validity_days=60, adapt=True)
    assert codes(said) == [] and said.json()["adapt"] is True
    refused = await define(world, data_mb=9000, countries=["US"], adapt=True)
    assert (refused.status_code, refused.json()["param"]) == (400, "countries")
    for field, value in (("data_mb", 1_000_000_001), ("validity_days", 3651)):
        refused = await define(world, adapt=True, **{field: value})
        assert (refused.status_code, refused.json()["param"]) == (400, field)


async def test_a_price_in_another_currency_is_not_compared_and_says_so(world: World) -> None:
    assert codes(await define(world, currency="USD", price_cents=1)) == ["cost_not_compared"]


@pytest.mark.parametrize("template", [999_999, 55041], ids=["never there", "deleted"])
@pytest.mark.parametrize("adapt", [False, True])
async def test_a_product_of_a_template_that_is_not_there_is_refused_since_it_can_never_be_changed(
    world: World, template: int, adapt: bool
) -> None:
    said = await define(world, template=template, adapt=adapt)
    body = said.json()
    assert (said.status_code, body["code"], body["param"]) == (404, "not_found", "package_template_id"), body
    assert str(template) in body["error"] and "list_package_templates" in body["hint"]


async def test_an_adapted_product_below_the_cost_of_its_template_is_warned_of(world: World) -> None:
    assert codes(await define(world, adapt=True, data_mb=3000, price_cents=1)) == ["price_below_cost"]


@pytest.mark.cases
@pytest.mark.parametrize("trouble", [{"drop_before": True}, {"code": 3}, {"malformed": True}, {"status": 503}])
async def test_a_charging_system_that_is_away_refuses_nothing_and_is_compared_when_it_is_back(
    world: World, trouble: dict[str, Any]
) -> None:
    caller = await world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    world.sandbox.faults.add(NetworkFault("*", times=None, **trouble))
    async with world.client(caller.secret) as http:
        made = await http.post(PRODUCTS, json={**EXACT, "data_mb": 9000}, headers={"Idempotency-Key": "k"})
        assert codes(made) == ["template_not_compared"]
        world.sandbox.faults.clear()
        world.clock.advance(61)
        for path in (PRODUCTS, "/v1/connectivity/plans"):
            rows = (await http.get(path)).json()["data"]
            listed = next(row for row in rows if row["id"] == made.json()["id"])
            assert [warning["code"] for warning in listed["warnings"]] == ["data_exceeds_template"]
        read = (await http.get(f"{PRODUCTS}/{made.json()['id']}")).json()
        assert read == listed
        again = await http.post(PRODUCTS, json={**EXACT, "data_mb": 9000}, headers={"Idempotency-Key": "k"})
        assert again.json() == made.json()


async def test_a_recurring_template_is_warned_of_where_the_charging_system_lists_it() -> None:
    promise = PlanPromise(1, 1, ["NO"], 100, "EUR", adapt=True)
    template = TemplateTerms(10**6, 1, frozenset({"NO"}), None, recurring=True)
    assert [each.code for each in compare_terms(promise, template)] == ["template_recurring"]


promises = st.builds(
    PlanPromise,
    data_mb=st.integers(1, 12_000),
    validity_days=st.integers(1, 60),
    countries=st.lists(st.sampled_from(COUNTRIES), max_size=5),
    price_cents=st.integers(1, 5000),
    currency=st.sampled_from(["EUR", "USD"]),
    adapt=st.booleans(),
)
templates = st.builds(
    TemplateTerms,
    data_bytes=st.integers(0, 12_000 * BYTES_PER_MB) | st.integers(1, 12).map(lambda gib: gib << 30),
    days=st.none() | st.integers(1, 60),
    countries=st.frozensets(st.sampled_from(COUNTRIES)).map(plain_countries),
    cost=st.none() | st.decimals(0, 50, places=2),
    recurring=st.booleans(),
)


@pytest.mark.long
@given(promise=promises, template=templates)
def test_what_is_taken_without_warnings_never_promises_more_than_there_is_nor_costs_more_than_its_price(
    promise: PlanPromise, template: TemplateTerms
) -> None:
    differences = compare_terms(promise, template)
    assert {each.code for each in differences} <= {*get_args(PlanWarningCode)}
    if differences:
        return
    if not promise.adapt:
        assert promise.data_mb * BYTES_PER_MB <= template.data_bytes < (promise.data_mb + 1) * BYTES_PER_MB
        assert promise.validity_days == template.days
    assert not promise.countries or plain_countries(promise.countries) == template.countries
    assert not template.cost or (promise.currency == COST_CURRENCY and Decimal(promise.price_cents) >= template.cost * 100)


@pytest.mark.long
@given(promise=promises, template=templates)
def test_what_is_not_refused_never_promises_more_than_is_known_to_be_there(promise: PlanPromise, template: TemplateTerms) -> None:
    differences = compare_terms(promise, template)
    try:
        require_promise_kept(differences, 1)
    except PromiseExceedsTemplate as refusal:
        assert refusal.param in ("data_mb", "validity_days", "countries") and refusal.hint
        return
    assert promise.adapt or promise.data_mb * BYTES_PER_MB <= template.data_bytes
    assert promise.adapt or template.days is None or promise.validity_days <= template.days
    assert not template.countries or plain_countries(promise.countries) <= template.countries
