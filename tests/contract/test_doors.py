"""HTTP and MCP decide alike: same status class, code and body, same cost, for the same explicit arguments."""

import re
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from registry.catalogue import AnyOperation
from registry.limits import Role, Tier
from tests.contract.stage import OPERATIONS, Answered, House, Input, Stage, key_for

pytestmark = pytest.mark.anyio
TOOLS = [o for o in OPERATIONS if o.tool]
MASKS = (
    (re.compile(r"\b([a-z]{2,4})_[0-9a-z]{26}\b"), r"\1_*"),
    (re.compile(r"\b8999\d{15}\b"), "8999*"),
    (re.compile(r"TEST(-[0-9A-Z]{4}){4}"), "TEST-*"),
    (re.compile(r"whsec_[A-Za-z0-9+/=]+"), "whsec_*"),
    (re.compile(r"ak_[A-Za-z0-9]{46}"), "ak_*"),
)
Vary = Callable[[AnyOperation, Input], Input]


def missing_resource(operation: AnyOperation, given: Input) -> Input:
    """Ids that nobody has."""
    return {name: re.sub(r"_[0-9a-z]{26}$", "_" + "0" * 26, value) if isinstance(value, str) else value for name, value in given.items()}


def wrong_values(operation: AnyOperation, given: Input) -> Input:
    """Every value breaks a rule, but for what stands in the path; a query can carry only texts."""
    inside = set(re.findall(r"\{(\w+)\}", operation.path))
    query = operation.method in ("GET", "DELETE")
    wrong = {name: ("y" * 300 if isinstance(value, str) else "x") if query else [[value]] for name, value in given.items()}
    return {name: given[name] if name in inside else value for name, value in wrong.items()}


VARIATIONS: dict[str, Vary] = {
    "as documented": lambda _, given: given,
    "unknown field": lambda _, given: {**given, "surprise": "x"},
    "missing resource": missing_resource,
    "wrong values": wrong_values,
}
CALLERS = {"admin": (Tier.ENTERPRISE, Role.ADMIN), "free": (Tier.FREE, Role.MEMBER)}


def normal(said: Answered) -> Any:
    """The body without what differs between any two calls."""
    text = orjson.dumps(said.body).decode()
    for pattern, shown in MASKS:
        text = pattern.sub(shown, text)
    return orjson.loads(text)


async def both(house: House, operation: AnyOperation, vary: Vary, stages: list[Stage], key: bool = True) -> list[tuple[Answered, int]]:
    """The same call over HTTP in one of two equal organisations, and over MCP in the other."""
    results: list[tuple[Answered, int]] = []
    for stage, door in zip(stages, (house.http, house.mcp), strict=True):
        before = await house.charged(stage.who.organisation)
        given = vary(operation, stage.fitted(operation, operation.examples[0].input))
        said = await door(operation, stage.who.secret, given, key=key_for(operation) if key else None)
        results.append((said, await house.charged(stage.who.organisation) - before))
    return results


def alike(results: list[tuple[Answered, int]]) -> None:
    (http, http_cost), (mcp, mcp_cost) = results
    assert (http.status >= 400) == (mcp.status >= 400), (http.body, mcp.body)
    assert normal(http) == normal(mcp)
    assert http_cost == mcp_cost


@pytest.mark.rule("1.4")
@pytest.mark.parametrize("operation", [pytest.param(o, id=o.id) for o in TOOLS])
async def test_both_doors_give_the_same_answer_at_the_same_cost(house: House, operation: AnyOperation) -> None:
    for caller in CALLERS.values():
        admin = caller[0] is Tier.ENTERPRISE
        stages = [await house.stage(*caller) for _ in range(2)]
        if not admin:
            for stage in stages:
                stage.ids.setdefault("cnp", "cnp_" + "0" * 26)
        for vary in VARIATIONS.values():
            alike(await both(house, operation, vary, stages))
        if operation.once is not None and operation.once.required:
            alike(await both(house, operation, VARIATIONS["as documented"], stages, key=False))


@pytest.mark.parametrize("operation", [pytest.param(o, id=o.id) for o in TOOLS if o.once is not None])
async def test_a_key_used_at_one_door_is_replayed_at_the_other(house: House, operation: AnyOperation) -> None:
    stage = await house.stage()
    given = stage.fitted(operation, operation.examples[0].input)
    first = await house.http(operation, stage.who.secret, given, key="shared")
    before = await house.charged(stage.who.organisation)
    again = await house.mcp(operation, stage.who.secret, given, key="shared")
    assert again.body == first.body
    assert await house.charged(stage.who.organisation) == before


def test_exactly_the_bearer_operations_marked_so_are_tools() -> None:
    assert len(TOOLS) == 20
