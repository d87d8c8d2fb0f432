"""Why a line has no data, or slow data: a table of causes in order, each with the rules that speak for it.

A cause is found when its first rule holds; the others say how sure that is. A rule about something that could not be read is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from operations.intelligence.coverage.map import CoverageMap
from operations.intelligence.diagnosis.facts import Facts
from operations.intelligence.lines.profile_stage import profile_now
from operations.intelligence.packages.held import DataPackage, in_date
from operations.services.network.utc_moment import seconds_of

Cause = Literal[
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
Value = str | int | float | bool | None
SLOW_KBPS = 10_240
"""Choice: nobody complains of 10 Mbit/s, so limits from there on are the reseller's product and no cause."""


class Rule(NamedTuple):
    """Something that was looked at. `holds` None: it could not be. `at` is Unix seconds."""

    what: str
    holds: bool | None
    value: Value
    at: float | None = None


def status_not_active(facts: Facts) -> list[Rule]:
    """Only active lines can be used."""
    since = max((seconds_of(row.get("startDate")) or 0.0 for row in facts.row.get("status", [])), default=0.0) or None
    used = seconds_of(facts.row.get("lastUsageDate"))
    unused = None if since is None else used is None or used <= since
    holds = None if facts.status == "UNKNOWN" else facts.status != "ACTIVE"
    return [
        Rule("line_status", holds, facts.status, since),
        Rule("not_used_since", unused, facts.row.get("lastUsageDate"), used),
    ]


def data_not_allowed(facts: Facts) -> list[Rule]:
    """Traffic restrictions."""
    return [Rule("data_allowed", facts.row.get("allowedData") is False, facts.row.get("allowedData"))]


def sim_in_stock(facts: Facts) -> list[Rule]:
    """The card or profile is nobody's, at platform level."""
    status = facts.row.get("sim", {}).get("status", "").upper()
    return [Rule("sim_status", status == "FREE", status)]


def profile_is(stage: str) -> Callable[[Facts], list[Rule]]:
    """What the profile's provider said last, unless the line was seen on a network since."""

    def rules(facts: Facts) -> list[Rule]:
        esim = facts.row.get("sim", {}).get("esim", False)
        now = profile_now(facts.profile or [], seen=facts.seen, esim=esim)
        holds = None if facts.profile is None and esim else now is not None and now.stage == stage
        never = facts.code is None
        return [
            Rule("profile_status", holds, None if now is None else now.status, None if now is None else now.since),
            Rule("not_seen_since", holds, None if never else "before", facts.seen),
        ]

    return rules


def no_package(facts: Facts) -> list[Rule]:
    """None that holds data, and no series that will make one. A line that lives from its balance needs none."""
    if facts.packages is None:
        return [Rule("data_packages", None, None)]
    none = not facts.packages and not facts.upcoming
    return [Rule("data_packages", none and not lives_from_balance(facts), len(facts.packages)), refused_session(facts)]


def lives_from_balance(facts: Facts) -> bool:
    """Whether all that a line without packages used lately was charged to a balance, and nothing of it came from a package."""
    if facts.packages or facts.usage is None:
        return False
    return facts.usage.subscriber_cost > 0 and not any(place.in_package for place in facts.usage.places)


def package_not_started(facts: Facts) -> list[Rule]:
    """All that can still be used begin later."""
    if facts.packages is None:
        return [Rule("packages_in_date", None, None)]
    held = in_date(facts.packages, facts.now)
    waiting = [package for package in held if package.state == "scheduled"]
    starts = min((package.starts or 0.0 for package in waiting), default=None)
    alone = bool(waiting or facts.upcoming) and len(waiting) == len(held)
    return [Rule("first_start", alone, "scheduled" if waiting else "upcoming", starts)]


def package_expired(facts: Facts) -> list[Rule]:
    """Nothing is in date."""
    if facts.packages is None:
        return [Rule("packages_in_date", None, None)]
    over = bool(facts.packages) and not facts.upcoming and not in_date(facts.packages, facts.now)
    last = max((package.ends or 0.0 for package in facts.packages), default=0.0) or None
    return [Rule("last_expiry", over, len(facts.packages), last), refused_session(facts)]


def package_exhausted(facts: Facts) -> list[Rule]:
    """What is in date is used up."""
    spent = unusable(facts, "exhausted")
    if spent is None:
        return [Rule("data_left", None, None)]
    newest = spent[-1] if spent else None
    return [
        Rule("data_left", newest is not None, 0 if newest is not None else None, None if newest is None else newest.starts),
        refused_session(facts),
    ]


def package_blocked(facts: Facts) -> list[Rule]:
    """What is in date is paused."""
    paused = unusable(facts, "blocked")
    if paused is None:
        return [Rule("package_blocked", None, None)]
    return [Rule("package_blocked", bool(paused), paused[-1].id if paused else None), refused_session(facts)]


def unusable(facts: Facts, state: str) -> list[DataPackage] | None:
    """The packages in date of this state, where none can be used; None: they were not read."""
    if facts.packages is None:
        return None
    return [] if facts.usable else [package for package in in_date(facts.packages, facts.now) if package.state == state]


