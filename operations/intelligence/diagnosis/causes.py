"""Why a line has no data, or slow data: a table of causes in order, each with the rules that speak for it and the operations that help.

A cause is found when its first rule holds; the others say how sure that is. A rule about something that could not be read is left out.
How far an eSIM profile has come is told by the words of its provider: an open set, of which those of GSMA SGP.22 ES2+ are known.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from clients.ocs.subscribers import ProviderStatus
from clients.ocs.times import wire_seconds
from operations.intelligence.diagnosis.facts import DataPackage, LineFacts, packages_in_date
from operations.intelligence.offers.coverage_map import CoverageMap
from operations.vocabulary import ProblemCause, upstream_text

ProfileStage = Literal["not_installed", "disabled", "deleted"]
PROFILE_STAGES: Mapping[str, ProfileStage] = {
    **dict.fromkeys(("AVAILABLE", "ALLOCATED", "LINKED", "CONFIRMED", "RELEASED", "DOWNLOADED", "UNAVAILABLE", "ERROR"), "not_installed"),
    **dict.fromkeys(("INSTALLED", "DISABLE", "DISABLED"), "disabled"),
    **dict.fromkeys(("DELETE", "DELETED"), "deleted"),
}


class ProfileProblem(NamedTuple):
    """How far an eSIM profile has come. `status` is the provider's word, `since` Unix seconds."""

    stage: ProfileStage
    status: str
    since: float | None


def current_profile_row(rows: Sequence[ProviderStatus]) -> ProviderStatus | None:
    """The row without an end time; of several, or of none, the newest."""
    current = [row for row in rows if row.get("end") is None]
    return max(current or rows, key=lambda row: row.get("start", ""), default=None)


def profile_problem(rows: Sequence[ProviderStatus], *, seen: float | None, esim: bool) -> ProfileProblem | None:
    """What the provider's last word stands for; nothing where it is well, unknown, a plastic card's, or disproved.

    Choice: a line that was seen on a network after that word had its profile enabled then, and the provider has not said so yet.
    """
    row = current_profile_row(rows) if esim else None
    stage = None if row is None else PROFILE_STAGES.get(row.get("status", "").upper())
    if row is None or stage is None:
        return None
    since = wire_seconds(row.get("start"))
    disproved = seen is not None and since is not None and seen > since
    return None if disproved else ProfileProblem(stage, upstream_text(row.get("status"), 40), since)


DiagnosisCause = Literal[
    "status_not_active",
    "data_not_allowed",
    "sim_in_stock",
    "profile_not_installed",
    "profile_disabled",
    "profile_deleted",
    "no_package",
    "package_not_started",
    "package_expired",
    "package_exhausted",
    "package_blocked",
    "zone_not_covering",
    "throttled",
    "balance_empty",
    "registrations_rejected",
    "never_attached",
    "healthy",
    "undetermined",
]
RuleValue = str | int | float | bool | None
SLOW_LIMIT_KBPS = 10_240
"""Choice: 10 Mbit/s feels fast enough, so limits from there on are the reseller's product and no cause."""


class DiagnosisRule(NamedTuple):
    """Something that was looked at. `holds` None: it could not be. `at` is Unix seconds."""

    what: str
    holds: bool | None
    value: RuleValue
    at: float | None = None


def status_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """Only active lines can be used."""
    since = max((wire_seconds(row.get("startDate")) or 0.0 for row in facts.row.get("status", [])), default=0.0) or None
    used = facts.last_used
    unused = None if since is None else used is None or used <= since
    holds = None if facts.status == "UNKNOWN" else facts.status != "ACTIVE"
    return [
        DiagnosisRule("line_status", holds, facts.status, since),
        DiagnosisRule("not_used_since", unused, facts.row.get("lastUsageDate"), used),
    ]


def data_allowed_rules(facts: LineFacts) -> list[DiagnosisRule]:
    return [DiagnosisRule("data_allowed", facts.row.get("allowedData") is False, facts.row.get("allowedData"))]


def sim_stock_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """Whether the SIM is in stock at platform level, so that no customer has it."""
    status = facts.row.get("sim", {}).get("status", "").upper()
    return [DiagnosisRule("sim_status", status == "FREE", status)]


def profile_rules(stage: str) -> Callable[[LineFacts], list[DiagnosisRule]]:
    """What the profile's provider said last, unless the line was seen on a network since then."""

    def rules(facts: LineFacts) -> list[DiagnosisRule]:
        esim = facts.row.get("sim", {}).get("esim", False)
        now = profile_problem(facts.profile or [], seen=facts.seen, esim=esim)
        holds = None if facts.profile is None and esim else now is not None and now.stage == stage
        never = facts.code is None
        return [
            DiagnosisRule("profile_status", holds, None if now is None else now.status, None if now is None else now.since),
            DiagnosisRule("not_seen_since", holds, None if never else "before", facts.seen),
        ]

    return rules


