"""Connected accounts over the wire: what is sent, and what is made of the answer."""

import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest

from clients.payments.records import ConnectedAccount, HostedPage, PayoutTiming
from registry.errors import NotFound, PaymentsError, PaymentsRefused
from tests.clients.payments.processor import CONNECTED, EMAIL, PROCESSOR_KEY, ProcessorAnswer, Vendor, account, fails, vendor

EXPRESS = ConnectedAccount(CONNECTED, "express", True, False, True, "EUR", ("external_account",), {"organisation": "org_1"})


@pytest.mark.long
def test_importing_the_client_loads_neither_the_library_nor_a_network_package() -> None:
    program = "import sys, clients.payments.client\nsys.exit(str({'stripe', 'httpx', 'aiohttp'} & set(sys.modules) or '') or 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_of_the_wire_is_the_one_that_the_library_is_typed_for() -> None:
    import stripe

    from clients.payments.port import AUTHORIZE_HOST, PROCESSOR_API_VERSION

    assert (stripe.api_version, stripe.DEFAULT_CONNECT_API_BASE) == (PROCESSOR_API_VERSION, AUTHORIZE_HOST)


async def test_a_call_says_who_asks_for_whom_in_which_version_and_nothing_about_this_machine() -> None:
    async with vendor(ProcessorAnswer(account())) as (there, client):
        await client.create_account(key="org_1", email=EMAIL, country="DE", metadata={"organisation": "org_1"})
    [asked] = there.asked
    told = {name: value for name, value in asked.headers.items() if name not in ("host", "content-length")}
    assert told == {
        "authorization": f"Bearer {PROCESSOR_KEY}",
        "content-type": "application/x-www-form-urlencoded",
        "idempotency-key": "org_1",
        "stripe-version": "2026-10-28.endive",
        "user-agent": told["user-agent"],
        "accept": "*/*",
        "accept-encoding": "identity",
    }
    assert told["user-agent"].startswith("Stripe/v1 PythonBindings/") and told["user-agent"].endswith(" connectivity-reseller")


async def test_an_account_is_made_in_the_words_that_replace_account_types() -> None:
    async with vendor(ProcessorAnswer(account())) as (there, client):
        made = await client.create_account(key="org_1", email=EMAIL, country="DE", metadata={"organisation": "org_1"})
    [asked] = there.asked
    assert (asked.method, asked.path, made) == ("POST", "/v1/accounts", EXPRESS)
    assert asked.form == {
        "controller[stripe_dashboard][type]": "express",
        "controller[requirement_collection]": "stripe",
        "controller[losses][payments]": "application",
        "controller[fees][payer]": "application",
        "capabilities[card_payments][requested]": "true",
        "capabilities[transfers][requested]": "true",
        "metadata[organisation]": "org_1",
        "email": EMAIL,
        "country": "DE",
    }


@pytest.mark.parametrize(
    ("dashboard", "kind"), [("express", "express"), ("full", "standard"), ("none", "custom"), ("of-the-future", "none")]
)
async def test_an_account_without_a_type_is_told_by_its_dashboard(dashboard: str, kind: str) -> None:
    found = account(type="none", controller={"type": "application", "stripe_dashboard": {"type": dashboard}})
    async with vendor(ProcessorAnswer(found)) as (there, client):
        assert (await client.find_account(CONNECTED)).kind == kind
    assert (there.asked[0].method, there.asked[0].path) == ("GET", f"/v1/accounts/{CONNECTED}")
    assert "stripe-account" not in there.asked[0].headers


async def test_an_account_of_which_little_is_told_says_no_to_everything() -> None:
    async with vendor(ProcessorAnswer({"id": CONNECTED, "object": "account"})) as (_, client):
        assert await client.find_account(CONNECTED) == ConnectedAccount(CONNECTED, "none", False, False, False, None)


async def test_links_to_pages_are_made_anew_each_time() -> None:
    link = {"object": "account_link", "created": 1, "expires_at": 1_800_000_300, "url": "https://connect.vendor.example/setup/s/1"}
    login = {"object": "login_link", "created": 1, "url": "https://connect.vendor.example/express/1"}
    async with vendor(ProcessorAnswer(link), ProcessorAnswer(login)) as (there, client):
        first = await client.onboarding_link(CONNECTED, return_url="https://s.example/back", refresh_url="https://s.example/again")
        second = await client.dashboard_link(CONNECTED)
    assert (first, second) == (
        HostedPage("https://connect.vendor.example/setup/s/1", 1_800_000_300),
        HostedPage("https://connect.vendor.example/express/1"),
    )
    assert [asked.path for asked in there.asked] == ["/v1/account_links", f"/v1/accounts/{CONNECTED}/login_links"]
    assert there.asked[0].form == {
        "account": CONNECTED,
        "type": "account_onboarding",
        "return_url": "https://s.example/back",
        "refresh_url": "https://s.example/again",
    }
    assert "vendor" not in repr((first, second))


