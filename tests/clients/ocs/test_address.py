"""Where calls go, how they show their token, and that nobody else sees it."""

import traceback
from dataclasses import replace
from typing import Literal

import httpx
import pytest

from clients.http import Outbound, OutboundLimits
from clients.ocs.client import Ocs, OcsPool, ocs_limits
from clients.ocs.link import OcsLink, OcsSettings
from registry.errors import OcsError
from tests.clients.clock import ManualClock
from tests.clients.ocs.examples import FIRST_DAY
from tests.clients.ocs.upstream import ODD_TOKEN, URL, broken, raw, reply, upstream
from tests.clients.webhooks.receiver import receiver, status_answer

QUOTED = b"token=t0k3n-s3cret%2B%2F%20%26%25"


async def test_the_token_travels_in_the_query_percent_encoded() -> None:
    there = upstream(reply("getResellerInfo", {"id": 1}))
    await there.ocs().reseller.get_reseller_info()
    (request,) = there.requests
    assert request.method == "POST"
    assert request.url.query == QUOTED
    assert dict(request.url.params) == {"token": ODD_TOKEN}
    assert "authorization" not in request.headers
    assert (request.headers["content-type"], request.headers["accept"]) == ("application/json", "application/json")


@pytest.mark.parametrize(("auth", "header"), [("bearer", "Bearer t0k3n"), ("token-header", "Token t0k3n")])
async def test_the_token_travels_in_a_header_when_the_server_wants_that(
    auth: Literal["query", "bearer", "token-header"], header: str
) -> None:
    there = upstream(reply("getResellerInfo", {"id": 1}))
    await there.ocs(OcsSettings(URL, auth=auth), "t0k3n").reseller.get_reseller_info()
    assert str(there.requests[0].url) == URL
    assert there.requests[0].headers["authorization"] == header


async def test_the_query_of_the_address_is_kept() -> None:
    there = upstream(reply("getResellerInfo", {"id": 1}))
    await there.ocs(OcsSettings("https://ocs.example/v1?tenant=a"), "b").reseller.get_reseller_info()
    assert str(there.requests[0].url) == "https://ocs.example/v1?tenant=a&token=b"


async def test_usage_statistics_have_their_own_address() -> None:
    for settings, path in [
        (OcsSettings(URL), "/ocs-custo/main/v1"),
        (OcsSettings(URL, statistics_url="https://ocs.example/ocs-custo/as/v1"), "/ocs-custo/as/v1"),
    ]:
        there = upstream()
        ocs = there.ocs(settings)
        await ocs.statistics.usage_over_period(1, FIRST_DAY, FIRST_DAY)
        await ocs.statistics.network_events_over_period(1, FIRST_DAY, FIRST_DAY)
        await ocs.statistics.active_period(1)
        assert [request.url.path for request in there.requests] == [path, path, "/ocs-custo/main/v1"]


async def test_a_real_connection_carries_the_very_token() -> None:
    body = b'{"status":{"code":0,"msg":"OK"},"getResellerInfo":{"id":1}}'
    async with receiver(status_answer("200 OK", body=body)) as there:
        settings = OcsSettings(there.url())
        pool = OcsPool(Outbound(ocs_limits(settings)), settings, ManualClock())
        assert await pool.for_token(ODD_TOKEN).reseller.get_reseller_info() == {"id": 1}
        await pool.aclose()
    head = there.requests[0].split(b"\r\n")[0].decode()
    assert dict(httpx.URL(head.split(" ")[1]).params) == {"token": ODD_TOKEN}


SECRETS = (ODD_TOKEN, "t0k3n", QUOTED.decode())


def assert_silent(*texts: str) -> None:
    for text in texts:
        for secret in SECRETS:
            assert secret not in text


@pytest.mark.parametrize("auth", ["query", "bearer", "token-header"])
async def test_no_error_and_no_traceback_holds_the_token(auth: Literal["query", "bearer", "token-header"]) -> None:
    answers = [
        broken(httpx.ReadTimeout(f"{URL}?{QUOTED.decode()}")),
        broken(OSError(ODD_TOKEN)),
        raw(ODD_TOKEN.encode()),
        raw(ODD_TOKEN.encode(), 500),
        reply(code=2, msg=ODD_TOKEN),
        reply("listTariffRule", ODD_TOKEN),
    ]
    for answer in answers:
        ocs = upstream(answer).ocs(OcsSettings(URL, auth=auth, backoff_seconds=0))
        for call in (ocs.tariffs.list_rules, ocs.tariffs.stream_customer_tariff):
            with pytest.raises(OcsError) as caught:
                await call(1)
            error = caught.value
            story = "".join(traceback.format_exception(error))
            assert_silent(story, str(error), repr(error), str(error.body("req_1")), repr(vars(error)))


async def test_a_refused_connection_does_not_tell_the_token() -> None:
    async with receiver(status_answer("200 OK")) as there:
        settings = OcsSettings(there.url())
    outbound = Outbound(OutboundLimits(total_seconds=5))
    ocs = OcsPool(outbound, settings, ManualClock()).for_token(ODD_TOKEN)
    for call in (ocs.tariffs.list_rules, ocs.tariffs.stream_customer_tariff):
        with pytest.raises(OcsError) as caught:
            await call(1)
        assert caught.value.before_execution
        assert_silent("".join(traceback.format_exception(caught.value)))
    await outbound.aclose()


def test_the_repr_of_a_link_hides_the_token() -> None:
    ocs = upstream().ocs()
    assert repr(ocs.link) == "OcsLink(token hidden)"
    assert_silent(repr(ocs), str(ocs.link), repr(ocs.reseller))


def test_a_pool_has_one_client_per_token_and_forgets_the_oldest() -> None:
    pool = OcsPool(Outbound(), OcsSettings(URL), ManualClock())
    first = pool.for_token("a")
    assert pool.for_token("a") is first
    assert pool.for_token("b") is not first
    for number in range(998):
        pool.for_token(str(number))
    assert pool.for_token("a") is first
    second = pool.for_token("b")
    pool.for_token("one more")
    pool.for_token("and another")
    assert pool.for_token("b") is second
    for number in range(1000):
        pool.for_token(f"new {number}")
    assert pool.for_token("a") is not first
    assert_silent(repr(pool), str(vars(OcsPool(Outbound(), OcsSettings(URL), ManualClock()))))


def test_settings_are_frozen_and_hold_no_token() -> None:
    settings = OcsSettings(URL)
    assert replace(settings, concurrency=4).concurrency == 4
    assert isinstance(Ocs(OcsLink(Outbound(), settings, ODD_TOKEN, ManualClock())), Ocs)
    assert_silent(repr(settings))
