"""What helps one line: the steps of a cause with their arguments, whether they change something, and what the customer pays for them.

A line outside its packages' networks is told what steering or which package is known to help, by the advice of the audit of a fleet: no
push is named that would repeat one of a day ago, and nothing that would cost the operator or the customer more than what is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from operations.deps import Ctx
from operations.intelligence.diagnosis.causes import CAUSE_STEPS, PUSH_STEP, CauseMatch, DiagnosisCause, DiagnosisStep
from operations.intelligence.diagnosis.facts import LineFacts
from operations.intelligence.diagnosis.line_days import newest_networks
from operations.intelligence.diagnosis.steering_facts import moved_line, read_steering_facts
from operations.intelligence.lines.fleet_lines import FleetLine, fleet_line
from operations.intelligence.lines.stored_use import stored_line_use
from operations.intelligence.lines.usage import LineUse, last_whole_days
from operations.intelligence.money.advice import AdviceReason, LineAdvice
from operations.intelligence.money.package_advice import PackageAdviser
from operations.intelligence.money.steering_advice import (
    PUSH_PAUSE_SECONDS,
    ListSighting,
    SteeredLine,
    SteeringAdviser,
    SteeringEvidence,
    sightings_of_fleet,
)
from operations.intelligence.offers.coverage_map import CoverageMap, KnownNetwork
from operations.intelligence.offers.offers import read_offers
from operations.upstream.lines import Line
from registry.errors import OcsError
from storage.line_steering import LineSteering, steering_of_line

WHY_NO_STEERING: Mapping[AdviceReason, str] = {
    "pushed_lately": "Its list was pushed in the last 24 hours, or the line was not seen since: wait, then see where it registers.",
    "push_did_not_help": "Its list is right and was pushed, and the line was seen there again: see what refuses it.",
}
"""What to look at where steering is not to be tried again."""
UNREAD_ADVICE = (
    "Tariffs, templates or steering lists could not be read: what leads to a covered network, and what that costs, was not worked out."
)


@dataclass(slots=True)
class LineHelp:
    """What helps a line. `steering`: what was done through us in thirty days; `outside`: the steps where it is outside its zone; `unread`:
    sentences on what they could not be made of."""

    now: float
    steering: LineSteering | None
    outside: Sequence[DiagnosisStep]
    unread: Sequence[str] = ()

    def steps(self, found: CauseMatch, facts: LineFacts) -> list[DiagnosisStep]:
        """The steps of a cause, without a push that would repeat one of a day ago."""
        if found.cause == "zone_not_covering":
            return list(self.outside)
        steps = [told_step(step, found.cause, facts) for step in CAUSE_STEPS[found.cause]]
        pushed = None if self.steering is None else self.steering.pushed
        waits = pushed is not None and (pushed > self.now - PUSH_PAUSE_SECONDS or (facts.seen or 0.0) <= pushed)
        return [step for step in steps if step.operation != PUSH_STEP.operation or not waits]


def told_step(step: DiagnosisStep, cause: DiagnosisCause, facts: LineFacts) -> DiagnosisStep:
    """The step with the package that it is about, and what that costs: the one that the line had last, once more."""
    packages = facts.packages or []
    newest = max(packages, key=lambda package: (package.ends or 0.0, package.id), default=None)
    if newest is None or not (step.of_package or (step.operation == "assign_package" and cause in SAME_AGAIN)):
        return step
    if step.of_package:
        return step._replace(gives={"packageId": newest.id, **step.gives})
    return step._replace(gives={"packageTemplateId": newest.template_id}, pays=newest.price)


SAME_AGAIN: frozenset[DiagnosisCause] = frozenset({"package_expired", "package_exhausted"})
"""Causes where the package that the line had is what it needs."""


async def read_line_help(ctx: Ctx, line: Line, facts: LineFacts, causes: Sequence[CauseMatch]) -> LineHelp:
    """What helps the line; advice is made for one that is outside its zone alone. Waits for the network."""
    steering = await ctx.deps.store.read(steering_of_line, organisation=ctx.organisation, iccid=line.iccid)
    found = next((each for each in causes if each.cause == "zone_not_covering"), None)
    told, zones, days = fleet_line(line.row), facts.zones, facts.days
    fallback = list(CAUSE_STEPS["zone_not_covering"])
    if found is None or told is None or zones is None or days is None or facts.code is None:
        return LineHelp(ctx.now, steering, fallback)
    window = last_whole_days(ctx.now)
    use = stored_line_use(days.rows, newest_networks(days.networks), window.first.toordinal(), window.last.toordinal())
    adviser = OutsideAdviser(ctx, line, facts, told, zones)
    steered = any(rule.what == "country_covered" for rule in found.fired)
    try:
        outside = steering_steps(await adviser.steering(use, steering)) if steered else package_steps(*await adviser.package(use))
    except OcsError:
        return LineHelp(ctx.now, steering, fallback, [UNREAD_ADVICE])
    return LineHelp(ctx.now, steering, outside or fallback)


class OutsideAdviser:
    """Says what leads a line to a network that its packages cover, or which package works where it is."""

    def __init__(self, ctx: Ctx, line: Line, facts: LineFacts, told: FleetLine, zones: CoverageMap) -> None:
        self._ctx, self._line, self._facts, self._told, self._zones = ctx, line, facts, told, zones

    @property
    def _network(self) -> KnownNetwork | None:
        return None if self._facts.code is None else self._zones.find(self._facts.code)

    async def steering(self, use: LineUse, steering: LineSteering | None) -> LineAdvice:
        """Another list, a push, or why neither. Waits for the network; raises OcsError."""
        network, facts, past = self._network, self._facts, self._facts.past
        if network is None:
            return LineAdvice("none", "unknown_network")
        known = await read_steering_facts(self._ctx, self._line.upstream)
        sightings: Iterable[ListSighting] = ()
        if past is not None:
            sightings = await sightings_of_fleet(self._ctx, past.fleet, known.of_accounts, self._zones)
        evidence = await anyio.to_thread.run_sync(SteeringEvidence, sightings, self._zones)
        steered = SteeredLine(
            known.sponsors.sponsor_of(self._told),
            known.list_of(self._told),
            network.country,
            network,
            facts.seen or facts.last_used or 0.0,
            tuple(sorted({package.zone_id for package in facts.usable})),
            moved_line(known, self._told, use, facts.packages or ()),
            is_mis_steered=True,
        )
        return SteeringAdviser(evidence, known.known, self._zones, known.prices).advise(steered, steering, self._ctx.now)

    async def package(self, use: LineUse) -> tuple[LineAdvice, int | None]:
        """A package that works where the line is, and its price, micro-euro. Waits for the network; raises OcsError."""
        adviser = PackageAdviser(await read_offers(self._line.upstream))
        advice = adviser.advise(self._told, self._network, use)
        offer = adviser.offer(advice.template_id)
        return advice, None if offer is None else offer.cost


def steering_steps(advice: LineAdvice) -> list[DiagnosisStep]:
    """The steps that follow from advice on steering; none where nothing is known that helps and costs nobody more."""
    push = PUSH_STEP._replace(why="Its list leads to a covered network: have the SIM look for one.")
    if advice.action == "push_steering":
        return [push]
    if advice.action == "change_steering_list" and advice.list_id is not None:
        why = "This list leads to a covered network, and costs nobody more; then push it."
        return [DiagnosisStep("modify_subscriber_steering_list", why, {"listId": advice.list_id}, changes=True), push]
    return [DiagnosisStep("subscriber_network_events", WHY_NO_STEERING[advice.why])] if advice.why in WHY_NO_STEERING else []


def package_steps(advice: LineAdvice, price: int | None) -> list[DiagnosisStep]:
    """The package that is offered, at its price, micro-euro; none where none works there, or each would cost more than what is."""
    if advice.action != "offer_package" or advice.template_id is None:
        return []
    why = "No network of its packages is in this country: this one works there, and costs no more than what is."
    return [DiagnosisStep("assign_package", why, {"packageTemplateId": advice.template_id}, changes=True, pays=price)]
