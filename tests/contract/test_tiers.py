"""What each tier and role carries: operations of every kind, called by each, at both doors.

That every operation answers each of them as its declaration says is what tests/contract/test_identities.py proves.
"""

import pytest

from registry.caller import Role, Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth, Scope
from tests.contract.connections import REPLACING
from tests.contract.stage import OPERATIONS, Answered, ServiceHouse, key_for
from tests.draw import drawn


def kind(operation: AnyOperation) -> tuple[object, ...]:
    """What a declaration says of who may call it, and whether it is a tool; only a person signed in is told apart by nothing else."""
    told = operation.id if operation.auth is Auth.SESSION else operation.id in REPLACING
    return operation.scope, operation.role, operation.auth, operation.organisation, operation.tool, operation.read_only, told


ASKED = {kind(o): pytest.param(o, id=o.id) for o in OPERATIONS if o.auth in (Auth.BEARER, Auth.SESSION) and o.id != "decide_approval"}
MEMBERS = {
    "free": (Tier.FREE, Role.ADMIN),
    "pro": (Tier.PRO, Role.ADMIN),
    "enterprise member": (Tier.ENTERPRISE, Role.MEMBER),
    "enterprise admin": (Tier.ENTERPRISE, Role.ADMIN),
}
# Who may do what, in the words of the specification and not of the code that decides it (rules 5.2 of tests/spec/rules.tsv).
CARRIED = {
    Scope.NONE: set(MEMBERS),
    Scope.READ: set(MEMBERS),
    Scope.ANY: set(MEMBERS),
    Scope.WRITE: {"pro", "enterprise member", "enterprise admin"},
    Scope.ADMIN: {"enterprise admin"},
}
NEEDED = {Scope.WRITE: "pro", Scope.ADMIN: "enterprise"}


@pytest.mark.rule("5.2.1")
@pytest.mark.rule("5.2.2")
@pytest.mark.parametrize("operation", drawn(ASKED.values(), __file__))
async def test_a_tier_carries_exactly_its_scopes(house: ServiceHouse, operation: AnyOperation) -> None:
    for who, (tier, role) in MEMBERS.items():
        stage = await house.stage(operation, tier, role)
        stage.ids.setdefault("cnp", "cnp_" + "0" * 26)
        given, secret = stage.fitted(operation, operation.examples[0].input), house.credential(operation, stage)
        said: list[Answered] = [await house.http(operation, secret, given, key=key_for(operation, "http"))]
        if operation.tool:
            said.append(await house.mcp(operation, secret, given, key=key_for(operation, "mcp")))
        for answer in said:
            if (operation.role is Role.ADMIN or operation.id in REPLACING) and role is Role.MEMBER:
                assert answer.body["code"] == "role_required", (who, answer.body)
                continue
            if who in CARRIED[operation.scope]:
                assert answer.status not in (401, 402, 403) and "required_tier" not in (answer.body or {}), (who, answer.body)
                continue
            assert (answer.body["code"], answer.body["required_tier"]) == ("upgrade_required", NEEDED[operation.scope]), (who, answer.body)
            assert set(answer.body) == {"error", "code", "request_id", "required_tier", "upgrade_url"}
        if who not in CARRIED[operation.scope]:
            assert (said[0].status, stage.asked()) == (402, [])
