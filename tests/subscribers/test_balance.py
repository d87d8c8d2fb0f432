"""A line's prepaid balance: lowered by everybody, raised only with one's own money."""

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from tests.stage import without_request_id
from tests.subscribers.staged import LineStage

FIVE = 5_000_000


@pytest.fixture
def line(stage: LineStage) -> Line:
    stage.line.balance = FIVE
    return stage.line


@pytest.mark.cases
@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"amount": -1.5}, 3_500_000),
        ({"amount": -1.5, "mode": "adapt"}, 3_500_000),
        ({"amount": -9}, 0),
        ({"amount": 0}, FIVE),
        ({"amount": 0, "mode": "set"}, 0),
        ({"amount": 4.99, "mode": "set"}, 4_990_000),
        ({"amount": 5, "mode": "set"}, FIVE),
    ],
)
@pytest.mark.rule("4.2.16")
async def test_a_managed_organisation_lowers_a_balance(stage: LineStage, line: Line, body: dict[str, object], left: int) -> None:
    answer = await stage.ask("balance", body)
    assert (answer.status_code, answer.json()) == (200, {"data": {"mode": body.get("mode", "adapt"), "amount": body["amount"]}})
    assert (line.balance, stage.network.transactions[-1].owner_id) == (left, line.id)


@pytest.mark.parametrize("body", [{"amount": 0.01}, {"amount": 5.01, "mode": "set"}, {"amount": 1_000_000_000}])
async def test_a_managed_organisation_gives_itself_no_money(stage: LineStage, line: Line, body: dict[str, object]) -> None:
    answer = await stage.ask("balance", body, key="k")
    assert answer.status_code == 409
    assert without_request_id(answer) == snapshot(
        {
            "error": "In managed mode a balance can be lowered here and not raised: it is the service's money",
            "code": "managed_balance",
            "param": "amount",
            "hint": "Ask whoever runs the service to raise it",
        }
    )
    assert (line.balance, stage.sent(), await stage.charged()) == (FIVE, ["getSingleSubscriber"], 1)


async def test_a_repeated_call_is_not_judged_by_the_balance_of_now(stage: LineStage, line: Line) -> None:
    stage.world.sandbox.faults.add(NetworkFault("modifySubscriberBalance", drop_after=True))
    first = await stage.ask("balance", {"amount": 3, "mode": "set"}, key="k")
    assert (first.status_code, line.balance) == (502, 3_000_000)
    line.balance = 2_000_000  # a call was paid from it
    again = await stage.ask("balance", {"amount": 3, "mode": "set"}, key="k")
    assert (again.status_code, again.content, line.balance) == (502, first.content, 2_000_000)
    assert (await stage.ask("balance", {"amount": 3, "mode": "set"})).json()["code"] == "managed_balance"
    assert stage.sent().count("modifySubscriberBalance") == 1


async def test_a_stranger_s_balance_is_not_told_by_the_refusal(stage: LineStage) -> None:
    foreign = stage.in_status(8102)[0]
    answers = [await stage.ask("balance", {"amount": amount, "mode": "set"}, iccid=foreign.iccid) for amount in (0, 1_000_000)]
    assert [answer.status_code for answer in answers] == [404, 404]


@pytest.mark.rule("4.2.16")
async def test_the_service_s_own_organisation_raises_balances(stage: LineStage, line: Line) -> None:
    own = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=8101, service_own=True)
    async with stage.world.client(own.secret) as http:
        answer = await stage.ask("balance", {"amount": 2.5, "description": "Goodwill"}, http=http)
    assert (answer.status_code, line.balance) == (200, 7_500_000)
    row = stage.network.transactions[-1]
    assert (row.owner, row.owner_id, row.amount, row.description) == ("line", line.id, 2_500_000, "Goodwill")


async def test_a_balance_is_not_set_below_zero(stage: LineStage, line: Line) -> None:
    answer = await stage.ask("balance", {"amount": -0.01, "mode": "set"})
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "amount -0.01: a balance cannot be set below 0; use mode adapt to lower it",
    )
    assert (stage.sent(), line.balance) == ([], FIVE)
