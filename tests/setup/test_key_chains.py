"""For any chain of keys made with keys: nothing that a key may call was more than what its maker may call."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.catalogue import CATALOGUE
from operations.setup.credentials.restrictions import KeyRestrictions, effective_restrictions
from registry.binding import Binding
from registry.caller import UNRESTRICTED, Caller, Restrictions, Role, Tier
from registry.errors import BadRequest, Restricted
from registry.operation import Auth
from registry.policy import require_role
from registry.restrictions import check_line_account, check_restricted_input, check_restricted_operation
from storage.api_keys import read_restrictions, write_restrictions
from storage.directory import restricted_caller, scopes_left
from tests.contract.stage import ServiceHouse

LINES = ["8988303700000100286", "8988303700000100294", "8988303700000100302"]
ACCOUNTS = [8101, 8102, 8201]
NAMES = tuple(CATALOGUE.names())
BEARER = [o for o in CATALOGUE.operations.values() if o.auth is Auth.BEARER]


def some(values: list[Any]) -> st.SearchStrategy[list[Any] | None]:
    return st.none() | st.lists(st.sampled_from(values), min_size=1, max_size=3)


ASKED = st.fixed_dictionaries(
    {},
    optional={
        "read_only": st.booleans(),
        "toolsets": some([*NAMES]),
        "iccids": some(LINES),
        "account_ids": some(ACCOUNTS),
        "calls_per_day": st.none() | st.integers(1, 20),
    },
)
HELD = st.builds(
    Restrictions,
    read_only=st.booleans(),
    no_admin=st.booleans(),
    toolsets=some([*NAMES]).map(lambda names: None if names is None else tuple(names)),
    iccids=some(LINES).map(lambda names: None if names is None else tuple(names)),
    account_ids=some(ACCOUNTS).map(lambda names: None if names is None else tuple(names)),
    calls_per_day=st.none() | st.integers(1, 20),
)
# Inputs of operations on a line, on an account, on two, and on none.
CALLS: list[tuple[str, dict[str, Any], int | None]] = [
    *(("get_subscriber", {"iccid": line}, account) for line in LINES for account in ACCOUNTS),
    *(("modify_subscriber_status", {"iccid": line, "status": "ACTIVE"}, 8101) for line in LINES),
    *(("list_subscribers", {"accountId": account}, None) for account in ACCOUNTS),
    ("list_subscribers", {}, None),
    ("list_subscribers", {"iccid": LINES[0]}, None),
    *(
        (
            "move_subscriber_range_to_account",
            {"accountId": one, "destAccount": other, "rangeType": "ICCID", "rangeStart": LINES[0], "rangeEnd": LINES[1]},
            None,
        )
        for one in ACCOUNTS
        for other in ACCOUNTS
    ),
    ("list_connectivity_plans", {}, None),
    ("create_api_key", {"name": "x"}, None),
    ("list_audit_log", {}, None),
]
INPUTS = [(CATALOGUE.operations[id], Binding(CATALOGUE.operations[id]), given, account) for id, given, account in CALLS]
PARAMS = [(operation, binding.validate(binding.arguments(given)), account) for operation, binding, given, account in INPUTS]


def caller(restrictions: Restrictions, key: str) -> Caller:
    admin = Caller("key", "usr_1", "org_1", "One", Tier.ENTERPRISE, Role.ADMIN, scopes=15, key_id=key)
    return admin if restrictions is UNRESTRICTED else restricted_caller(admin, restrictions)


def may(who: Caller) -> set[int]:
    """Which of the calls get through."""
    inside = CATALOGUE.operations_in(who.restrictions.toolsets or ())
    return {number for number in range(len(PARAMS)) if gets_through(who, inside, number)}


def gets_through(who: Caller, inside: frozenset[str], number: int) -> bool:
    operation, params, account = PARAMS[number]
    try:
        if operation.role is not None:
            require_role(operation.role, who)
        check_restricted_operation(operation, who.restrictions, inside)
        check_restricted_input(operation, params, who.restrictions)
        if account is not None:
            check_line_account(account, who.restrictions)
    except Restricted:
        return False
    return who.has(operation.scope)


def operations(who: Caller) -> set[str]:
    inside = CATALOGUE.operations_in(who.restrictions.toolsets or ())
    found: set[str] = set()
    for operation in BEARER:
        try:
            check_restricted_operation(operation, who.restrictions, inside)
        except Restricted:
            continue
        if who.has(operation.scope):
            found.add(operation.id)
    return found


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(first=HELD | st.just(UNRESTRICTED), chain=st.lists(ASKED, min_size=1, max_size=5))
def test_no_key_may_call_what_its_maker_may_not(first: Restrictions, chain: list[dict[str, Any]]) -> None:
    maker = caller(first, "key_0")
    for number, asked in enumerate(chain, 1):
        try:
            made = effective_restrictions(KeyRestrictions(**asked), maker, NAMES, ())
        except (Restricted, BadRequest):
            continue
        kept = read_restrictions(write_restrictions(made))
        child = caller(kept, f"key_{number}")
        assert kept == made
        assert may(child) <= may(maker) and operations(child) <= operations(maker)
        assert scopes_left(child.restrictions) & ~scopes_left(maker.restrictions) == 0
        if maker.restrictions.calls_per_day is not None:
            assert child.restrictions.calls_per_day is not None
            assert child.restrictions.calls_per_day <= maker.restrictions.calls_per_day
            assert child.counter == maker.counter
        maker = child


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(held=HELD, asked=ASKED)
def test_what_is_asked_for_is_granted_whole_or_refused(held: Restrictions, asked: dict[str, Any]) -> None:
    maker = caller(held, "key_0")
    try:
        made = effective_restrictions(KeyRestrictions(**asked), maker, NAMES, ())
    except Restricted as refusal:
        assert refusal.param is not None and refusal.param.startswith("restrictions.")
        return
    for member in ("toolsets", "iccids", "account_ids"):
        if asked.get(member) is not None:
            assert getattr(made, member) == tuple(dict.fromkeys(asked[member]))
        else:
            assert getattr(made, member) == getattr(held, member)
    assert made.calls_per_day == (asked.get("calls_per_day") or held.calls_per_day)
    assert made.read_only == (asked.get("read_only", False) or held.read_only) and made.no_admin == held.no_admin
    assert replace(made, counted_as=None).within(held).iccids == made.iccids


@pytest.mark.cases
@pytest.mark.parametrize("seed", range(4))
async def test_a_chain_made_over_http_only_ever_narrows(house: ServiceHouse, seed: int) -> None:
    steps: list[dict[str, Any]] = [
        [{"toolsets": ["setup", "connectivity"]}, {"toolsets": ["all"]}, {"calls_per_day": 900}][(seed + place) % 3] for place in range(4)
    ]
    paths = ("/v1/connectivity/plans", "/v1/members", "/v1/accounts/8101/esim-status", "/v1/audit-log", "/v1/api-keys")
    who = await house.world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    secret, before = who.secret, dict.fromkeys(paths, 200)
    for step in steps:
        async with house.world.client(secret) as http:
            made = await http.post("/v1/api-keys", json={"name": "child", "restrictions": step})
        assert made.status_code in (201, 403)
        secret = made.json().get("secret", secret)
        async with house.world.client(secret) as http:
            after = {path: (await http.get(path)).status_code for path in paths}
        assert all(after[path] == 200 or after[path] == 403 for path in paths)
        assert all(before[path] == 200 for path in paths if after[path] == 200)
        before = after