def refused_session(facts: Facts) -> Rule:
    """Whether the charging system refused the newest data session: nobody paid for it."""
    if facts.signalling is None:
        return Rule("session_refused", None, None)
    last = facts.signalling.last_refused_session
    return Rule("session_refused", last is not None, None if last is None else last.result, None if last is None else last.at)


def zone_not_covering(facts: Facts) -> list[Rule]:
    """The packages with data work elsewhere."""
    code, zones = facts.code, facts.zones
    if facts.packages is None or zones is None or code is None:
        return [Rule("network_covered", None, None)]
    ids = [package.zone_id for package in facts.usable]
    covered = not ids or zones.covers(ids, code)
    outside = not covered if covered or all(zones.knows(id) for id in ids) else None
    return [
        Rule("network_covered", outside, f"{code[0]:03d}-{code[1]:02d}", facts.seen),
        Rule("country_covered", *country_covered(zones, ids, facts)),
        refused_session(facts),
    ]


def country_covered(zones: CoverageMap, ids: Sequence[int], facts: Facts) -> tuple[bool | None, str | None]:
    """Whether the zones hold other networks of the country: the line is steered wrongly, then. That they do not speaks for nothing."""
    country = None if facts.code is None else zones.country(facts.code)
    return (None, None) if country is None else (bool(zones.options(ids, country)) or None, country)


def throttled(facts: Facts) -> list[Rule]:
    """A speed limit, as the home register tells it, else as the line's row does."""
    kbps = speed_of(facts)
    row = facts.row.get("throttlingLimit")
    unknown = facts.limit is None and row is None
    return [
        Rule("speed_limit_kbps", None if unknown and "speed" in facts.unread else kbps is not None and kbps < SLOW_KBPS, kbps),
        Rule("row_limit_kbps", None if facts.limit is None else row is not None, row),
    ]


def speed_of(facts: Facts) -> int | None:
    """The limit in kbit/s; None where there is none."""
    if facts.limit is None:
        return facts.row.get("throttlingLimit")
    kilobits = facts.limit.removeprefix("KB_")
    return int(kilobits) if kilobits.isascii() and kilobits.isdigit() and len(kilobits) <= 9 else None


def balance_empty(facts: Facts) -> list[Rule]:
    """Nobody pays for use that no package pays."""
    if facts.packages is None or (facts.balance is None and not served(facts)):
        return [Rule("balance_eur", None, facts.balance)]
    return [Rule("balance_eur", not served(facts) and (facts.balance or 0) <= 0, facts.balance), refused_session(facts)]


def served(facts: Facts) -> bool:
    """Whether a package pays for data where the line is, as far as is known."""
    covering = [rule.holds for rule in zone_not_covering(facts)[:1]]
    return bool(facts.usable) and True not in covering


def registrations_rejected(facts: Facts) -> list[Rule]:
    """The newest registration was refused."""
    if facts.signalling is None:
        return [Rule("last_registration", None, None)]
    last, all_ = facts.signalling.last_registration, facts.signalling.registrations
    refused = sum(attempt.refused for attempt in all_)
    return [
        Rule(
            "last_registration", last is not None and last.refused, None if last is None else last.result, None if last is None else last.at
        ),
        Rule("all_refused", None if last is None else refused == len(all_), refused),
    ]


def never_attached(facts: Facts) -> list[Rule]:
    """No network has seen it."""
    signalled = None if facts.signalling is None else not facts.signalling.registrations
    return [
        Rule("network_seen", facts.code is None and signalled is not False, None),
        Rule("no_registrations", signalled, None if facts.signalling is None else len(facts.signalling.registrations)),
        Rule("never_used", facts.row.get("lastUsageDate") is None, facts.row.get("lastUsageDate")),
    ]


TABLE: Mapping[Cause, Callable[[Facts], list[Rule]]] = {
    "status_not_active": status_not_active,
    "data_not_allowed": data_not_allowed,
    "sim_in_stock": sim_in_stock,
    "profile_not_installed": profile_is("not_installed"),
    "profile_disabled": profile_is("disabled"),
    "profile_deleted": profile_is("deleted"),
    "no_package": no_package,
    "package_not_started": package_not_started,
    "package_expired": package_expired,
    "package_exhausted": package_exhausted,
    "package_blocked": package_blocked,
    "zone_not_covering": zone_not_covering,
    "throttled": throttled,
    "balance_empty": balance_empty,
    "registrations_rejected": registrations_rejected,
    "never_attached": never_attached,
}


class Found(NamedTuple):
    """A cause, and the rules that could be judged."""

    cause: Cause
    rules: list[Rule]

    @property
    def fired(self) -> list[Rule]:
        """Those that hold."""
        return [rule for rule in self.rules if rule.holds]


def causes_of(facts: Facts) -> list[Found]:
    """Every cause whose first rule holds, in the order of the table."""
    found: list[Found] = []
    for cause, judge in TABLE.items():
        rules = judge(facts)
        if rules[0].holds:
            found.append(Found(cause, [rule for rule in rules if rule.holds is not None]))
    return found or [Found("undetermined" if undecided(facts) else "healthy", [])]


def undecided(facts: Facts) -> bool:
    """Whether something that would have told a cause could not be read."""
    return any(judge(facts)[0].holds is None for judge in TABLE.values())
