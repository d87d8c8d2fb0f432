"""Schemathesis over a stand: every check; what fails and is not excused."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import schemathesis
from schemathesis.config import (
    CacheConfig,
    CoveragePhaseConfig,
    DictionaryDefinition,
    ExamplesPhaseConfig,
    ExtraDataSourcesConfig,
    FuzzingPhaseConfig,
    GenerationConfig,
    OperationConfig,
    OperationsConfig,
    PhasesConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
    StatefulPhaseConfig,
)
from schemathesis.config._auth import AuthConfig
from schemathesis.config._dictionaries import DictionaryEntry, ParameterDictionaryBinding
from schemathesis.core.failures import AcceptedNegativeData, Failure, ServerError
from schemathesis.core.transport import Response
from schemathesis.engine import from_schema
from schemathesis.engine.events import EngineEvent, EngineFinished, FatalError, NonFatalError, ScenarioFinished
from schemathesis.engine.run import PhaseName
from schemathesis.filters import FilterSet
from schemathesis.generation.case import Case
from schemathesis.hooks import HookContext
from schemathesis.openapi.checks import AllowHeaderMismatch, JsonSchemaError, MissingHeaderNotRejected, RejectedPositiveData, UseAfterFree
from schemathesis.python.asgi import shutdown_lifespans

from operations.catalogue import CATALOGUE
from tests.contract.stage import SHOP_KEY
from tests.fuzz.app_under_test import AppUnderTest
from tests.fuzz.known_failures import excused
from tests.network_facts import INTERNAL

ALLOWED = {501, 502, 503}
STEPS = 50
SOON_DONE = {"health_check"}
"""Takes nothing, so that every call is the same."""
FOUND_BY: dict[type[Failure], str] = {
    ServerError: "not_a_server_error",
    AcceptedNegativeData: "negative_data_rejection",
    RejectedPositiveData: "positive_data_acceptance",
    MissingHeaderNotRejected: "missing_required_header",
    JsonSchemaError: "response_schema_conformance",
    UseAfterFree: "use_after_free",
    AllowHeaderMismatch: "allow_header_conformance",
}
"""Which check finds what, of those that have excuses."""
OFTEN = 0.5
"""How often a generated call names what is there."""


@dataclass(frozen=True, slots=True)
class FuzzPlan:
    examples: int
    seed: int = 1
    kind: str = "admin"
    sequences: bool = False
    """Sequences of calls in place of each by itself."""
    forbidden: bool = True
    """What the document forbids is asked, too: every value outside each bound, and the methods that a path does not have."""
    shrink: bool = False
    only: frozenset[str] | None = None
    """Names of operations; all where nothing is said."""


@dataclass
class FuzzVerdict:
    """What was asked and what broke."""

    calls: int = 0
    statuses: Counter[int] = field(default_factory=Counter[int])
    checks: Counter[str] = field(default_factory=Counter[str])
    labels: set[str] = field(default_factory=set[str])
    generated: int = 0
    """Calls of the phase that counts its examples."""
    failures: list[str] = field(default_factory=list[str])


def fuzz(stand: AppUnderTest, plan: FuzzPlan, tell: Callable[[FuzzVerdict], None] = lambda verdict: None) -> FuzzVerdict:
    """Ask as the plan says; the house stands as long."""
    verdict = FuzzVerdict()
    try:
        schemathesis.openapi.from_asgi("/openapi.json", stand)  # starts it
        schema = schemathesis.openapi.from_asgi("/openapi.json", stand, config=configuration(stand, plan))
        schema.hook("filter_failure")(counts)
        for event in from_schema(schema).execute():
            take(event, verdict)
            tell(verdict)
        assert stand.house is not None
        verdict.failures += [f"{operation}: {error!r}" for _, operation, error in stand.house.world.faults]
    finally:
        shutdown_lifespans()
    verdict.failures += [f"status {status}" for status in verdict.statuses if unwanted(status, plan)]
    if stand.operation is not None and verdict.generated < plan.examples and not plan.sequences and stand.operation.id not in SOON_DONE:
        verdict.failures.append(f"{verdict.generated} of {plan.examples} examples, and nothing says why it ended")
    return verdict


def unwanted(status: int, plan: FuzzPlan) -> bool:
    """Whether nobody, or not this caller, is ever answered so."""
    return (status >= 500 and status not in ALLOWED) or (status == 402 and plan.kind == "admin")


def configuration(stand: AppUnderTest, plan: FuzzPlan) -> SchemathesisConfig:
    """Every check; the same cases in every run of one seed."""
    generation = GenerationConfig(max_examples=plan.examples, deterministic=True, database="none", no_shrink=not plan.shrink)
    alone = not plan.sequences
    # Values taken from answers change what Hypothesis draws from: it takes that for flaky, and Schemathesis ends there without a word.
    same = ExtraDataSourcesConfig(responses=False)
    phases = PhasesConfig(
        examples=ExamplesPhaseConfig(enabled=alone),
        coverage=CoveragePhaseConfig(enabled=alone and plan.forbidden),
        fuzzing=FuzzingPhaseConfig(enabled=alone, extra_data_sources=same),
        stateful=StatefulPhaseConfig(enabled=plan.sequences, max_steps=STEPS),
    )
    asked = plan.only if stand.operation is None else frozenset({stand.operation.id})
    operations, dictionaries = named(stand, asked)
    project = ProjectConfig(
        auth=credentials(stand, plan.kind),
        generation=generation,
        phases=phases,
        continue_on_failure=True,
        workers=1,
        operations=OperationsConfig(operations=operations + left_out(asked)),
    )
    cache = CacheConfig(enabled=False)
    return SchemathesisConfig(projects=ProjectsConfig(default=project), seed=plan.seed, dictionaries=dictionaries, cache=cache)


def credentials(stand: AppUnderTest, kind: str) -> AuthConfig:
    """Of one kind of caller; those of other programs are known to the admin's runs."""
    assert stand.furnished is not None and stand.house is not None
    bearer = stand.furnished.bearers[kind]
    known = {"bearerAuth": {"bearer": bearer}} if bearer else {}
    if stand.operation is not None and kind == "admin":
        known["bearerAuth"] = {"bearer": stand.house.credential(stand.operation, stand.furnished.stage) or bearer}
    if kind == "admin":
        known |= {"internalBearer": {"bearer": INTERNAL}, "storefrontBearer": {"bearer": SHOP_KEY}}
    return AuthConfig(openapi=known)


