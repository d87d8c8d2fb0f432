"""Days of agents that try to do more than their keys may: `python -m tests.limits.agent_days --count 10000`.

Each day has a key with limits, children of it, both doors, parallel calls, replays, confirmations and a midnight. What was really done is
read from the simulated network and compared with the worst case that was shown when the key was made.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import orjson
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.clock import DAY_SECONDS
from registry.spending import spend_month
from tests.mcp.house import request
from tests.network_facts import ACCOUNT, TEMPLATE
from tests.stage import OperatorStage, open_operator

MICROS_PER_CENT = 10_000
PACKAGE_COSTS = (4_503_000, 1_000_000, 101_000)
"""Of the templates, in micro-euros; a call makes 4.51, 1.00 and 0.11 euros due."""
REACHED = 0.8
MOST_STEPS = 40
DONE = (200, 201)
CONFIRMED = ("delete", "account")


class Act(NamedTuple):
    """What an agent does: which act, for how many cents, how often at once, at which door, as whom, and whether it says so again."""

    kind: str
    cents: int
    at_once: int
    tool: bool
    child: int
    again: bool


ACTS = st.builds(
    Act,
    st.sampled_from(["raise", "lower", "account", "assign", "issue", "delete", "status"]),
    st.integers(0, 3000),
    st.sampled_from([1, 1, 1, 2, 5]),
    st.booleans(),
    st.integers(0, 2),
    st.booleans(),
)
AMOUNTS = st.sampled_from([0, 1, 99, 450, 451, 902, 1000, 2000, 5000])


def money(cents: int) -> dict[str, object]:
    return {"amount": cents, "currency": "EUR"}


RESTRICTIONS = st.fixed_dictionaries(
    {"calls_per_day": st.integers(8, 25), "spend_per_day": AMOUNTS.map(money)},
    optional={
        "spend_per_call": AMOUNTS.map(money),
        "spend_per_month": AMOUNTS.map(money),
        "times": st.dictionaries(
            st.sampled_from(["modify_subscriber_balance", "assign_package", "issue_esim_from_inventory", "delete_subscriber_package"]),
            st.integers(0, 6),
            min_size=1,
        ),
        "toolsets": st.just(["subscribers", "setup"]),
    },
)


class AgentDay(NamedTuple):
    """A key, what keys made with it are held to beside, and what is tried before and after a midnight."""

    restrictions: dict[str, Any]
    children: list[dict[str, Any]]
    before: list[Act]
    after: list[Act]
    midnight: bool


DAYS = st.builds(
    AgentDay,
    RESTRICTIONS,
    st.lists(st.fixed_dictionaries({}, optional={"spend_per_day": AMOUNTS.map(money)}), max_size=2),
    st.lists(ACTS, max_size=6),
    st.lists(ACTS, max_size=6),
    st.sampled_from([False, False, False, True]),  # a day of the network's time is long
)


class Done(NamedTuple):
    """What was really done so far: micro-euros, lines from the stock, packages deleted."""

    micros: int
    lines: int
    deleted: int

    def since(self, before: "Done") -> "Done":
        return Done(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass(slots=True)
class AgentStage(OperatorStage):
    """An operator whose lines have packages, and a count of agents."""

    templates: list[int] = field(default_factory=list[int])
    keys: int = 0
    reached: list[float] = field(default_factory=list[float])
    bought: dict[int, int] = field(default_factory=dict[int, int])
    """What each package cost that was ever there: one that is deleted was paid for all the same."""

    def look_at_packages(self) -> None:
        self.bought |= {each.id: each.cost for each in self.network.packages.values() if each.series_id is None}

    def done(self) -> Done:
        network = self.network
        self.look_at_packages()
        packages = sum(self.bought.values())
        moved = sum(abs(each.amount) for each in network.transactions if not each.description.startswith("Usage"))
        drawn = sum(line.sim.status != "FREE" for line in network.lines.values())
        return Done(packages + moved, drawn, self.asked("deleteSubscriberPackage"))

    async def mint(self, restrictions: dict[str, Any]) -> dict[str, Any]:
        """A key of the operator's with these restrictions, and its worst case."""
        async with self.world.client(self.who.secret) as http:
            made = await http.post("/v1/api-keys", json={"name": "agent", "restrictions": restrictions})
        assert made.status_code == 201, made.text
        return made.json()

    async def child(self, secret: str, restrictions: dict[str, Any]) -> str | None:
        """The secret of a key made with another one; None where that has no calls left."""
        async with self.world.client(secret) as http:
            made = await http.post("/v1/api-keys", json={"name": "child", **({"restrictions": restrictions} if restrictions else {})})
        return made.json().get("secret")

    def key(self) -> str:
        self.keys += 1
        return f"agent-{self.keys}"


