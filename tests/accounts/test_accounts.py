"""Accounts, stock, balances, the reseller and what it relays."""

import pytest
from inline_snapshot import snapshot

from operations.accounts.resellers import webhook_config_of
from registry.caller import Tier
from tests.accounts.stage import AccountsStage, confirmed
from tests.network_facts import OWN_TOKEN


@pytest.mark.rule("4.2.1")
async def test_a_managed_organisation_sees_its_own_account_only(stage: AccountsStage) -> None:
    stage.network.accounts[8101].balance = 412_500_000
    assert (await stage.managed.get("/v1/accounts")).json() == snapshot(
        {
            "data": [
                {
                    "id": 8101,
                    "name": "Demo Retail",
                    "balance": 412.5,
                    "packageOnly": False,
                    "steeringListId": 17,
                    "resellerId": 7001,
                    "resellerName": "Fjord Mobile",
                }
            ]
        }
    )


@pytest.mark.rule("4.2.1")
async def test_an_own_token_shows_all_its_accounts_in_pages(stage: AccountsStage) -> None:
    first = await stage.own.get("/v1/accounts?limit=3")
    assert [row["id"] for row in first.json()["data"]] == [8101, 8102, 8103]
    assert "starting_after=8103" in first.headers["Link"]
    rest = await stage.own.get("/v1/accounts?limit=3&starting_after=8103")
    assert [row["id"] for row in rest.json()["data"]] == [8104]
    assert "Link" not in rest.headers


@pytest.mark.parametrize("path", ["/v1/accounts", "/v1/reseller", "/v1/reseller/webhook-config", "/v1/sponsors"])
async def test_the_own_reseller_may_be_named(stage: AccountsStage, path: str) -> None:
    for http in (stage.managed, stage.own):
        assert (await http.get(f"{path}?resellerId=7001")).status_code == 200


@pytest.mark.rule("4.2.3")
async def test_stock_is_added_up(stage: AccountsStage) -> None:
    data = (await stage.managed.get("/v1/accounts/8101/esim-status")).json()["data"]
    lines = stage.lines(8101)
    free = sum(line.sim.status == "FREE" for line in lines if line.sim.esim)
    assert (data["id"], data["free"], data["total"]) == (8101, free, sum(line.sim.esim for line in lines))
    assert data["affected"] == data["total"] - free


@pytest.mark.long
async def test_a_foreign_account_is_not_found_without_asking_for_it(stage: AccountsStage) -> None:
    answers = [await stage.managed.get(f"/v1/accounts/{account}/esim-status") for account in (8102, 9999)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json()["error"] == answers[1].json()["error"]
    assert stage.calls() == []


async def test_an_own_token_reaches_a_new_account_within_the_minute_its_list_is_kept(stage: AccountsStage) -> None:
    account = stage.network.accounts.pop(8104)
    assert (await stage.own.get("/v1/accounts/8104/esim-status")).status_code == 404
    stage.network.accounts[8104] = account
    assert (await stage.own.get("/v1/accounts/8104/esim-status")).status_code == 200
    assert (await stage.own.get("/v1/accounts/8201/esim-status")).status_code == 404


@pytest.mark.rule("4.2.2")
async def test_lowering_the_own_balance_takes_two_steps(stage: AccountsStage) -> None:
    stage.network.accounts[8101].balance = 400_000_000
    said = await confirmed(stage.managed, "/v1/accounts/8101/balance", {"amount": -12.5, "description": "Fee"})
    assert said.json() == snapshot({"data": {"accountId": 8101, "mode": "adapt", "amount": -12.5}})
    assert stage.network.accounts[8101].balance == 387_500_000
    assert stage.calls("modifyAccountBalance") == snapshot([{"accountId": 8101, "amount": -12.5, "description": "Fee"}])


@pytest.mark.parametrize("body", [{"amount": 5}, {"amount": 0.01, "mode": "adapt"}, {"amount": 400.01, "mode": "set"}])
async def test_a_managed_balance_is_not_raised(stage: AccountsStage, body: dict[str, object]) -> None:
    stage.network.accounts[8101].balance = 400_000_000
    said = await confirmed(stage.managed, "/v1/accounts/8101/balance", body)
    assert (said.status_code, said.json()["code"]) == (409, "managed_balance")
    assert stage.calls("modifyAccountBalance") == []


async def test_a_managed_balance_may_be_set_lower(stage: AccountsStage) -> None:
    stage.network.accounts[8101].balance = 400_000_000
    for amount, left in ((150.5, 150_500_000), (0, 0)):
        said = await confirmed(stage.managed, "/v1/accounts/8101/balance", {"amount": amount, "mode": "set"})
        assert (said.status_code, said.json()["data"]["amount"]) == (200, amount)
        assert stage.network.accounts[8101].balance == left
    # the difference to what was seen, so that no usage meanwhile is given back
    assert stage.calls("modifyAccountBalance") == snapshot(
        [{"accountId": 8101, "amount": -249.5}, {"accountId": 8101, "amount": 0.0, "setBalance": True}]
    )


async def test_the_service_itself_and_own_tokens_raise_balances(stage: AccountsStage) -> None:
    stage.network.accounts[8101].balance = stage.network.accounts[8102].balance = 0
    service = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=8101, service_own=True)
    async with stage.world.client(service.secret) as http:
        assert (await confirmed(http, "/v1/accounts/8101/balance", {"amount": 100})).status_code == 200
    assert (await confirmed(stage.own, "/v1/accounts/8102/balance", {"amount": 7.25, "mode": "set"})).status_code == 200
    assert [stage.network.accounts[number].balance for number in (8101, 8102)] == [100_000_000, 7_250_000]


