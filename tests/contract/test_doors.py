"""HTTP and MCP decide alike: same status class, code and body, same cost, for the same explicit arguments."""

import re
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from registry.caller import Role, Tier
from registry.catalogue import AnyOperation
from tests.contract.fleet import UNKNOWN_ICCID, UNKNOWN_ID, writes
from tests.contract.stage import NEVER, OPERATIONS, Answered, ContractStage, Input, ServiceHouse, key_for
from tests.contract.test_rows import SPEC_ROWS
from tests.draw import drawn

TOOLS = [o for o in OPERATIONS if o.tool]
KEYED_TOOLS = [pytest.param(o, id=o.id) for o in TOOLS if o.once is not None and o.id not in NEVER]
PAGED = [pytest.param(o, id=o.id) for o in OPERATIONS if "starting_after" in o.params.model_fields]
MASKS = (
    (re.compile(r"\b([a-z]{2,4})_[0-9a-z]{26}\b"), r"\1_*"),
    (re.compile(r"\b8999\d{15}\b"), "8999*"),
    (re.compile(r"TEST(-[0-9A-Z]{4}){4}"), "TEST-*"),
    (re.compile(r"whsec_[A-Za-z0-9+/=]+"), "whsec_*"),
    (re.compile(r"ak_[A-Za-z0-9]{46}"), "ak_*"),
    (re.compile(r'"confirm_token":"[^"]+"'), '"confirm_token":"*"'),
)
Vary = Callable[[AnyOperation, Input], Input]


def missing_resource(operation: AnyOperation, given: Input) -> Input:
    return {name: nowhere(name, value) for name, value in given.items()}


def nowhere(name: str, value: object) -> object:
    """What nobody has instead of what somebody has."""
    if name in ("iccid", "rangeStart", "rangeEnd"):
        return UNKNOWN_ICCID
    if name.endswith("Id") or name == "destAccount":
        return UNKNOWN_ID
    return re.sub(r"_[0-9a-z]{26}$", "_" + "0" * 26, value) if isinstance(value, str) else value


def wrong_values(operation: AnyOperation, given: Input) -> Input:
    """Every value breaks a rule, but for what stands in the path; a query can carry only texts."""
    inside = set(re.findall(r"\{(\w+)\}", operation.path))
    query = operation.method in ("GET", "DELETE")
    wrong = {name: unreadable(value) if query else [[value]] for name, value in given.items()}
    return {name: given[name] if name in inside else value for name, value in wrong.items()}


def unreadable(value: object) -> object:
    """A text that is too long, or none of what is asked for; where several are, one of them."""
    return ["y" * 300] if isinstance(value, list) else "y" * 300 if isinstance(value, str) else "x"


VARIATIONS: dict[str, Vary] = {
    "as documented": lambda _, given: given,
    "unknown field": lambda _, given: {**given, "surprise": "x"},
    "missing resource": missing_resource,
    "wrong values": wrong_values,
}
KEY_NAME = re.compile(r"^(X-)?Idempotency-Key:|^idempotency_key:")
CALLERS = {"admin": (Tier.ENTERPRISE, Role.ADMIN), "free": (Tier.FREE, Role.MEMBER)}


def normal(said: Answered) -> Any:
    """The body without what differs between any two calls; how a challenge is met, and what the key is called, each door says its way."""
    body = {name: value for name, value in said.body.items() if name != "hint" or "confirm_token" not in said.body}
    if body.get("code") == "idempotency_key_required":
        body["error"] = KEY_NAME.sub("<key>:", str(body["error"]))
    text = orjson.dumps(body).decode()
    for pattern, shown in MASKS:
        text = pattern.sub(shown, text)
    return orjson.loads(text)


async def both(
    houses: list[ServiceHouse], operation: AnyOperation, vary: Vary, stages: list[ContractStage], *, key: str | None, sure: bool = False
) -> list[tuple[Answered, int]]:
    """The same call over HTTP by one of two equal organisations, each in a world of its own, and over MCP by the other."""
    results: list[tuple[Answered, int]] = []
    doors = houses[0].http, houses[1].mcp
    for house, stage, door in zip(houses, stages, doors, strict=True):
        before = await house.charged(stage.who.organisation)
        # What a tool call leaves out, its door may fill in: arguments are explicit here.
        example = {**operation.tool_defaults, **operation.examples[0].input}
        given = vary(operation, stage.fitted(operation, example))
        said = await door(operation, stage.who.secret, given, key=key, sure=sure)
        results.append((said, await house.charged(stage.who.organisation) - before))
    return results


def alike(results: list[tuple[Answered, int]]) -> None:
    (http, http_cost), (mcp, mcp_cost) = results
    assert (http.status >= 400) == (mcp.status >= 400), (http.body, mcp.body)
    assert normal(http) == normal(mcp)
    assert http_cost == mcp_cost


@pytest.mark.rule("1.4")
@pytest.mark.parametrize("operation", drawn([pytest.param(o, id=o.id) for o in TOOLS], __file__))
async def test_both_doors_give_the_same_answer_at_the_same_cost(house: ServiceHouse, twin: ServiceHouse, operation: AnyOperation) -> None:
    houses, key = [house, twin], key_for(operation)
    for tier, role in CALLERS.values():
        stages = [await each.stage(operation, tier, role) for each in houses]
        for stage in stages:
            stage.ids.setdefault("cnp", "cnp_" + "0" * 26)
        # What a member of a free organisation sends is looked at as an admin's is, or not at all.
        for vary in VARIATIONS.values() if role is Role.ADMIN else (VARIATIONS["as documented"],):
            alike(await both(houses, operation, vary, stages, key=key))
        if operation.confirm:
            alike(await both(houses, operation, VARIATIONS["as documented"], stages, key=key, sure=True))
        if operation.once is not None and operation.once.required:
            alike(await both(houses, operation, VARIATIONS["as documented"], stages, key=None))
        assert sorted(stages[0].asked()) == sorted(stages[1].asked())  # what is read at once is read in any order


@pytest.mark.parametrize("operation", drawn(KEYED_TOOLS, __file__))
async def test_a_key_used_at_one_door_is_replayed_at_the_other(house: ServiceHouse, operation: AnyOperation) -> None:
    for first_door, second_door in ((house.http, house.mcp), (house.mcp, house.http)):
        stage = await house.stage(operation)
        given = stage.fitted(operation, operation.examples[0].input)
        first = await first_door(operation, stage.who.secret, given, key="shared", sure=True)
        before, asked = await house.charged(stage.who.organisation), len(stage.asked())
        again = await second_door(operation, stage.who.secret, given, key='"shared"')  # in quotes it is the same key
        assert again.body == first.body
        assert await house.charged(stage.who.organisation) == before
        assert writes(stage.asked(asked)) == []


@pytest.mark.parametrize("operation", drawn(PAGED, __file__))
async def test_an_empty_cursor_is_no_cursor_at_either_door(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    secret = house.credential(operation, stage)
    for door in (house.http, house.mcp) if operation.tool else (house.http,):
        first = await door(operation, secret, given)
        again = await door(operation, secret, given | {"starting_after": ""})
        assert first.status == again.status == 200, again.body
        assert operation.id == "list_audit_log" or again.body == first.body  # it tells of the first call


def test_exactly_the_bearer_operations_marked_so_are_tools() -> None:
    marked = {row.id for row in SPEC_ROWS.values() if row.mcp == "yes"}
    assert {o.id for o in TOOLS} & SPEC_ROWS.keys() == marked & {o.id for o in OPERATIONS}
