"""What every operation answers in every situation, at both doors, as one table: docs/outcomes.md."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth
from simulators.network.faults import NetworkFault
from tests.contract.fleet import ALPINE_TOKEN, writes
from tests.contract.stage import NEVER, Answered, ContractStage, Input, ServiceHouse, key_for

OUTCOMES_PAGE = Path(__file__).resolve().parents[2] / "docs" / "outcomes.md"
OUTCOMES_COMMAND = "UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_outcomes.py"
REFUSAL, TRAFFIC_LIMIT = 14, 100
LENIENT = {"receive_bridge4ip_webhook", "observe_connectivity_event", "operator_billing_payments_webhook"}
"""Notifications: what newer senders add to them is skipped, and what is odd in them is not believed."""


class Cell(NamedTuple):
    """One answer: over HTTP, and whether the tool says the same; or why there is none."""

    text: str
    alike: bool = True


NO_IDS, NO_KEY = Cell("n/a (names nothing)"), Cell("n/a (a read)")
NO_TENANT, NO_UPSTREAM, UNKEYED = Cell("n/a (no tenant)"), Cell("n/a (no upstream)"), Cell("n/a (no key)")


class Case(NamedTuple):
    house: ServiceHouse
    operation: AnyOperation
    tool: bool
    method: str | None
    """What the operation is about upstream: its write, or the last it reads."""
    own: ContractStage
    """Where the documented call is made, and before it what is refused: a refusal changes nothing."""
    troubled: ContractStage | None = None
    """Where the network refuses: what it refuses stays as it was."""
    key: str = "outcomes"

    def given(self, stage: ContractStage) -> Input:
        """The documented input."""
        return stage.fitted(self.operation, self.operation.examples[0].input)

    async def stage(self, tier: Tier = Tier.ENTERPRISE, *, connected: bool = True) -> tuple[ContractStage, Input]:
        """A fresh organisation in a fresh network, and the documented input for it."""
        stage = await fresh(self.house, self.operation, tier, connected=connected)
        return stage, self.given(stage)

    async def ask(self, stage: ContractStage, given: Input, *, secret: str | None = None) -> Answered:
        """The call, with both of its steps where there are two."""
        door = self.house.mcp if self.tool else self.house.http
        credential = secret or self.house.credential(self.operation, stage)
        return await door(self.operation, credential, given, key=key_for(self.operation, self.key), sure=True)


async def fresh(house: ServiceHouse, operation: AnyOperation, tier: Tier = Tier.ENTERPRISE, *, connected: bool = True) -> ContractStage:
    """A new organisation in a new network; of those before it nothing is remembered."""
    house.world.pipeline.deps.reads.forget()
    stage = await house.stage(operation, tier, connected=connected)
    stage.ids.setdefault("cnp", "cnp_" + "0" * 26)
    return stage


async def valid(case: Case) -> Answered:
    return await case.ask(case.own, case.given(case.own))


async def bad_input(case: Case) -> Answered:
    stage = await fresh(case.house, case.operation) if case.operation.id in LENIENT else case.own
    return await case.ask(stage, {**case.given(stage), "surprise": "x"})


async def foreign_tenant(case: Case) -> Answered | Cell:
    if case.operation.auth not in (Auth.BEARER, Auth.SESSION):
        return NO_TENANT
    given = case.given(case.own)
    if not given or case.operation.id in NAMELESS or case.operation.auth is Auth.SESSION:
        return NO_IDS
    stranger = await case.house.world.caller(Tier.ENTERPRISE, token=ALPINE_TOKEN.value)
    return await case.ask(case.own, given, secret=stranger.secret)


async def unconnected(case: Case) -> Answered | Cell:
    if case.operation.auth not in (Auth.BEARER, Auth.SESSION):
        return NO_TENANT
    return await case.ask(*await case.stage(connected=False))


async def free_tier(case: Case) -> Answered | Cell:
    if case.operation.auth not in (Auth.BEARER, Auth.SESSION):
        return NO_TENANT
    return await case.ask(*await case.stage(Tier.FREE))


async def refused_upstream(case: Case) -> Answered | Cell:
    return await troubled(case, lambda method: NetworkFault(method, code=REFUSAL, times=None))


async def timed_out(case: Case) -> Answered | Cell:
    # Such a write has an unknown outcome: whoever asks next asks on another stage.
    return await troubled(case._replace(troubled=None), lambda method: NetworkFault(method, delay=60.0, times=None))


async def limited_upstream(case: Case) -> Answered | Cell:
    return await troubled(case, lambda method: NetworkFault(method, code=TRAFFIC_LIMIT, times=None))


async def troubled(case: Case, fault: Callable[[str], NetworkFault]) -> Answered | Cell:
    """The call when its own method upstream is in trouble; what is looked up before it is not."""
    if case.method is None:
        return NO_UPSTREAM
    stage = case.troubled or await fresh(case.house, case.operation)
    case.house.world.pipeline.deps.reads.forget()
    stage.sandbox.faults.clear()
    stage.sandbox.faults.add(fault(case.method))
    return await case.ask(stage, case.given(stage))


async def replay(case: Case) -> Answered | Cell:
    if case.operation.once is None:
        return NO_KEY if case.operation.read_only else UNKEYED
    asked = len(case.own.asked())
    again = await case.ask(case.own, case.given(case.own))  # once more what `valid` asked
    assert writes(case.own.asked(asked)) == []
    return again


# What is in trouble upstream is asked of tools as well. That a tool says the same of the others is what other tests of this folder prove
# for every operation. test_doors: a valid call, bad input and a replay. test_identities: a foreign tenant and the free tier.
# test_unconnected: no connection.
SITUATIONS: dict[str, Callable[[Case], Awaitable[Answered | Cell]]] = {
    "valid": valid,
    "bad input": bad_input,
    "foreign tenant": foreign_tenant,
    "unconnected": unconnected,
    "free tier": free_tier,
    "upstream refuses (14)": refused_upstream,
    "upstream times out": timed_out,
    "upstream limit (100)": limited_upstream,
    "replay": replay,
}
# Their inputs are new things, search terms, countries and notes: nothing that another organisation could own.
NAMELESS = {
    "list_connectivity_plans",
    "create_connectivity_intent",
    "create_connectivity_product",
    "create_connectivity_webhook_endpoint",
    "create_api_key",
    "list_subscribers",
    "list_package_templates",
    "list_location_zones",
    "list_detailed_location_zones",
    "plan_network_default",
    "get_subscriber_notes",
    "add_subscriber_note",
    "put_subscriber_notes",
    "onboarding_save_org",
    "onboarding_connect_ocs_token",
    "invite_member",
    "list_audit_log",
    "ingest_cdr_events",
    "aggregate_cdr",
    "list_invoices",
    "update_billing_config",
    "operator_billing_update_payout_schedule",
    "operator_billing_create_manual_payout",
    "operator_billing_list_charges",
    "operator_billing_list_refunds",
    "operator_billing_list_disputes",
    "operator_billing_list_payouts",
    "operator_billing_list_fees",
    "operator_billing_list_fraud_reviews",
    "operator_billing_list_value_lists",
    "operator_identity_create_session",
    "operator_create_promotion",
    "operator_list_promotions",
    "list_storefront_orders",
    "create_storefront",
    "create_intelligence_schedule",
    "marketing_intelligence",
    "audit_network_coverage",
    "churn_risk",
    "detect_usage_anomalies",
    "high_cost_subscribers",
    "optimize_package",
    "ai_chat",
    *NEVER,
}


def code_of(said: Answered) -> str:
    """The refusal's code, with the network's own."""
    body = said.body if isinstance(said.body, dict) else {}
    if "code" not in body or "error" not in body:
        return ""
    return body["code"] + (f" ({body['ocs_code']})" if "ocs_code" in body else "")


async def row(house: ServiceHouse, operation: AnyOperation) -> dict[str, Cell]:
    """What is refused comes before the documented call, and its replay after it: one stage is enough for these."""
    case = Case(house, operation, False, None, await fresh(house, operation))
    before = [] if operation.id in LENIENT else [bad_input]  # what is done after all is done on a stage of its own, later
    made: dict[Callable[[Case], Awaitable[Answered | Cell]], Cell] = {make: await cell([case], make) for make in (*before, foreign_tenant)}
    asked = len(case.own.asked())
    made[valid] = await cell([case], valid)
    asked = case.own.asked(asked)
    made[replay] = await cell([case], replay)
    # From here on there are other stages, and the network is that of the last one.
    case = case._replace(method=next(iter([*writes(asked), *reversed(asked)]), None))
    made |= {make: await cell([case], make) for make in (bad_input, unconnected, free_tier) if make not in made}
    if case.method is not None:
        case = case._replace(troubled=await fresh(house, operation))
    for make in (refused_upstream, limited_upstream, timed_out):
        doors = [case._replace(key=f"http-{make.__name__}"), case._replace(key=f"tool-{make.__name__}", tool=True)]
        made[make] = await cell(doors[: 2 if operation.tool else 1], make)
        if made[make].text < "3":  # it was done after all
            case = case._replace(troubled=None)
    return {name: made[make] for name, make in SITUATIONS.items()}


async def cell(doors: list[Case], make: Callable[[Case], Awaitable[Answered | Cell]]) -> Cell:
    """HTTP says the status, and the tool has to say the same code."""
    said: list[Answered] = []
    for door in doors:
        found = await make(door)
        if isinstance(found, Cell):
            return found
        said.append(found)
    alike = {(answer.status >= 400, code_of(answer)) for answer in said}
    return Cell(f"{said[0].status} {code_of(said[0])}".strip(), len(alike) == 1)


def committed_rows() -> dict[str, dict[str, str]]:
    """The cells of the committed table, by operation and situation."""
    lines = [line for line in OUTCOMES_PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [[text.strip(" `") if place == 0 else text.strip() for place, text in enumerate(line.split("|")[1:-1])] for line in lines]
    return {id: dict(zip(SITUATIONS, found, strict=True)) for id, _doors, *found in cells}


def outcomes_page(rows: dict[str, dict[str, str]], doors: dict[str, str]) -> str:
    head = ["operation", "doors", *SITUATIONS]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| `{id}` | {doors[id]} | {' | '.join(cells[name] for name in SITUATIONS)} |" for id, cells in rows.items()]
    return INTRODUCTION + "\n".join(lines) + "\n"


INTRODUCTION = f"""# Outcomes

What every operation answers in every situation: HTTP status and `code`, with the charging system's own code in parentheses.
Where both doors are open the tool answers with the same code, as a result with `isError` from 400 on.
Each answer was given by the service itself: `{OUTCOMES_COMMAND}` writes this file anew, and a test fails when it is not up to date.

- **bad input**: an unknown field.
- **foreign tenant**: an organisation of another reseller names what this one has.
- **unconnected**: the organisation has no account at the charging system.
- **free tier**: the organisation's tier is free.
- **upstream ...**: the charging system refuses the operation's own method with code 14 or 100, or answers too late. A write that was
  answered too late has an unknown outcome: its key is kept, and it is never made again by itself.
  A report about a whole fleet is of what could be read: where its own method is only a part of that, it answers 200 and names in
  `incomplete` what is missing.
- **replay**: the same call with the same key once more.
- **n/a**: the situation cannot arise. *names nothing*: the input holds no id of anybody's. *no tenant*: the caller is no organisation.
  *no upstream*: nothing is asked of the charging system. *a read*, *no key*: the operation takes no idempotency key.

"""