CALLS: dict[str, tuple[str, str, Callable[[str, int], str], Callable[[int], dict[str, Any]]]] = {
    "raise": ("PUT", "modify_subscriber_balance", lambda line, _: f"/v1/subscribers/{line}/balance", lambda c: {"amount": c / 100}),
    "lower": ("PUT", "modify_subscriber_balance", lambda line, _: f"/v1/subscribers/{line}/balance", lambda c: {"amount": -c / 100}),
    "account": ("PUT", "modify_account_balance", lambda *_: f"/v1/accounts/{ACCOUNT}/balance", lambda c: {"amount": c / 100}),
    "assign": ("POST", "assign_package", lambda line, _: f"/v1/subscribers/{line}/packages", lambda _: {}),
    "issue": (
        "POST",
        "issue_esim_from_inventory",
        lambda *_: "/v1/subscribers/issue-from-inventory",
        lambda _: {"accountId": ACCOUNT},
    ),
    "delete": ("DELETE", "delete_subscriber_package", lambda line, n: f"/v1/subscribers/{line}/packages/{n}", lambda _: {}),
    "status": ("PUT", "modify_subscriber_status", lambda line, _: f"/v1/subscribers/{line}/status", lambda _: {"status": "SUSPENDED"}),
}


def input_of(stage: AgentStage, act: Act) -> dict[str, Any]:
    template = {"packageTemplateId": stage.templates[act.cents % len(stage.templates)]} if act.kind in ("assign", "issue") else {}
    return {**CALLS[act.kind][3](act.cents), **template}


async def act_at_http(stage: AgentStage, secret: str, act: Act, line: str, package: int, key: str) -> int:
    """The status; a challenge is confirmed at once."""
    method, operation, path, _ = CALLS[act.kind]
    name = "X-Idempotency-Key" if operation == "issue_esim_from_inventory" else "Idempotency-Key"
    async with stage.world.client(secret) as http:
        given: dict[str, Any] = {"json": input_of(stage, act)} if method != "DELETE" else {}
        said: httpx.Response = await http.request(method, path(line, package), headers={name: key}, **given)
        token = said.json().get("confirm_token") if said.status_code == 202 else None
        if token is not None:
            said = await http.request(method, path(line, package), headers={name: key, "X-Confirm-Token": token}, **given)
    return said.status_code


async def act_as_tool(stage: AgentStage, secret: str, act: Act, line: str, key: str) -> int:
    """200 or, for any error, 400."""
    operation = CALLS[act.kind][1]
    iccid = {} if act.kind == "issue" else {"iccid": line}
    arguments = {**input_of(stage, act), **iccid, "idempotency_key": key}
    said = await stage.house.post(request("tools/call", name=operation, arguments=arguments), secret=secret, path="/mcp?toolsets=all")
    result = orjson.loads(said.content).get("result", {"isError": True})
    return 400 if result.get("isError") else 200


async def do(stage: AgentStage, secrets: list[str], act: Act) -> int:
    """How many of the calls at once were carried out."""
    secret = secrets[act.child % len(secrets)]
    line = next(each for each in stage.lines() if each.sim.status != "FREE")
    package = next((each.id for each in stage.network.packages.values() if each.line_id == line.id), 1)
    went: list[int] = []

    async def one(key: str) -> None:
        at_tool = act.tool and act.kind not in CONFIRMED
        if at_tool:
            went.append(await act_as_tool(stage, secret, act, line.iccid, key))
        else:
            went.append(await act_at_http(stage, secret, act, line.iccid, package, key))

    keys = [stage.key() for _ in range(act.at_once)]
    async with anyio.create_task_group() as group:
        for key in keys + (keys[:1] if act.again else []):
            group.start_soon(one, key)
    stage.look_at_packages()
    return sum(status in DONE for status in went)


