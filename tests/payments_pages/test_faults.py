"""Faults as the official library and our own client meet them."""

from collections.abc import AsyncGenerator

import httpx
import pytest
import stripe

from registry.errors import PaymentsError
from simulators.processor.call import ProcessorRefusal
from simulators.transport import SimulatorTransport
from tests.payments_pages.shop import PagesShop
from transports.payments import SIMULATED_PROCESSOR_URL

REFUNDS = "/v1/refunds"


@pytest.fixture
async def official(shop: PagesShop) -> AsyncGenerator[stripe.StripeClient]:
    """The library as its vendor ships it, which repeats nothing unless told to."""
    client = stripe.HTTPXClient()
    client._client_async = httpx.AsyncClient(transport=SimulatorTransport(shop.sandbox))
    yield stripe.StripeClient(
        shop.sandbox.key,
        http_client=client,
        base_addresses={"api": SIMULATED_PROCESSOR_URL, "connect": SIMULATED_PROCESSOR_URL},
        max_network_retries=0,
    )
    await client.close_async()


async def charge(shop: PagesShop) -> str:
    return str((await shop.ask("POST", "charges", {"account": shop.account, "amount": 900, "currency": "usd"}))["id"])


async def refunded(shop: PagesShop, of: str) -> int:
    return (await shop.processor.find_charge(shop.account, of)).amount_refunded


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the library's own way with httpx
@pytest.mark.parametrize(
    ("fault", "error", "effect"),
    [
        ({"trouble": "timeout"}, stripe.APIConnectionError, 0),
        ({"trouble": "timeout", "after": True}, stripe.APIConnectionError, 900),
        ({"trouble": "closed"}, stripe.APIConnectionError, 0),
        ({"trouble": "closed", "after": True}, stripe.APIConnectionError, 900),
        ({"trouble": "error"}, stripe.APIError, 0),
        ({"trouble": "error", "after": True}, stripe.APIError, 900),
        ({"trouble": "rate_limited"}, stripe.RateLimitError, 0),
        ({"trouble": "garbage"}, stripe.APIError, 900),
    ],
)
async def test_the_official_library_meets_a_fault_as_that_of_the_real_one_and_a_repeat_gets_the_answer(
    shop: PagesShop, official: stripe.StripeClient, fault: dict[str, object], error: type[Exception], effect: int
) -> None:
    made = await charge(shop)
    options = stripe.RequestOptions(stripe_account=shop.account, idempotency_key="once")
    await shop.ask("POST", "faults", {"path": REFUNDS, **fault})
    with pytest.raises(error):
        await official.v1.refunds.create_async({"charge": made}, options)
    assert await refunded(shop, made) == effect
    answer = await official.v1.refunds.create_async({"charge": made}, options)
    assert (answer.amount, answer.status, await refunded(shop, made)) == (900, "succeeded", 900)


async def test_a_fault_of_every_try_is_an_error_of_ours_that_says_whether_it_may_have_happened(shop: PagesShop) -> None:
    made = await charge(shop)
    for trouble, unknown in (("rate_limited", False), ("timeout", True)):
        await shop.ask("POST", "faults", {"path": REFUNDS, "trouble": trouble, "times": 3})
        with pytest.raises(PaymentsError) as raised:
            await shop.processor.refund(shop.account, charge=made, amount=900, reason=None, key=f"k-{trouble}", metadata={})
        assert raised.value.outcome_unknown is unknown
        await shop.ask("DELETE", "faults")
    assert await refunded(shop, made) == 0


async def test_a_fault_may_wait_for_its_call_and_strike_often(shop: PagesShop) -> None:
    ordered = [
        {"trouble": "error", "method": "GET", "path": "/v1/accounts/*", "skip": 1, "times": 4},
        {"trouble": "error", "account": "acct_other", "path": "*"},
    ]
    answer = await shop.ask("POST", "faults", ordered)
    assert answer == {"faults": [{k: v for k, v in one.items() if (k, v) != ("path", "*")} for one in ordered]}
    await shop.processor.find_account(shop.account)
    for _ in range(2):
        with pytest.raises(PaymentsError):
            await shop.processor.find_account(shop.account)
    await shop.processor.find_account(shop.account)
    assert await shop.ask("GET", "faults") == {"faults": [{"trouble": "error", "account": "acct_other"}]}
    assert await shop.ask("DELETE", "faults") == {"faults": []}


@pytest.mark.parametrize("fault", [{}, {"trouble": "x"}, {"trouble": "error", "times": 0}, {"trouble": "error", "x": 1}, "error", None])
async def test_a_fault_that_makes_no_sense_is_refused_with_all_beside_it(shop: PagesShop, fault: object) -> None:
    with pytest.raises(ProcessorRefusal):
        await shop.ask("POST", "faults", [{"trouble": "error"}, fault])
    assert await shop.ask("GET", "faults") == {"faults": []}


async def test_every_call_is_on_record_with_its_fault(shop: PagesShop) -> None:
    await shop.ask("POST", "faults", {"trouble": "closed", "method": "GET", "path": "/v1/balance"})
    await shop.processor.balance_of(shop.account)
    calls = (await shop.ask("GET", "calls"))["calls"]
    assert isinstance(calls, list)
    assert [(one["method"], one["path"], one["account"], one["status"], one["fault"]) for one in calls[-2:]] == [
        ("GET", "/v1/balance", shop.account, 0, "closed"),
        ("GET", "/v1/balance", shop.account, 200, ""),
    ]


async def test_a_wire_without_faults_answers_over_http_too(shop: PagesShop) -> None:
    headers = {"Authorization": f"Bearer {shop.sandbox.key}"}
    async with httpx.AsyncClient(transport=SimulatorTransport(shop.sandbox), base_url=SIMULATED_PROCESSOR_URL, headers=headers) as http:
        assert (await http.get("/v1/balance")).json()["object"] == "balance"
