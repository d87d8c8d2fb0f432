"""Why a line has no data, or slow data."""

from collections import Counter
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.costs.euros import euros
from operations.intelligence.coverage.map import CoverageMap
from operations.intelligence.diagnosis.facts import Facts, Part, facts_of
from operations.intelligence.diagnosis.rules import Cause, Found, Rule, Value, causes_of, speed_of
from operations.intelligence.diagnosis.steps import STEPS, Effect, effect_of, steps_of
from operations.intelligence.finding import Finding, finding
from operations.intelligence.lines.network_told import NetworkTold, told
from operations.intelligence.lines.profile_stage import current_row
from operations.intelligence.upstream_text import plain
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.package_state import PackageState
from operations.services.network.utc_moment import seconds_of
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation
from registry.policy import stamp

METHOD = (
    "A table of causes in a fixed order, each found when its first rule holds for what the charging system says now, its signalling and "
    "the use of the last 7 UTC days with today."
)
UNREAD: dict[Part, str] = {
    "packages": "list_subscriber_packages did not answer: causes about packages, zones and balance were not judged.",
    "speed": "hlr_get_bitrate did not answer: the speed limit is the one of the line's own row.",
    "profile": "get_sim_provider_status did not answer: whether the profile is installed was not judged.",
    "signalling": "subscriber_network_events did not answer: registrations and refused sessions were not judged.",
    "usage": "subscriber_usage did not answer: use of the last days is not shown.",
    "zones": "list_detailed_location_zones did not answer: whether a package covers the network was not judged.",
    "balance": "list_reseller_accounts did not answer: the balance was not judged.",
}


class Evidence(TypedDict):
    """A rule that holds, and what was seen."""

    rule: Annotated[str, Field(description="A word of ours; the documentation lists them")]
    value: Value
    at: Annotated[str | None, Field(description="RFC 3339, UTC: since when, or when it was seen")]


class Confidence(TypedDict):
    """How many of the rules that could be judged hold."""

    fired: int
    of: int


class NextStep(TypedDict):
    """What to do."""

    operation: Annotated[str, Field(description="A tool of this service")]
    why: str


class FoundCause(TypedDict):
    """A cause."""

    cause: Cause
    effect: Annotated[Effect, Field(description="For the user; charged: data goes on, and a balance pays for it")]
    confidence: Confidence
    evidence: list[Evidence]
    next_steps: list[NextStep]


class LineNow(TypedDict):
    """The line, as far as it could be read."""

    status: str
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2, of the network")]
    network: NetworkTold | None
    seen: Annotated[str | None, Field(description="When it registered there last")]
    last_used: str | None
    packages: Annotated[dict[PackageState, int] | None, Field(description="With data, by state")]
    data_left: Annotated[int | None, Field(description="Bytes in packages that can be used")]
    speed_limit_kbps: Annotated[int | None, Field(description="Null: none")]
    balance: Annotated[float | None, Field(description="EUR that use outside packages is paid from")]
    profile: Annotated[str | None, Field(description="The provider's last word on the eSIM profile")]
    used_bytes: Annotated[int | None, Field(description="Data of 7 days")]
    charged: Annotated[float | None, Field(description="EUR charged for use of 7 days")]


class Diagnosis(TypedDict):
    """What is wrong with a line."""

    iccid: str
    account_id: int | None
    first_cause: Annotated[Cause, Field(description="Of `causes`, the one to mend first; undetermined: something could not be read")]
    causes: Annotated[list[FoundCause], Field(description="In the order in which to mend them")]
    line: LineNow