def no_package_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """No package holds data, and no series will make one. A line that pays from its balance needs none."""
    if facts.packages is None:
        return [DiagnosisRule("data_packages", None, None)]
    none = not facts.packages and not facts.upcoming
    return [DiagnosisRule("data_packages", none and not is_charged_to_balance(facts), len(facts.packages)), refused_session_rule(facts)]


def is_charged_to_balance(facts: LineFacts) -> bool:
    """Whether all recent use of a line without packages was charged to a balance."""
    if facts.packages or facts.usage is None:
        return False
    return facts.usage.subscriber_cost > 0 and not any(place.in_package for place in facts.usage.places)


def package_start_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """All packages that can still be used begin later."""
    if facts.packages is None:
        return [DiagnosisRule("packages_in_date", None, None)]
    held = packages_in_date(facts.packages, facts.now)
    waiting = [package for package in held if package.state == "scheduled"]
    starts = min((package.starts or 0.0 for package in waiting), default=None)
    alone = bool(waiting or facts.upcoming) and len(waiting) == len(held)
    return [DiagnosisRule("first_start", alone, "scheduled" if waiting else "upcoming", starts)]


def package_expiry_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """No package is within its dates."""
    if facts.packages is None:
        return [DiagnosisRule("packages_in_date", None, None)]
    over = bool(facts.packages) and not facts.upcoming and not packages_in_date(facts.packages, facts.now)
    last = max((package.ends or 0.0 for package in facts.packages), default=0.0) or None
    return [DiagnosisRule("last_expiry", over, len(facts.packages), last), refused_session_rule(facts)]


def package_data_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """The packages within their dates have no data left."""
    spent = unusable_packages(facts, "exhausted")
    if spent is None:
        return [DiagnosisRule("data_left", None, None)]
    newest = spent[-1] if spent else None
    return [
        DiagnosisRule("data_left", newest is not None, 0 if newest is not None else None, None if newest is None else newest.starts),
        refused_session_rule(facts),
    ]


def package_block_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """The packages within their dates are paused."""
    paused = unusable_packages(facts, "blocked")
    if paused is None:
        return [DiagnosisRule("package_blocked", None, None)]
    return [DiagnosisRule("package_blocked", bool(paused), paused[-1].id if paused else None), refused_session_rule(facts)]


def unusable_packages(facts: LineFacts, state: str) -> list[DataPackage] | None:
    """The packages within their dates in `state`, if none of them can be used; None if packages were not read."""
    if facts.packages is None:
        return None
    return [] if facts.usable else [package for package in packages_in_date(facts.packages, facts.now) if package.state == state]


def refused_session_rule(facts: LineFacts) -> DiagnosisRule:
    """Whether the charging system refused the newest data session, which it does where nothing pays for the use."""
    if facts.signalling is None:
        return DiagnosisRule("session_refused", None, None)
    last = facts.signalling.last_refused_session
    return DiagnosisRule("session_refused", last is not None, None if last is None else last.result, None if last is None else last.at)


def zone_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """The packages with data work in other networks."""
    code, zones = facts.code, facts.zones
    if facts.packages is None or zones is None or code is None:
        return [DiagnosisRule("network_covered", None, None)]
    ids = [package.zone_id for package in facts.usable]
    covered = not ids or zones.covers(ids, code)
    outside = not covered if covered or all(zones.knows(id) for id in ids) else None
    return [
        DiagnosisRule("network_covered", outside, f"{code[0]:03d}-{code[1]:02d}", facts.seen),
        DiagnosisRule("country_covered", *country_coverage(zones, ids, facts)),
        refused_session_rule(facts),
    ]


def country_coverage(zones: CoverageMap, ids: Sequence[int], facts: LineFacts) -> tuple[bool | None, str | None]:
    """Whether the zones hold other networks of the country; then the line is steered wrongly. If not, it proves nothing."""
    country = None if facts.code is None else zones.country(facts.code)
    return (None, None) if country is None else (bool(zones.options(ids, country)) or None, country)