async def spend_greedily(stage: AgentStage, secret: str, day: AgentDay) -> None:
    """As much money as the key lets through: the largest amount first, then what is left by halves."""
    amounts = [each["amount"] for name, each in day.restrictions.items() if name.startswith("spend_")]
    steps = 0
    for kind in ("raise", "account"):
        cents = min(amounts)
        while cents >= 1 and steps < MOST_STEPS:
            steps += 1
            if not await do(stage, [secret], Act(kind, cents, 1, False, 0, False)):
                cents //= 2
    for kind in ("assign", "issue"):
        for template in range(len(PACKAGE_COSTS)):
            while steps < MOST_STEPS and await do(stage, [secret], Act(kind, template, 1, False, 0, False)):
                steps += 1


def hold_to(worst: dict[str, Any], done: Done, what: object) -> None:
    """Nothing that was done in a UTC day is more than the worst case that was shown."""
    assert worst["money_a_day"] is not None and done.micros <= worst["money_a_day"]["amount"] * MICROS_PER_CENT, (what, done, worst)
    assert worst["lines"] is None or done.lines <= worst["lines"], (what, done, worst)
    times = {each["operation"]: each["times"] for each in worst["cannot_be_undone"]}
    most = times.get("delete_subscriber_package", 0)
    assert most is None or done.deleted <= most, (what, done, worst)


async def live_a_day(stage: AgentStage, day: AgentDay) -> None:
    """One day with the midnight behind it; what was done on each side is held to the worst case of a day, both together to a month's."""
    clock = stage.world.clock
    made = await stage.mint(day.restrictions)
    worst = made["worst_case"]
    began, month = stage.done(), spend_month(clock.now())
    await spend_greedily(stage, made["secret"], day)
    secrets = [made["secret"], *[each for asked in day.children if (each := await stage.child(made["secret"], asked))]]
    for act in day.before:
        await do(stage, secrets, act)
    first = stage.done().since(began)
    hold_to(worst, first, day)
    if worst["finite"] and worst["money_a_day"]["amount"]:
        stage.reached.append(first.micros / MICROS_PER_CENT / worst["money_a_day"]["amount"])
    if not day.midnight:
        return
    clock.advance(DAY_SECONDS - clock.now() % DAY_SECONDS)
    for act in day.after:
        await do(stage, secrets, act)
    whole = stage.done().since(began)
    hold_to(worst, whole.since(first), day)
    if month == spend_month(clock.now()):
        assert whole.micros <= worst["money_a_month"]["amount"] * MICROS_PER_CENT, (day, whole, worst)


def hold_agent_days(count: int) -> list[float]:
    """Lives `count` days that hypothesis makes up; returns which share of its worst case each agent with finite limits has reached."""
    with tempfile.TemporaryDirectory() as folder, start_blocking_portal() as portal:
        opened = open_operator(Path(folder), CATALOGUE, AgentStage, tier=Tier.ENTERPRISE)
        with portal.wrap_async_context_manager(opened) as stage:
            portal.call(furnish, stage)

            @settings(max_examples=count, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
            @given(DAYS)
            def hold(day: AgentDay) -> None:
                portal.call(live_a_day, stage, day)

            hold()
            return stage.reached


async def furnish(stage: AgentStage) -> None:
    """The operator may raise balances, and packages of the template cost money."""
    network = stage.network
    first = network.templates[TEMPLATE]
    alike = [each for each in network.templates.values() if (each.reseller_id, each.sponsor_id) == (first.reseller_id, first.sponsor_id)]
    templates = sorted((each for each in alike if not (each.recurring or each.deleted)), key=lambda each: each.id != first.id)
    for template, cost in zip(templates, PACKAGE_COSTS, strict=False):
        template.cost = cost
        stage.templates.append(template.id)
    owner = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT, service_own=True)
    stage.who = owner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many days")
    count = parser.parse_args().count
    reached = hold_agent_days(count)
    near = sum(share >= REACHED for share in reached)
    sys.stdout.write(
        f"{count} days, none above its worst case; {near} of {len(reached)} agents with finite limits reached {REACHED:.0%} of it\n"
    )


if __name__ == "__main__":
    main()