@pytest.mark.rule("4.2.5")
async def test_a_managed_organisation_learns_name_and_own_balance_of_its_reseller(stage: AccountsStage) -> None:
    stage.network.accounts[8101].balance = 1_412_500_000
    assert (await stage.managed.get("/v1/reseller")).json() == snapshot(
        {"data": {"balanceAmount": 1412.5, "id": 7001, "name": "Fjord Mobile", "balance": "1412,50"}}
    )


@pytest.mark.rule("4.2.5")
async def test_an_own_token_shows_its_reseller_whole_but_for_secrets_in_addresses(stage: AccountsStage) -> None:
    fjord = stage.network.resellers[7001]
    fjord.balance, fjord.contact = 1_530_200_000, {"callback": "post to https://user:pass@noc.example/in?token=abc#x soon"}
    data = (await stage.own.get("/v1/reseller")).json()["data"]
    assert (data["balance"], data["balanceAmount"], data["parentId"]) == ("1530,20", 1530.2, -1)
    assert data["contactInfo"] == snapshot({"callback": "post to https://***@noc.example/in?*** soon"})


@pytest.mark.rule("4.2.6")
async def test_relays_are_told_to_everybody(stage: AccountsStage) -> None:
    expected = snapshot(
        {
            "data": {
                "relay": {"lu": True, "gy": False, "voip": False, "callSms": False},
                "notifications": [],
                "source": "not_reported",
            }
        }
    )
    for http in (stage.managed, stage.own):
        assert (await http.get("/v1/reseller/webhook-config")).json() == expected


def test_what_newer_networks_add_to_the_configuration_is_shown_without_secrets() -> None:
    notified = {"type": "es2_status", "url": "https://u:p@us.example/es2/in?key=s", "thresholds": [80, 100]}
    info = {"id": 7001, "trafficInfo": {"relayGy": True}, "notifications": [notified], "lowCreditUrl": "https://us.example/low?k=1"}
    assert webhook_config_of(info) == snapshot(  # pyright: ignore[reportArgumentType]  # members beyond the documented ones are the point
        {
            "relay": {"lu": False, "gy": True, "voip": False, "callSms": False},
            "notifications": [{"type": "es2_status", "url": "https://***@us.example/es2/in?***", "thresholds": [80, 100]}],
            "source": "upstream",
            "other": {"lowCreditUrl": "https://us.example/low?***"},
        }
    )


@pytest.mark.rule("4.2.7")
async def test_sponsors_are_kept_for_a_minute(stage: AccountsStage) -> None:
    expected = snapshot({"data": [{"id": 31, "prefix": 90170, "name": "SPX"}, {"id": 32, "prefix": 90177, "name": "MERIDIAN"}]})
    for _ in range(2):
        assert (await stage.managed.get("/v1/sponsors")).json() == expected
    assert len(stage.calls("listSponsor")) == 1
    stage.world.clock.advance(61)
    await stage.managed.get("/v1/sponsors")
    assert len(stage.calls("listSponsor")) == 2


async def test_a_token_the_network_does_not_know_shows_nothing(stage: AccountsStage) -> None:
    stranger = await stage.world.caller(Tier.ENTERPRISE, token=OWN_TOKEN + "x")
    async with stage.world.client(stranger.secret) as http:
        said = await http.get("/v1/accounts")
    assert (said.status_code, said.json()["ocs_code"]) == (502, 8)
