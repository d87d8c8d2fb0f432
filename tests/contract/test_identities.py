"""Operation by identity by door: every cell is derived from the declaration, and the service is asked for every one.

UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_identities.py writes docs/identities.md again.
"""

import re
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from registry.caller import Restrictions, Role
from registry.catalogue import AnyOperation
from registry.operation import Scope
from storage.engine.sql import Connection, Query
from tests.contract.cast import IDENTITIES, Company, Identity, Place, company
from tests.contract.committed import hold
from tests.contract.fleet import writes
from tests.contract.identities import IDENTITIES_COMMAND, IDENTITIES_PAGE, ExpectedAnswer, account_fields, expected, identities_page
from tests.contract.outcomes import code_of
from tests.contract.stage import OPERATIONS, SERVED, Answered, ServiceHouse, key_for
from tests.draw import drawn
from tests.network_facts import ACCOUNT, SIBLING
from tests.registry.ledgers import AUDIT, CLAIM, used_by

ALL = [pytest.param(o, id=o.id) for o in OPERATIONS]
IDENTITY = IDENTITIES_PAGE.parent / "identity.md"
EARLY = (401, 402, 403, 409)
UPGRADE = {Scope.WRITE: "pro", Scope.ADMIN: "enterprise"}
"""The lowest tier that carries a scope (rules 5.2)."""
UPGRADE_FIELDS = {"error", "code", "request_id", "required_tier", "upgrade_url"}
ADMIN = next(who for who in IDENTITIES if who.name == "enterprise admin")
STORED = [pytest.param(o, id=o.id) for o in SERVED if o.once and expected(o, ADMIN).status < 400]


class Written(NamedTuple):
    """How the database is: every commit that changed a row makes another version of its file, and every write leaves rows of these."""

    version: int
    audited: int
    claims: int


def count(table: sa.Table) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.count()).select_from(table).scalar_subquery()


WRITTEN = Query(
    Written,
    sa.select(sa.column("data_version").label("version"), count(AUDIT).label("audited"), count(CLAIM).label("claims")).select_from(
        sa.func.pragma_data_version()
    ),
)


def written(connection: Connection, *, organisation: str) -> tuple[Written, int]:
    """How the database is, and how many calls the organisation was charged."""
    found = connection.first(WRITTEN)
    assert found is not None
    return found, used_by(connection, organisation=organisation)


async def wrong(house: ServiceHouse, operation: AnyOperation, who: Identity, on: Company | None, key: str | None = None) -> list[str]:
    """What is not as it should be, at any door. A call that changes something gets a stage of its own."""
    faults: list[str] = []
    for door in (house.http, house.mcp) if operation.tool else (house.http,):
        own = on or await company(house, operation, [who])
        actor, wanted = own.actors[who.name], expected(operation, who)
        if who.place is Place.HERE:
            await house.world.move_to(who.tier, own.stage.who.organisation)
        asked, unspent = len(own.stage.asked()), house.unspent(actor.owner)
        before, used = await house.world.store.read(written, organisation=actor.owner)
        once = key_for(operation, key or f"{who.name} {door.__name__}".replace(" ", "-"))
        said = await door(operation, actor.secret, own.given, key=once, sure=True)
        now, used_now = await house.world.store.read(written, organisation=actor.owner)
        cost = used_now - house.unspent(actor.owner) - (used - unspent)
        # What is charged, or would be, leases from the quota; what is refused earlier touches nothing at all.
        changed = now != before if wanted.status in EARLY and not wanted.cost else now[1:] != before[1:]
        found = [*differences(door.__name__, wanted, said), *effects(wanted, cost, changed, own.stage.asked(asked))]
        found += [] if wanted.status != 402 else untaught(operation, said)
        faults += [f"{who.name} by {door.__name__}: {fault}; {said.body}" for fault in found]
    return faults


def differences(door: str, wanted: ExpectedAnswer, said: Answered) -> list[str]:
    """The answer itself. A tool tells success from refusal, and the refusal's code."""
    status = said.status if door == "http" or said.status == 401 else wanted.status if (said.status >= 400) == (wanted.status >= 400) else 0
    return [] if (status, code_of(said)) == (wanted.status, wanted.code) else [f"wanted {wanted.status} {wanted.code}, got {said.status}"]


