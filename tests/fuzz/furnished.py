"""An organisation that has one of everything, and what of it each operation's documented call names."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from clients.payments.records import AccountKind
from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role
from registry.catalogue import AnyOperation
from tests.contract.orders import numbered, order, top_up
from tests.contract.payments import PREPARED
from tests.contract.stage import ContractStage, ServiceHouse
from tests.network_facts import ACCOUNT
from tests.world import Credentials, World

FuzzInput = dict[str, Any]
KINDS = ("admin", "member", "restricted", "none")


@dataclass(slots=True)
class OnceConnected(World):
    """A world in which every preparation meets the one account at the processor that the organisation has."""

    account: str = field(default="")

    async def connect_payments(self, caller: Credentials, *, kind: AccountKind = "express", active: bool = True) -> str:
        """The account; the first who asks opens it."""
        if not self.account:
            # Without arguments, `super` does not find its way in a class with slots.
            self.account = await super(OnceConnected, self).connect_payments(caller, kind=kind, active=active)
        return self.account


@dataclass(slots=True)
class Furnished:
    """The organisation, its credentials, and the documented input of each operation with the names of what is there."""

    stage: ContractStage
    bearers: Mapping[str, str]
    inputs: dict[str, FuzzInput] = field(default_factory=dict[str, FuzzInput])


async def furnish(house: ServiceHouse, operation: AnyOperation | None) -> Furnished:
    stage = await house.stage(operation)
    bearers = {"admin": stage.who.secret, **await others(house, stage), "none": ""}
    made = Furnished(stage, bearers)
    world = OnceConnected(**{each.name: getattr(house.world, each.name) for each in fields(house.world)})
    there: dict[object, FuzzInput] = {}
    if operation is None:
        restock(stage)
        sold = await top_up(world, stage.who)
        there = {top_up: sold, order: {"orderId": sold["orderId"]}, numbered: {"number": sold["orderId"]}}
    for each in [operation] if operation else CATALOGUE.operations.values():
        prepare = PREPARED.get(each.id)
        if operation is None and prepare is not None and prepare not in there:
            there[prepare] = await prepare(world, stage.who)
        if operation is None:
            stage.proof = there.get(prepare, {})
        made.inputs[each.id] = stage.fitted(each, each.examples[0].input if each.examples else {})
    return made


def restock(stage: ContractStage) -> None:
    """Lines that nobody uses are free again: sequences of calls draw more than one eSIM."""
    for line in stage.network.lines_of(ACCOUNT):
        if not line.packages and line.iccid != stage.own.iccid:
            line.sim.status = "FREE"


async def others(house: ServiceHouse, stage: ContractStage) -> dict[str, str]:
    """Keys of those who may do less: of a plain member, and one for reading one line."""
    world, who = house.world, stage.who
    person = await world.person()
    await world.join(person, who.organisation, Role.MEMBER)
    _, member = await world.key(person, who.organisation)
    narrow = Restrictions(read_only=True, iccids=(stage.own.iccid, stage.iccid), calls_per_day=150)
    _, restricted = await world.key(who.person, who.organisation, restrictions=narrow)
    return {"member": member, "restricted": restricted}
