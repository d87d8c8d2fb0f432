"""What the callers of an episode want: each errand is one eSIM under one key, and how often, how and by whom it is asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from tests.harness.history import Key
from tests.simulation.agents import LimitedAgent
from tests.simulation.tenants import INVENTORY_TEMPLATES, SimulatedTenant

Want = Literal["inventory", "intent", "confirm", "test"]
WANTS: tuple[Want, ...] = ("inventory", "inventory", "inventory", "intent", "intent", "confirm", "test")
PERIOD = {"start": "2027-02-01T00:00:00Z", "end": "2027-03-01T00:00:00Z"}
TEST_PLAN = "test_eu_1gb"
INVENTORY, INTENT = "issue_esim_from_inventory", "create_connectivity_intent"


@dataclass(frozen=True, slots=True)
class Errand:
    """One eSIM that somebody wants. `plan` is chosen later, by a confirmation; `other` is another body under the same key."""

    tenant: SimulatedTenant
    key: str
    want: Want
    arguments: dict[str, Any]
    other: dict[str, Any] | None
    templates: frozenset[int]
    plans: tuple[str, ...]
    calls: int
    at_once: bool
    releases: int
    stranger: SimulatedTenant | None

    @property
    def name(self) -> Key:
        """What the history knows it by."""
        return Key(self.tenant.id, self.key)

    @property
    def operation(self) -> str:
        """What is called with the key."""
        return INVENTORY if self.want == "inventory" else INTENT


def draw_errands(rng: Random, tenants: tuple[SimulatedTenant, ...], count: int) -> list[Errand]:
    """Who wants what. Two organisations may use the same key: they are two keys."""
    errands: list[Errand] = []
    for number in range(count):
        tenant = tenants[int(rng.random() * len(tenants))]
        key = f"key-{number}"
        if number > 0 and rng.random() < 0.25 and (tenant.id, errands[-1].key) not in {errand.name for errand in errands}:
            key = errands[-1].key
        errands.append(draw_errand(rng, tenant, tenants, key))
    return errands


def give_to_agents(errands: Sequence[Errand], agents: Mapping[str, LimitedAgent]) -> list[Errand]:
    """The same errands, each done by the agent of its organisation."""
    return [replace(errand, tenant=replace(errand.tenant, secret=agents[errand.tenant.id].secret)) for errand in errands]


def draw_errand(rng: Random, tenant: SimulatedTenant, tenants: tuple[SimulatedTenant, ...], key: str) -> Errand:
    want = WANTS[int(rng.random() * len(WANTS))]
    first, second = draw_body(rng, tenant, want), draw_body(rng, tenant, want)
    plans = tuple(tenant.plans)
    chosen = (plans[int(rng.random() * len(plans))], plans[int(rng.random() * len(plans))])
    other = second[0] if rng.random() < 0.2 and second[0] != first[0] else None
    if want == "confirm":
        templates = frozenset(tenant.plans[plan] for plan in chosen)
    else:
        templates = frozenset({first[1]} if other is None else {first[1], second[1]})
    return Errand(
        tenant=tenant,
        key=key,
        want=want,
        arguments=first[0],
        other=other,
        templates=templates,
        plans=chosen if rng.random() < 0.3 else chosen[:1],
        calls=1 + int(rng.random() * 4),
        at_once=rng.random() < 0.3,
        releases=int(rng.random() * 4) if want != "test" and rng.random() < 0.4 else 0,
        stranger=next(other for other in tenants if other is not tenant) if rng.random() < 0.1 else None,
    )


def draw_body(rng: Random, tenant: SimulatedTenant, want: Want) -> tuple[dict[str, Any], int]:
    """A call's arguments, and the template that it asks for."""
    if want == "inventory":
        template = INVENTORY_TEMPLATES[int(rng.random() * len(INVENTORY_TEMPLATES))]
        window: tuple[dict[str, Any], ...] = ({}, {"validityPeriod": 7}, {"validityPeriod": 30}, {"activePeriod": PERIOD})
        return {"accountId": tenant.account, "packageTemplateId": template} | window[int(rng.random() * len(window))], template
    metadata = {"metadata": {"order": str(int(rng.random() * 3))}}
    if want == "confirm":
        return metadata, 0
    if want == "test":
        return {"plan": TEST_PLAN} | metadata, 0
    plan = list(tenant.plans)[int(rng.random() * len(tenant.plans))]
    return {"plan": plan} | metadata, tenant.plans[plan]