def speed_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """A speed limit, by the home register if it was read, else by the line's row."""
    kbps = speed_limit_kbps(facts)
    row = facts.row.get("throttlingLimit")
    unknown = facts.limit is None and row is None
    return [
        DiagnosisRule(
            "speed_limit_kbps", None if unknown and "speed" in facts.unread else kbps is not None and kbps < SLOW_LIMIT_KBPS, kbps
        ),
        DiagnosisRule("row_limit_kbps", None if facts.limit is None else row is not None, row),
    ]


def speed_limit_kbps(facts: LineFacts) -> int | None:
    """The limit in kbit/s; None without a limit."""
    if facts.limit is None:
        return facts.row.get("throttlingLimit")
    kilobits = facts.limit.removeprefix("KB_")
    return int(kilobits) if kilobits.isascii() and kilobits.isdigit() and len(kilobits) <= 9 else None


def balance_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """No package and no balance pays for the use."""
    if facts.packages is None or (facts.balance is None and not is_served_by_package(facts)):
        return [DiagnosisRule("balance_eur", None, facts.balance)]
    return [
        DiagnosisRule("balance_eur", not is_served_by_package(facts) and (facts.balance or 0) <= 0, facts.balance),
        refused_session_rule(facts),
    ]


def is_served_by_package(facts: LineFacts) -> bool:
    """Whether a package pays for data where the line is, as far as is known."""
    covering = [rule.holds for rule in zone_rules(facts)[:1]]
    return bool(facts.usable) and True not in covering


def registration_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """The newest registration was refused."""
    if facts.signalling is None:
        return [DiagnosisRule("last_registration", None, None)]
    last, all_ = facts.signalling.last_registration, facts.signalling.registrations
    refused = sum(attempt.refused for attempt in all_)
    return [
        DiagnosisRule(
            "last_registration", last is not None and last.refused, None if last is None else last.result, None if last is None else last.at
        ),
        DiagnosisRule("all_refused", None if last is None else refused == len(all_), refused),
    ]


def attachment_rules(facts: LineFacts) -> list[DiagnosisRule]:
    """No network has seen the line."""
    signalled = None if facts.signalling is None else not facts.signalling.registrations
    return [
        DiagnosisRule("network_seen", facts.code is None and signalled is not False, None),
        DiagnosisRule("no_registrations", signalled, None if facts.signalling is None else len(facts.signalling.registrations)),
        DiagnosisRule("never_used", facts.row.get("lastUsageDate") is None, facts.row.get("lastUsageDate")),
    ]


CAUSE_RULES: Mapping[DiagnosisCause, Callable[[LineFacts], list[DiagnosisRule]]] = {
    "status_not_active": status_rules,
    "data_not_allowed": data_allowed_rules,
    "sim_in_stock": sim_stock_rules,
    "profile_not_installed": profile_rules("not_installed"),
    "profile_disabled": profile_rules("disabled"),
    "profile_deleted": profile_rules("deleted"),
    "no_package": no_package_rules,
    "package_not_started": package_start_rules,
    "package_expired": package_expiry_rules,
    "package_exhausted": package_data_rules,
    "package_blocked": package_block_rules,
    "zone_not_covering": zone_rules,
    "throttled": speed_rules,
    "balance_empty": balance_rules,
    "registrations_rejected": registration_rules,
    "never_attached": attachment_rules,
}


class CauseMatch(NamedTuple):
    """A cause, and the rules that could be judged."""

    cause: DiagnosisCause
    rules: list[DiagnosisRule]

    @property
    def fired(self) -> list[DiagnosisRule]:
        return [rule for rule in self.rules if rule.holds]


def find_causes(facts: LineFacts) -> list[CauseMatch]:
    """Every cause of which the first rule holds, in the order of the table; else `undetermined` or `healthy`."""
    found: list[CauseMatch] = []
    for cause, judge in CAUSE_RULES.items():
        rules = judge(facts)
        if rules[0].holds:
            found.append(CauseMatch(cause, [rule for rule in rules if rule.holds is not None]))
    return found or [CauseMatch("undetermined" if any(judge(facts)[0].holds is None for judge in CAUSE_RULES.values()) else "healthy", [])]


CauseEffect = Literal["no_data", "slow", "charged", "none", "unknown"]
CAUSES_WITH_CHARGE: frozenset[DiagnosisCause] = frozenset(
    {"no_package", "package_not_started", "package_expired", "package_exhausted", "package_blocked", "zone_not_covering"}
)
"""What leaves use without a package: a balance pays for it, where there is one."""