def named(stand: AppUnderTest, asked: frozenset[str] | None) -> tuple[list[OperationConfig], dict[str, DictionaryDefinition]]:
    """What is there, for each operation that may name it. All are looked through for each call: those that are not asked stay out."""
    assert stand.furnished is not None
    found: list[OperationConfig] = []
    dictionaries: dict[str, DictionaryDefinition] = {}
    for id, given in stand.furnished.inputs.items():
        if asked is not None and id not in asked:
            continue
        parameters: dict[str, Any] = {}
        for place, value in stand.places(CATALOGUE.operations[id], given).items():
            name = f"{id} {place}"
            dictionaries[name] = DictionaryDefinition(name, (DictionaryEntry(value, 0),), "values", None)
            parameters[place] = ParameterDictionaryBinding(name, OFTEN)
        found.append(OperationConfig(filter_set=only(id), parameters=parameters))
    return found, dictionaries


def left_out(asked: frozenset[str] | None) -> list[OperationConfig]:
    """What is in the document and not asked: of one operation the other methods of its path, of a plan what it does not name."""
    others = FilterSet()
    others.exclude(operation_id=sorted(asked or ()))
    return [] if asked is None else [OperationConfig(filter_set=others, enabled=False)]


def only(id: str) -> FilterSet:
    found = FilterSet()
    found.include(operation_id=id)
    return found


def take(event: EngineEvent, verdict: FuzzVerdict) -> None:
    if isinstance(event, FatalError):
        raise event.exception
    if isinstance(event, NonFatalError):
        verdict.failures.append(f"{event.label}: {event.value}")
    elif isinstance(event, EngineFinished):
        verdict.failures += [f"{failure.operation} {failure.title}\n{failure.message}" for failure in event.failures]
    elif isinstance(event, ScenarioFinished):
        recorder = event.recorder
        answers = [each.response for each in recorder.interactions.values() if each.response is not None]
        verdict.calls += len(answers)
        verdict.generated += len(recorder.cases) if event.phase is PhaseName.FUZZING else 0
        verdict.statuses.update(answer.status_code for answer in answers)
        verdict.checks.update(check.name for checks in recorder.checks.values() for check in checks)
        verdict.labels.update(node.value.operation.label for node in recorder.cases.values())
        verdict.failures += failed(event)


def counts(context: HookContext, failure: Failure, case: Case[Any], response: Response) -> bool:
    """Whether a failure is ours. One that is taken for one ends the sequence it is in, and what comes after is not asked."""
    return not is_excused(case.operation.label, FOUND_BY.get(type(failure), ""), failure, response)


def is_excused(label: str, check: str, failure: Failure, response: Response | None) -> bool:
    """By the rules of this service."""
    status, replayed = (response.status_code, "idempotent-replayed" in response.headers) if response else (0, False)
    body = refusal(response.content if response else None)
    return excused(label, check, status, body, message=failure.message, replayed=replayed)


def failed(event: ScenarioFinished) -> list[str]:
    """The failures of one scenario that are ours."""
    found: list[str] = []
    for case, checks in event.recorder.checks.items():
        interaction, label = event.recorder.interactions.get(case), event.recorder.cases[case].value.operation.label
        response = interaction.response if interaction else None
        for check in checks:
            info = check.failure_info
            if info is None or is_excused(label, check.name, info.failure, response):
                continue
            answered = response.content.decode(errors="replace")[:600] if response else "no answer"
            found.append(f"{label} {check.name}: {info.failure.title}\n{info.failure.message}\n{answered}\n{info.code_sample}")
    return found


def refusal(content: bytes | None) -> dict[str, object]:
    return orjson.loads(content) if content and content[:1] == b"{" else {}
