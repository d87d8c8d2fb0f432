"""Why a line has no data, or slow data; and the sheet of it."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.diagnosis.causes import (
    CAUSE_STEPS,
    CauseEffect,
    CauseMatch,
    DiagnosisCause,
    DiagnosisStep,
    RuleValue,
    cause_effect,
    current_profile_row,
    find_causes,
    speed_limit_kbps,
)
from operations.intelligence.diagnosis.facts import FactPart, LineFacts, read_line_facts
from operations.intelligence.diagnosis.line_advice import LineHelp, read_line_help
from operations.intelligence.diagnosis.line_bars import LineBar, read_line_bars
from operations.intelligence.offers.coverage_map import CoverageMap, NetworkTold, network_view
from operations.intelligence.reports.sheet import (
    Figure,
    Finding,
    Sheet,
    SheetKind,
    SheetValue,
    Table,
    example_finding,
    make_finding,
    sheet_table,
)
from operations.intelligence.verdicts.advice import CHANGING_OPERATIONS, LineProblem, line_problem
from operations.intelligence.verdicts.live_line import judge_live_line
from operations.upstream.lines import Line, LineRef, PackageState, own_line
from operations.upstream.usage import euros
from operations.vocabulary import ProblemCause, upstream_text
from registry.clock import rfc3339_utc
from registry.errors import NotFound, OcsError
from registry.operation import Example, Scope, operation

DIAGNOSIS_METHOD = (
    "A table of causes in a fixed order, each found when its first rule holds for what the charging system says now, its signalling and "
    "the use of the last 7 UTC days with today. `problems` are judged as those of fleet_problems are, by the same rules and 90 days of use."
)
UNREAD_FACTS: dict[FactPart, str] = {
    "packages": "list_subscriber_packages did not answer: causes about packages, zones and balance, and `problems`, were not judged.",
    "speed": "hlr_get_bitrate did not answer: the speed limit is the one of the line's own row.",
    "profile": "get_sim_provider_status did not answer: whether the profile is installed was not judged.",
    "signalling": "subscriber_network_events did not answer: registrations and refused sessions were not judged.",
    "usage": "subscriber_usage did not answer: use of the last days is not shown, and `problems` were not judged.",
    "zones": "list_detailed_location_zones did not answer: whether a package covers the network was not judged.",
    "balance": "list_reseller_accounts did not answer: the balance was not judged.",
}


class Evidence(TypedDict):
    """A rule that holds, and what was seen."""

    rule: Annotated[str, Field(description="A word of ours; the documentation lists them")]
    value: RuleValue
    at: Annotated[str | None, Field(description="RFC 3339, UTC: since when, or when it was seen")]


class Confidence(TypedDict):
    """How many of the rules that could be judged hold."""

    fired: int
    of: int


class NextStep(TypedDict):
    """What to do, and what that costs."""

    operation: Annotated[str, Field(description="A tool of this service")]
    arguments: Annotated[dict[str, str | int | bool], Field(description="What to call it with, as far as the cause tells")]
    why: str
    changes: Annotated[bool, Field(description="It changes something; false: it only looks")]
    customer_pays: Annotated[float | None, Field(description="EUR that the customer pays for it; 0: nothing; null: as much as is chosen")]


class FoundCause(TypedDict):
    """A cause. Where data works, it may be one of `problems`."""

    cause: DiagnosisCause | ProblemCause
    effect: Annotated[CauseEffect, Field(description="For the user; charged: data goes on, and a balance pays for it; none: data works")]
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
    balance_of: Annotated[Literal["line", "account"], Field(description="Whose balance that is")]
    profile: Annotated[str | None, Field(description="The provider's last word on the eSIM profile")]
    used_bytes: Annotated[int | None, Field(description="Data of 7 days")]
    charged: Annotated[float | None, Field(description="EUR charged for use of 7 days")]


class Diagnosis(TypedDict):
    """What is wrong with a line."""

    iccid: str
    account_id: int | None
    first_cause: Annotated[
        DiagnosisCause | ProblemCause,
        Field(description="Of `causes`, the one to mend first; healthy: nothing is wrong; undetermined: something could not be read"),
    ]
    causes: Annotated[list[FoundCause], Field(description="In the order in which to mend them")]
    problems: Annotated[
        list[LineProblem] | None,
        Field(description="As fleet_problems has them, the first to mend first; null: packages or use could not be read"),
    ]
    barred_by: Annotated[list[LineBar], Field(description="Who suspended the line or switched its data off; empty: nobody")]
    line: LineNow


DIAGNOSIS_EXAMPLE: Diagnosis = {
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
            "next_steps": [
                {
                    "operation": "assign_package",
                    "arguments": {"iccid": "8988303700000100286", "packageTemplateId": 55010},
                    "why": CAUSE_STEPS["package_exhausted"][0].why,
                    "changes": True,
                    "customer_pays": 9.0,
                }
            ],
        }
    ],
    "problems": [
        line_problem(
            "exhausted",
            "8988303700000100286",
            1_800_005_400,
            9_000_000,
            {"package_id": 5512, "template_id": 55010, "price": 9.0, "data_limit": 1073741824},
        )
    ],
    "barred_by": [],
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
        "balance_of": "line",
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
    card="line",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Why has this line no data?",
            {"iccid": "8988303700000100286"},
            example_finding(DIAGNOSIS_EXAMPLE, DIAGNOSIS_METHOD),
        )
    ],
)
async def diagnose_subscriber(ctx: Ctx, params: LineRef, line: Line) -> Finding[Diagnosis]:
    """Find why a line has no data, or slow data, and what else is wrong with it.

    Begin with `first_cause` and its next_steps. `incomplete` names what could not be read. `problems` are as in fleet_problems.

    Seven things are read at once: packages and series, speed limit, profile, signalling, use, zones and balance. One that fails does not
    fail the call. Causes come in the order of a fixed table; `confidence` counts the rules of a cause that hold, of those that could be
    judged. It is data that is looked at: packages without data are left out. A line whose data works is `healthy` only where it has no
    `problems`: else the first of these is its cause. Days of use that the read model has for good are not read again; other weeks are,
    back to 90 days. `barred_by` names who did it by ids, as far as it was done through this service.
    """
    facts = await read_line_facts(ctx, line)
    judged = await judge_live_line(ctx, line.upstream, facts)
    causes = find_causes(facts)
    help_ = await read_line_help(ctx, line, facts, causes)
    problems = None if judged is None else judged.problems
    views = [cause_view(found, facts, help_, line.iccid) for found in causes]
    if problems and causes[0].cause in ("healthy", "undetermined"):
        views = [problem_cause(problem) for problem in problems]
    data: Diagnosis = {
        "iccid": line.iccid,
        "account_id": line.row.get("accountId"),
        "first_cause": views[0]["cause"],
        "causes": views,
        "problems": problems,
        "barred_by": await read_line_bars(ctx, line.iccid, facts),
        "line": line_now(facts),
    }
    made = make_finding(data, now=ctx.now, sampled=1, of=1, method=DIAGNOSIS_METHOD)
    reasons = [*(UNREAD_FACTS[part] for part in facts.unread), *([] if judged is None else judged.unread), *help_.unread]
    if reasons:
        made["incomplete"] = {"lines": 0, "reasons": reasons}
    return made


def cause_view(found: CauseMatch, facts: LineFacts, help_: LineHelp, iccid: str) -> FoundCause:
    return {
        "cause": found.cause,
        "effect": cause_effect(found.cause, facts),
        "confidence": {"fired": len(found.fired), "of": len(found.rules)},
        "evidence": [
            {"rule": rule.what, "value": rule.value, "at": None if rule.at is None else rfc3339_utc(rule.at)} for rule in found.fired
        ],
        "next_steps": next_steps(help_.steps(found, facts), iccid),
    }


def next_steps(steps: Sequence[DiagnosisStep], iccid: str) -> list[NextStep]:
    return [
        {
            "operation": step.operation,
            "arguments": {**({"iccid": iccid} if step.of_line else {}), **step.gives},
            "why": step.why,
            "changes": step.changes,
            "customer_pays": None if step.pays is None else euros(step.pays),
        }
        for step in steps
    ]


def problem_cause(problem: LineProblem) -> FoundCause:
    """A problem of a line whose data works, as a cause. What mends such a problem only looks, or tells what to choose."""
    step = problem["do"]
    return {
        "cause": problem["cause"],
        "effect": "none",
        "confidence": {"fired": 1, "of": 1},
        "evidence": [{"rule": rule, "value": value, "at": problem["since"]} for rule, value in problem["evidence"].items()],
        "next_steps": [
            {
                "operation": step["operation"],
                "arguments": step["arguments"],
                "why": step["why"],
                "changes": step["operation"] in CHANGING_OPERATIONS,
                "customer_pays": step["customer_pays"],
            }
        ],
    }


def line_now(facts: LineFacts) -> LineNow:
    code, zones = facts.code, facts.zones
    used, packages = facts.last_used, facts.packages
    profile = current_profile_row(facts.profile or [])
    return {
        "status": facts.status,
        "country": None if code is None else (zones or CoverageMap()).country(code),
        "network": None if code is None else network_view(None if zones is None else zones.find(code), code),
        "seen": None if facts.seen is None else rfc3339_utc(facts.seen),
        "last_used": None if used is None else rfc3339_utc(used),
        "packages": None if packages is None else dict(Counter(package.state for package in packages)),
        "data_left": None if packages is None else sum(package.left for package in facts.usable),
        "speed_limit_kbps": speed_limit_kbps(facts),
        "balance": facts.balance,
        "balance_of": "account" if facts.row.get("useAccountForCharging") else "line",
        "profile": None if profile is None else upstream_text(profile.get("status"), 40),
        "used_bytes": None if facts.usage is None else facts.usage.data_bytes,
        "charged": None if facts.usage is None else euros(facts.usage.subscriber_cost),
    }


CAUSE_HEADLINES: dict[DiagnosisCause | ProblemCause, str] = {
    "status_not_active": "The line is not active.",
    "data_not_allowed": "Data is switched off for the line.",
    "sim_in_stock": "The SIM is in stock, not in use.",
    "profile_not_installed": "The eSIM profile is not installed yet.",
    "profile_disabled": "The eSIM profile is switched off in the device.",
    "profile_deleted": "The eSIM profile was deleted from the device.",
    "no_package": "The line has no package with data.",
    "package_not_started": "The package begins later.",
    "package_expired": "The packages have expired.",
    "package_exhausted": "The package is used up.",
    "package_blocked": "The package is blocked.",
    "zone_not_covering": "The package does not cover the network that the line is on.",
    "throttled": "The line is slowed down.",
    "balance_empty": "The balance is empty.",
    "registrations_rejected": "Networks refuse the line.",
    "never_attached": "The line was never seen on a network.",
    "exhausted": "The package is used up.",
    "expired": "The packages have expired.",
    "blocked": "The package is blocked.",
    "suspended": "The line is suspended.",
    "forbidden": "Data is switched off for the line.",
    "no_coverage": "No package of the line works in the country where it is.",
    "mis_steered": "Data works, mostly on networks beside those of the packages.",
    "wrong_package": "Data works, and other packages would cost the customer half.",
    "high_cost": "Data works, and networks charge more than the customer pays.",
    "abroad": "Data works, in a country where the line hardly ever was.",
    "spike": "Data works, and much more was used than usual.",
    "silence": "The line could be used, and is silent for longer than usual.",
    "churn": "The line could be used, and is used less and less.",
    "series_running_on_suspended": "A series makes packages for a line that is not active.",
    "healthy": "Nothing is wrong with the line.",
    "undetermined": "Not everything could be read, and nothing wrong was seen.",
}


def diagnosis_sheet(found: Finding[Diagnosis]) -> Sheet:
    data = found["data"]
    return {
        "title": "Diagnosis of a line",
        "headline": CAUSE_HEADLINES[data["first_cause"]],
        "figures": diagnosis_figures(data["line"]),
        "charts": [],
        "tables": [
            sheet_table(
                "Causes",
                {"Cause": "word", "Effect": "word", "Rules that hold": "number", "Rules judged": "number", "Next step": "word"},
                [cause_row(cause) for cause in data["causes"]],
            ),
            evidence_table(data),
            diagnosed_line_table(data),
        ],
    }


def diagnosis_figures(line: LineNow) -> list[Figure]:
    """The state of the line, without what could not be read."""
    told: list[tuple[str, SheetKind, SheetValue]] = [
        ("Status", "word", line["status"].replace("_", " ")),
        ("Country", "country", line["country"]),
        ("Network", "network", None if line["network"] is None else f"{line['network']['mcc']}-{line['network']['mnc']}"),
        ("Last seen", "day", None if line["seen"] is None else line["seen"][:10]),
        ("Data left", "bytes", line["data_left"]),
        ("Data used in 7 days", "bytes", line["used_bytes"]),
        ("Charged in 7 days", "money", line["charged"]),
        ("Balance", "money", line["balance"]),
        ("Speed limit, kbit/s", "number", line["speed_limit_kbps"]),
    ]
    return [{"label": label, "kind": kind, "value": value} for label, kind, value in told if value is not None]


def cause_row(cause: FoundCause) -> list[SheetValue]:
    confidence, steps = cause["confidence"], cause["next_steps"]
    words = [cause["cause"].replace("_", " "), cause["effect"].replace("_", " ")]
    return [*words, confidence["fired"], confidence["of"], steps[0]["operation"] if steps else None]


def evidence_table(data: Diagnosis) -> Table:
    """The evidence. Its values come from the charging system, so strangers do not see them."""
    return sheet_table(
        "Evidence",
        {"Cause": "word", "Rule": "word", "Value": "text", "Since": "day"},
        [[cause["cause"].replace("_", " "), *evidence_row(row)] for cause in data["causes"] for row in cause["evidence"]],
    )


def evidence_row(row: Evidence) -> list[SheetValue]:
    value = row["value"]
    return [row["rule"].replace("_", " "), None if value is None else str(value), None if row["at"] is None else row["at"][:10]]


def diagnosed_line_table(data: Diagnosis) -> Table:
    profile, network = data["line"]["profile"], data["line"]["network"]
    return sheet_table(
        "The line",
        {"Line": "line", "Profile": "text", "Operator": "text"},
        [[data["iccid"], profile, None if network is None else network.get("operator")]],
    )