class DiagnosisStep(NamedTuple):
    """An operation, and what to do with it.

    `gives`: arguments beside the line; `of_package`: it is about the newest package, so that names its id. `changes`: it changes
    something. `pays`: micro-euro that the customer pays for it; None: that depends on what is chosen.
    """

    operation: str
    why: str
    gives: Mapping[str, str | int | bool] = {}
    changes: bool = False
    pays: int | None = 0
    of_package: bool = False
    of_line: bool = True


ASSIGN_PACKAGE_STEP = DiagnosisStep(
    "assign_package", "Put a package with data on the line; list_package_templates names them.", changes=True, pays=None
)
NETWORK_EVENTS_STEP = DiagnosisStep("subscriber_network_events", "See which networks refused it, and with what result.")
PUSH_STEP = DiagnosisStep("push_steering_to_subscriber", "Have the SIM try the networks of its steering list.", changes=True)
CAUSE_STEPS: Mapping[DiagnosisCause, tuple[DiagnosisStep, ...]] = {
    "status_not_active": (
        DiagnosisStep(
            "modify_subscriber_status", "Set ACTIVE; a line that has ended stays ended, use another.", {"status": "ACTIVE"}, changes=True
        ),
    ),
    "data_not_allowed": (DiagnosisStep("set_subscriber_traffic_restrictions", "Send data: true.", {"data": True}, changes=True),),
    "sim_in_stock": (
        DiagnosisStep("change_sim_status", "Send ENABLED: the SIM is in stock, not in use.", {"status": "ENABLED"}, changes=True),
    ),
    "profile_not_installed": (
        DiagnosisStep("get_subscriber", "Ask for the field activationCode and give it to the user once more, to install the eSIM with."),
        DiagnosisStep("get_sim_provider_status", "Look again when the user has installed it."),
    ),
    "profile_disabled": (DiagnosisStep("get_sim_provider_status", "Have the user switch the eSIM on in the device, then look again."),),
    "profile_deleted": (
        DiagnosisStep("get_subscriber", "A deleted profile mostly cannot be installed again: see which line the user had."),
        DiagnosisStep("list_subscribers", "Choose a line from stock (status INACTIVE) for the user.", of_line=False),
    ),
    "no_package": (ASSIGN_PACKAGE_STEP,),
    "package_not_started": (
        DiagnosisStep("modify_subscriber_package_active_period", "Begin earlier, where it has no date yet.", changes=True, of_package=True),
        ASSIGN_PACKAGE_STEP,
    ),
    "package_expired": (
        ASSIGN_PACKAGE_STEP,
        DiagnosisStep("modify_package_expiry", "Or lengthen the package that has data left.", changes=True, of_package=True),
    ),
    "package_exhausted": (
        ASSIGN_PACKAGE_STEP,
        DiagnosisStep("modify_package_limits", "Or raise the package's data limit.", changes=True, of_package=True),
    ),
    "package_blocked": (
        DiagnosisStep("modify_package_status", "Send ACTIVE to release the package.", {"status": "ACTIVE"}, changes=True, of_package=True),
    ),
    "zone_not_covering": (
        DiagnosisStep(
            "audit_network_coverage", "It names a steering list that leads to a covered network, if one is known.", of_line=False
        ),
    ),
    "throttled": (
        DiagnosisStep("hlr_set_bitrate", "Send UNLIMITED, where the limit was set by hand.", {"bitrateString": "UNLIMITED"}, changes=True),
        DiagnosisStep("assign_package", "Where a package's threshold or fair use set it: a new package lifts it.", changes=True, pays=None),
    ),
    "balance_empty": (
        DiagnosisStep("modify_subscriber_balance", "Add to the line's balance, where that pays.", changes=True, pays=None),
        DiagnosisStep("modify_account_balance", "Else to the account's.", changes=True, pays=None, of_line=False),
    ),
    "registrations_rejected": (NETWORK_EVENTS_STEP, PUSH_STEP),
    "never_attached": (
        DiagnosisStep("get_sim_provider_status", "See whether the profile is installed and enabled."),
        DiagnosisStep("subscriber_network_events", "Have the user switch data roaming on and the device off and on, then look."),
    ),
    "healthy": (),
    "undetermined": (DiagnosisStep("diagnose_subscriber", "Ask again: not everything could be read."),),
}
"""What helps, by cause. Where a zone does not cover the network it is what looks closer; line_advice.py beside says what helps it."""


def cause_effect(cause: DiagnosisCause | ProblemCause, facts: LineFacts) -> CauseEffect:
    if cause not in CAUSE_RULES:
        return "unknown" if cause == "undetermined" else "none"
    if cause == "throttled":
        return "slow"
    return "charged" if cause in CAUSES_WITH_CHARGE and (facts.balance or 0) > 0 else "no_data"