def test_the_way_in_for_standard_accounts_names_the_client_and_the_state() -> None:
    there = Vendor(port=1)
    assert there.client().authorize_url(state="s", return_url="https://s.example/cb") is None
    address = there.client(client_id="ca_1").authorize_url(state="s t&a", return_url="https://s.example/cb?x=1")
    assert address is not None and address.startswith("http://127.0.0.1:1/oauth-host/oauth/authorize?")
    assert parse_qs(urlsplit(address).query) == {
        "response_type": ["code"],
        "client_id": ["ca_1"],
        "scope": ["read_write"],
        "state": ["s t&a"],
        "redirect_uri": ["https://s.example/cb?x=1"],
    }


async def test_a_code_becomes_the_account_whose_owner_came_back_and_its_tokens_are_dropped() -> None:
    answer = {
        "token_type": "bearer",
        "scope": "read_write",
        "access_token": "sk_test_theirs",
        "stripe_user_id": CONNECTED,
        "livemode": False,
    }
    async with vendor(ProcessorAnswer(answer)) as (there, client):
        assert [await client.attach("ac_123"), await client.attach("ac_123")] == [CONNECTED, CONNECTED]
    first, second = there.asked
    assert (first.path, first.form) == ("/oauth-host/oauth/token", {"grant_type": "authorization_code", "code": "ac_123"})
    assert first.key != second.key  # else a used code would be answered as it was the first time


async def test_a_wrong_code_is_refused_and_a_code_is_never_shown_twice() -> None:
    wrong = ProcessorAnswer({"error": "invalid_grant", "error_description": f"Code ac_9 of {EMAIL} does not exist"}, 400)
    async with vendor(wrong, ProcessorAnswer(status=500, body={"error": {"type": "api_error"}})) as (there, client):
        with pytest.raises(PaymentsRefused) as refused:
            await client.attach("ac_9")
        with pytest.raises(PaymentsError) as unknown:
            await client.attach("ac_9")
    assert (refused.value.processor_code, refused.value.status) == ("invalid_grant", 400)
    assert "ac_9" not in refused.value.message
    assert (unknown.value.outcome_unknown, len(there.asked)) == (True, 2)


@pytest.mark.parametrize(
    ("schedule", "sent", "told"),
    [
        (PayoutTiming("manual"), {"interval": "manual"}, {"interval": "manual"}),
        (PayoutTiming("daily", delay_days=7), {"interval": "daily"}, {"interval": "daily"}),
        (
            PayoutTiming("weekly", weekday="friday", delay_days=7),
            {"interval": "weekly", "weekly_payout_days][0": "friday"},
            {"interval": "weekly", "weekly_payout_days": ["friday"]},
        ),
        (
            PayoutTiming("monthly", month_day=31),
            {"interval": "monthly", "monthly_payout_days][0": "31"},
            {"interval": "monthly", "monthly_payout_days": [31]},
        ),
    ],
)
async def test_a_payout_schedule_is_set_and_read(schedule: PayoutTiming, sent: dict[str, str], told: dict[str, object]) -> None:
    timing = {"delay_days": schedule.delay_days or 2}
    answer = {"object": "balance_settings", "payments": {"payouts": {"schedule": told, "status": "enabled"}, "settlement_timing": timing}}
    async with vendor(ProcessorAnswer(answer)) as (there, client):
        done = await client.set_schedule(CONNECTED, schedule, key="k1")
        assert await client.schedule_of(CONNECTED) == done
    assert done == PayoutTiming(schedule.interval, schedule.weekday, schedule.month_day, timing["delay_days"])
    expected = {f"payments[payouts][schedule][{name}]": value for name, value in sent.items()}
    if schedule.delay_days:
        expected["payments[settlement_timing][delay_days_override]"] = "7"
    assert there.asked[0].form == expected
    assert [(asked.method, asked.path, asked.headers["stripe-account"]) for asked in there.asked] == [
        ("POST", "/v1/balance_settings", CONNECTED),
        ("GET", "/v1/balance_settings", CONNECTED),
    ]
    assert there.asked[0].key == "k1"


async def test_an_account_without_a_schedule_pays_nothing_out_by_itself() -> None:
    answer = {"object": "balance_settings", "payments": {"payouts": None, "settlement_timing": {"delay_days": 2}}}
    async with vendor(ProcessorAnswer(answer)) as (_, client):
        assert await client.schedule_of(CONNECTED) == PayoutTiming("manual", delay_days=2)


@pytest.mark.parametrize("id", ["", ".", "..", "a/b", "acct_1?x=1", "acct_1\r\nx: y", "é", "x" * 256])
async def test_what_cannot_be_an_id_is_not_found_without_asking(id: str) -> None:
    async with vendor(fails(500)) as (there, client):
        for ask in (
            client.find_account(id),
            client.find_charge(CONNECTED, id),
            client.find_charge(id, "ch_1"),
            client.expire_checkout(CONNECTED, id),
        ):
            with pytest.raises(NotFound):
                await ask
    assert there.asked == []
