"""Each connected account's share of the calls under way: hanging calls of one keep nobody else waiting."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import orjson
import pytest

from clients.http import Outbound
from clients.payments.client import PROCESSOR_LIMITS, ProcessorClient
from clients.payments.link import AccountShares, load_vendor
from clients.payments.port import ProcessorSettings
from registry.errors import PaymentsError, Refusal
from tests.clients.payments.processor import PROCESSOR_KEY, charge_body, payout_body

HANGING, FINE = "acct_1Hanging", "acct_1Fine"
PLACES = ProcessorSettings(PROCESSOR_KEY, ()).calls_of_one


class Hanging(httpx.AsyncBaseTransport):
    """As many connections as the client has in service; calls of one account, and those about it, wait on them until it is let go on."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.go_on = anyio.Event()
        self._connections = anyio.Semaphore(PROCESSOR_LIMITS.connections)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        about = request.headers.get("stripe-account") or request.url.path
        async with self._connections:
            self.heard.append(about)
            if HANGING in about:
                await self.go_on.wait()
            body = payout_body() if "payouts" in request.url.path else charge_body()
            return httpx.Response(200, stream=httpx.ByteStream(orjson.dumps(body)))


class Stage:
    """Calls under way, and what became of them."""

    def __init__(self, there: Hanging, client: ProcessorClient, group: anyio.abc.TaskGroup) -> None:
        self.there, self.client = there, client
        self.answered: list[str] = []
        self.failed: list[Refusal] = []
        self._group = group

    async def begin(self, account: str, times: int = 1, *, write: bool = False) -> None:
        """As far as they come by themselves."""
        for _ in range(times):
            self._group.start_soon(self._one, account, write)
        for _ in range(200):
            await asyncio.sleep(0)

    async def _one(self, account: str, write: bool) -> None:
        try:
            if write:
                await self.client.pay_out(account, amount=500, currency="EUR", key="k-1", metadata={})
            else:
                await self.client.find_charge(account, "ch_1")
        except Refusal as refusal:
            self.failed.append(refusal)
        else:
            self.answered.append(account)


@asynccontextmanager
async def stage(place_seconds: float) -> AsyncGenerator[Stage]:
    load_vendor()  # the first call of a process waits for it
    there = Hanging()
    client = ProcessorClient(ProcessorSettings(PROCESSOR_KEY, (), place_seconds=place_seconds), Outbound(PROCESSOR_LIMITS, transport=there))
    async with anyio.create_task_group() as group:
        yield Stage(there, client, group)
        there.go_on.set()
    await client.aclose()


async def test_calls_of_one_account_that_hang_keep_no_other_account_waiting() -> None:
    async with stage(60.0) as on:
        await on.begin(HANGING, PROCESSOR_LIMITS.connections + 10)
        await on.begin(FINE)
        assert (on.answered, on.failed) == ([FINE], [])
        assert on.there.heard == [HANGING] * PLACES + [FINE]
        on.there.go_on.set()
    assert on.answered.count(HANGING) == PROCESSOR_LIMITS.connections + 10  # whoever waited for a place got one


@pytest.mark.parametrize("write", [False, True])
async def test_a_call_too_many_is_refused_before_it_is_sent(write: bool) -> None:
    async with stage(0.0) as on:
        await on.begin(HANGING, PLACES)
        await on.begin(HANGING, 3, write=write)
        assert len(on.there.heard) == PLACES
        for refusal in on.failed:
            assert isinstance(refusal, PaymentsError)
            assert (refusal.status, refusal.error_code, refusal.outcome_unknown, refusal.before_execution, refusal.headers) == (
                502,
                "payments_error",
                False,
                True,
                {"Retry-After": "1"},
            )
        assert [str(refusal) for refusal in on.failed] == [
            "Too many calls of this account wait for the payment processor already, so this one was not sent. Try again later."
        ] * 3


async def test_questions_about_an_account_are_of_its_share_too() -> None:
    async with stage(0.0) as on:
        await on.begin(HANGING, PLACES)
        for ask in (on.client.find_account, on.client.dashboard_link, on.client.balance_of):
            with pytest.raises(PaymentsError):
                await ask(HANGING)
        assert len(on.there.heard) == PLACES


async def test_calls_that_were_given_up_free_their_places() -> None:
    async with stage(0.0) as on:
        async with anyio.create_task_group() as hurried:
            given_up = Stage(on.there, on.client, hurried)
            await given_up.begin(HANGING, PLACES)
            hurried.cancel_scope.cancel()
        on.there.go_on.set()
        await on.begin(HANGING, PLACES)
        assert (len(on.answered), on.failed) == (PLACES, [])


async def test_an_account_without_calls_is_forgotten() -> None:
    shares = AccountShares(1, 0.0)
    async with shares.place("a") as first, shares.place("a") as second, shares.place("b") as third:
        assert (first, second, third, len(shares)) == (True, False, True, 2)
    assert len(shares) == 0


async def test_a_place_that_is_waited_for_is_given_in_turn() -> None:
    shares, got = AccountShares(1, 60.0), list[int]()

    async def wait(number: int) -> None:
        async with shares.place("a") as free:
            assert free
            got.append(number)

    async with anyio.create_task_group() as group, shares.place("a"):
        for number in range(3):
            group.start_soon(wait, number)
        for _ in range(20):
            await asyncio.sleep(0)
        assert got == []
    assert (got, len(shares)) == ([0, 1, 2], 0)