EXAMPLE: Diagnosis = {
    "iccid": "8988303700000100286",
    "account_id": 8101,
    "first_cause": "package_exhausted",
    "causes": [
        {
            "cause": "package_exhausted",
            "effect": "no_data",
            "confidence": {"fired": 2, "of": 2},
            "evidence": [
                {"rule": "data_left", "value": 0, "at": "2027-01-09T08:30:00Z"},
                {"rule": "session_refused", "value": "4012", "at": "2027-01-15T09:41:07Z"},
            ],
            "next_steps": [{"operation": "assign_package", "why": STEPS["package_exhausted"][0].why}],
        }
    ],
    "line": {
        "status": "ACTIVE",
        "country": "NO",
        "network": {"mcc": "242", "mnc": "01", "operator": "Telenor"},
        "seen": "2027-01-15T09:41:07Z",
        "last_used": "2027-01-15T09:30:00Z",
        "packages": {"exhausted": 1},
        "data_left": 0,
        "speed_limit_kbps": None,
        "balance": 0.0,
        "profile": "Enable",
        "used_bytes": 1073741824,
        "charged": 0.0,
    },
}


@operation(
    "POST",
    "/v1/intelligence/diagnose-subscriber",
    scope=Scope.READ,
    upstream=True,
    operator=True,
    title="Diagnose line",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Why has this line no data?",
            {"iccid": "8988303700000100286"},
            finding(EXAMPLE, now=1_800_014_400, sampled=1, of=1, method=METHOD),
        )
    ],
)
async def diagnose_subscriber(ctx: Ctx, params: LineRef, line: Line) -> Finding[Diagnosis]:
    """Find why a line has no data, or slow data.

    Begin with `first_cause` and its next_steps. `incomplete` names what could not be read.

    Seven things are read at once: packages and series, speed limit, profile, signalling, use, zones and balance. One that fails does not
    fail the call. Causes come in the order of a fixed table; `confidence` counts the rules of a cause that hold, of those that could be
    judged. It is data that is looked at: packages without data are left out.
    """
    facts = await facts_of(ctx, line)
    causes = causes_of(facts)
    data: Diagnosis = {
        "iccid": line.iccid,
        "account_id": line.row.get("accountId"),
        "first_cause": causes[0].cause,
        "causes": [shown(found, facts) for found in causes],
        "line": line_now(facts),
    }
    made = finding(data, now=ctx.now, sampled=1, of=1, method=METHOD)
    if facts.unread:
        made["incomplete"] = {"lines": 0, "reasons": [UNREAD[part] for part in facts.unread]}
    return made


def shown(found: Found, facts: Facts) -> FoundCause:
    """A cause with what speaks for it."""
    return {
        "cause": found.cause,
        "effect": effect_of(found.cause, facts),
        "confidence": {"fired": len(found.fired), "of": len(found.rules)},
        "evidence": [evidence(rule) for rule in found.fired],
        "next_steps": [{"operation": step.operation, "why": step.why} for step in steps_of(found)],
    }


def evidence(rule: Rule) -> Evidence:
    """A rule that holds."""
    return {"rule": rule.what, "value": rule.value, "at": None if rule.at is None else stamp(rule.at)}


def line_now(facts: Facts) -> LineNow:
    """The line as it is."""
    code, zones = facts.code, facts.zones
    used, packages = seconds_of(facts.row.get("lastUsageDate")), facts.packages
    profile = current_row(facts.profile or [])
    return {
        "status": facts.status,
        "country": None if code is None else (zones or CoverageMap()).country(code),
        "network": None if code is None else told(None if zones is None else zones.find(code), code),
        "seen": None if facts.seen is None else stamp(facts.seen),
        "last_used": None if used is None else stamp(used),
        "packages": None if packages is None else dict(Counter(package.state for package in packages)),
        "data_left": None if packages is None else sum(package.left for package in facts.usable),
        "speed_limit_kbps": speed_of(facts),
        "balance": facts.balance,
        "profile": None if profile is None else plain(profile.get("status"), 40),
        "used_bytes": None if facts.usage is None else facts.usage.data_bytes,
        "charged": None if facts.usage is None else euros(facts.usage.subscriber_cost),
    }