def untaught(operation: AnyOperation, said: Answered) -> list[str]:
    """What a refusal by tier leaves out, or says beside it: the tier that carries the scope, and where to get it."""
    taught = said.body.get("required_tier") == UPGRADE[operation.scope] and set(said.body) == UPGRADE_FIELDS
    return [] if taught else [f"no {UPGRADE[operation.scope]} is offered"]


def effects(wanted: ExpectedAnswer, cost: int, changed: bool, asked: list[str]) -> list[str]:
    """What the call cost and what it touched."""
    faults = [] if cost == wanted.cost else [f"cost {cost} instead of {wanted.cost}"]
    if wanted.status >= 400 and (writes(asked) if wanted.looked else asked):
        faults.append(f"reached the network: {asked}")
    if wanted.status >= 400 and changed:
        faults.append("changed a row")
    return faults


@pytest.mark.rule("5.2.4")
@pytest.mark.rule("5.1.1")
@pytest.mark.rule("5.2.3")
@pytest.mark.parametrize("operation", drawn(ALL, __file__))
async def test_everybody_is_answered_as_the_declaration_says_at_every_door(house: ServiceHouse, operation: AnyOperation) -> None:
    refused = [who for who in IDENTITIES if operation.read_only or expected(operation, who).status >= 400]
    shared = await company(house, operation, refused)
    faults: list[str] = []
    for who in IDENTITIES:
        faults += await wrong(house, operation, who, shared if who in refused else None)
    assert faults == []


@pytest.mark.parametrize("operation", drawn(STORED, __file__))
async def test_a_stored_answer_is_for_nobody_to_whom_the_call_is_refused(house: ServiceHouse, operation: AnyOperation) -> None:
    refused = [who for who in IDENTITIES if expected(operation, who, live=False).status in (401, 402, 403, 404, 409)]
    shared = await company(house, operation, [ADMIN, *refused])
    done = await house.http(operation, shared.actors[ADMIN.name].secret, shared.given, key="stored", sure=True)
    assert done.status == operation.status, done.body
    faults: list[str] = []
    for who in refused:
        faults += await wrong(house, operation, who, shared, key="stored")
    assert faults == []


@pytest.mark.parametrize("operation", drawn([pytest.param(o, id=o.id) for o in OPERATIONS if len(account_fields(o)) > 1], __file__))
async def test_a_key_for_one_account_may_name_no_other_in_any_field(house: ServiceHouse, operation: AnyOperation) -> None:
    for field in account_fields(operation):
        stage = await house.stage(operation)
        _, secret = await house.world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(account_ids=(ACCOUNT,)))
        given = stage.fitted(operation, operation.examples[0].input) | dict.fromkeys(account_fields(operation), ACCOUNT) | {field: SIBLING}
        for door in (house.http, house.mcp):
            said = await door(operation, secret, given, key=key_for(operation, door.__name__))
            assert (code_of(said), said.body["param"]) == ("credential_restricted", field), said.body
        assert stage.asked() == []


def test_the_page_on_identity_says_who_may_redirect_money_or_sims() -> None:
    """Every operation that may replace something live, with who may, stands in the table that people read."""
    section = IDENTITY.read_text().partition("## Who may redirect money or SIMs")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    asked = {o.id for o in OPERATIONS if o.replaces is not None}
    told = {id for id in asked for names, _, who in rows if f"`{id}`" in names and "an admin" in who.lower() and "confirms it" in who}
    assert told == asked
    named = {name for names, _, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert {o.id for o in OPERATIONS if o.id in named and o.role is Role.ADMIN} == {
        "onboarding_restore_ocs_token",
        "operator_billing_connect_dashboard_link",
        "invite_member",
        "remove_member",
    }
    assert {name for name in named if "_" in name} - {o.id for o in OPERATIONS} <= {"account_id", "webhook_url"}


def test_the_committed_table_is_what_the_declarations_say() -> None:
    hold(IDENTITIES_PAGE, identities_page(), IDENTITIES_COMMAND)
