"""The causes of trouble, each a rule on the facts of one line; docs/fleet.md has them in words.

One fact has one verdict: a cause that another one explains is not told beside it. The order of causes is that of the table `RULES`, and
what explains what is the table `EXPLAINS`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil, log
from statistics import median
from typing import NamedTuple

from operations.fleet.line_reading import next_repetition
from operations.fleet.wire_rows import date_text, day_start, ordinal
from operations.intelligence.verdicts.facts import DAY, WINDOW_DAYS, HeldPackageFacts, VerdictFacts
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import USAGE_TYPE_DATA, euros
from operations.vocabulary import ProblemCause

LEAD_SECONDS = 12 * 3600
"""A package that begins so soon needs nobody's hand."""
SUSPENDED_USE_DAYS = 14
SLOW_KBPS = 10_240
OUTSIDE_SHARE, STEERED_DAYS, STEERED_ON_DAYS = 0.5, 7, 2
PRICE_SHARE, LEAST_PRICE_SAVING, FEWEST_DAYS_OF_NEED = 0.5, 5_000_000, 7
LEAST_LOSS, LOSS_SHARE = 5_000_000, 0.5
AWAY_DAYS, THERE_SHARE, FOREIGN_SHARE, DAYS_BEFORE_LEAVING, FEWEST_DAYS_AT_HOME = (1, 14), 0.05, 0.1, 56, 10
SPIKE_RATIO, SPIKE_LATELY_DAYS, SPIKE_OVER_OTHERS, FEWEST_OTHER_DAYS, LEAST_SPIKE_BYTES = 5.0, 7, 1.5, 6, 1_000_000
SILENT_DAYS, SILENCE_CHANCE, FEWEST_RHYTHM_DAYS, LONGEST_SILENCE = 5, 0.001, 14, 28
FADED_DAYS, DAYS_BEFORE_FADING, FEWEST_BEFORE_FADING, FADED_RATIO, QUIET_DAYS = 14, 28, 5, 2.0, 7
UNATTACHED_DAYS = 3
MONTH_OF_WINDOW = 30 / WINDOW_DAYS

EvidenceValue = str | int | float | None


class CauseFinding(NamedTuple):
    """A cause that holds. `since`: Unix seconds, 0.0: not known; `money`: micro-euro a month that it costs the operator."""

    since: float
    money: int
    evidence: Mapping[str, EvidenceValue]


class Verdict(NamedTuple):
    """A cause that is told of a line."""

    cause: ProblemCause
    found: CauseFinding


Rule = Callable[[VerdictFacts], CauseFinding | None]


def begins_soon(facts: VerdictFacts) -> bool:
    return facts.next_start is not None and facts.next_start <= facts.now + LEAD_SECONDS


def newest(packages: list[HeldPackageFacts]) -> HeldPackageFacts:
    return max(packages, key=lambda package: (package.starts, package.id))


def package_evidence(package: HeldPackageFacts) -> dict[str, EvidenceValue]:
    return {"package_id": package.id, "template_id": package.template_id, "price": euros(package.price)}


def exhausted(facts: VerdictFacts) -> CauseFinding | None:
    """All data is used up: a package runs that is not paused, none has data left, none begins within 12 hours."""
    used_up = [package for package in facts.running() if package.active]
    if not used_up or facts.stocked or begins_soon(facts):
        return None
    last, covered = newest(used_up), facts.last_covered_day
    since = facts.line.last_used if covered is None else min(facts.line.last_used, day_start(covered + 1))
    return CauseFinding(since, facts.lost_income(since), {**package_evidence(last), "data_limit": last.limit})


def expired(facts: VerdictFacts) -> CauseFinding | None:
    """The line had packages with data, and none runs any more, paused ones included; none begins later."""
    if not facts.packages or facts.running() or facts.next_start is not None:
        return None
    last = max(facts.packages, key=lambda package: (package.ends, package.id))
    return CauseFinding(last.ends, facts.lost_income(last.ends), package_evidence(last))


def blocked(facts: VerdictFacts) -> CauseFinding | None:
    """A paused package runs and has data left, and no other one has any."""
    paused = [package for package in facts.running() if not package.active and package.left > 0]
    if not paused or facts.stocked or begins_soon(facts):
        return None
    last = newest(paused)
    return CauseFinding(0.0, facts.lost_income(0.0), {**package_evidence(last), "data_left": last.left})


def suspended(facts: VerdictFacts) -> CauseFinding | None:
    """The line is suspended and missed: used in the last 14 days, or a package that it had before has begun and has data left."""
    if facts.line.status != "SUSPENDED":
        return None
    used = facts.line.last_used >= facts.now - SUSPENDED_USE_DAYS * DAY and facts.line.last_used > 0
    held = [package for package in facts.stocked if package.assigned <= facts.line.status_since and package.starts > 0]
    if not used and not held:
        return None
    evidence: dict[str, EvidenceValue] = {"last_used_day": None if not facts.line.last_used else date_text(ordinal(facts.line.last_used))}
    since, left = facts.line.status_since, sum(package.left for package in facts.stocked)
    return CauseFinding(since, facts.lost_income(since), {**evidence, "data_left": left})


def forbidden(facts: VerdictFacts) -> CauseFinding | None:
    """Data is switched off, and a package has data left."""
    if facts.line.data_allowed != 0 or not facts.stocked:
        return None
    return CauseFinding(0.0, facts.lost_income(0.0), {"data_allowed": 0, "data_left": sum(package.left for package in facts.stocked)})


def no_coverage(facts: VerdictFacts) -> CauseFinding | None:
    """The line is in a country where none of its packages with data left has a network in its zone."""
    country = facts.country
    if country is None or facts.line.data_allowed == 0 or not facts.stocked:
        return None
    if any(facts.works_in(package, country) for package in facts.stocked):
        return None
    began = facts.stay_began
    since = 0.0 if began is None else day_start(began)
    return CauseFinding(since, facts.lost_income(since), {"country": country, "package_id": newest(facts.stocked).id})


def throttled(facts: VerdictFacts) -> CauseFinding | None:
    """The speed is limited to less than 10,240 kbit/s although a package has data left."""
    limit = facts.line.speed_limit
    if not 0 < limit < SLOW_KBPS or facts.line.data_allowed == 0 or not facts.stocked:
        return None
    return CauseFinding(0.0, 0, {"speed_limit_kbps": limit})


class DataBeside(NamedTuple):
    """Data of seven days in countries where packages work: on which days, how much, and at what loss, on networks that no zone of them has.

    `loss`: what those networks charged beyond what the customer paid, micro-euro.
    """

    outside: int
    whole: int
    days: int
    loss: int
    code: NetworkCode | None


def data_beside(facts: VerdictFacts) -> DataBeside:
    """Data on networks that no zone of a package with data left has, where such a zone has others of the country.

    Where sessions outside were refused, since nobody pays, sessions are counted instead of bytes.
    """
    since = facts.today - STEERED_DAYS
    met = [(row.day, (row.mcc, row.mnc), row.quantity, row.network_cost - row.usage_income) for row in facts.usage
           if row.kind == USAGE_TYPE_DATA and row.day > since and row.mcc]  # fmt: skip
    met += [(ordinal(one.at), (one.mcc, one.mnc), 0, 0) for one in facts.refused if one.at >= facts.now - STEERED_DAYS * DAY]
    found: list[tuple[bool, int, NetworkCode, int, int]] = []
    for day, code, size, loss in met:
        held = [
            package.zone_id for package in facts.stocked if package.assigned < day_start(day + 1) and facts.coverage.knows(package.zone_id)
        ]
        country = facts.country_of(code)
        if held and country is not None and facts.coverage.options(held, country):
            found.append((not facts.coverage.covers(held, code), day, code, size, loss))
    beside = [each for each in found if each[0]]
    by_size = all(size for _, _, _, size, _ in beside)
    part, whole = (sum(size if by_size else 1 for _, _, _, size, _ in some) for some in (beside, found))
    codes = Counter(code for _, _, code, _, _ in beside)
    most = max(codes, key=lambda code: (codes[code], code), default=None)
    return DataBeside(part, whole, len({day for _, day, *_ in beside}), max(0, sum(loss for *_, loss in beside)), most)


def mis_steered(facts: VerdictFacts) -> CauseFinding | None:
    """Half or more of the data of seven days, on two days or more, was used beside the networks that the packages work on."""
    if facts.country is None or facts.line.data_allowed == 0 or not facts.stocked:
        return None
    use = data_beside(facts)
    if use.code is None or use.days < STEERED_ON_DAYS or use.outside < OUTSIDE_SHARE * use.whole:
        return None
    evidence: dict[str, EvidenceValue] = {
        "mcc": f"{use.code[0]:03d}",
        "mnc": f"{use.code[1]:02d}",
        "country": facts.country_of(use.code),
        "days": use.days,
        "share_percent": round(100 * use.outside / use.whole, 1) if use.whole else None,
    }
    return CauseFinding(0.0, use.loss * 30 // STEERED_DAYS, evidence)


def wrong_package(facts: VerdictFacts) -> CauseFinding | None:
    """The cheapest packages for what was used cost the customer half of what is paid now or less, and 5 EUR less a month."""
    now = facts.monthly_price
    if now < LEAST_PRICE_SAVING or facts.days_used(-WINDOW_DAYS, 0) < FEWEST_DAYS_OF_NEED:
        return None
    found = facts.find_cheapest()
    if found is None or found.price > PRICE_SHARE * now or now - found.price < LEAST_PRICE_SAVING:
        return None
    saving = euros(now - found.price)
    template = found.templates[0] if found.templates else None
    evidence = {"paid_a_month": euros(now), "cheapest_a_month": euros(found.price), "saving_customer": saving, "template_id": template}
    return CauseFinding(0.0, 0, evidence)


def high_cost(facts: VerdictFacts) -> CauseFinding | None:
    """In four weeks networks charged 5 EUR more than the customer pays, and half as much again."""
    income = facts.package_income(whole=True) + facts.usage_income
    loss = facts.network_cost - income
    if loss < max(LEAST_LOSS, LOSS_SHARE * income):
        return None
    evidence: dict[str, EvidenceValue] = {
        "network_cost": euros(facts.network_cost),
        "package_income": euros(facts.package_income(whole=True)),
        "usage_income": euros(facts.usage_income),
        "margin": euros(-loss),
    }
    return CauseFinding(0.0, round(loss * MONTH_OF_WINDOW), evidence)


def abroad(facts: VerdictFacts) -> CauseFinding | None:
    """For 1 to 14 days the line has been in a country where it hardly ever was, and it hardly ever leaves its own."""
    here, began = facts.country, facts.stay_began
    if here is None or began is None or not AWAY_DAYS[0] <= facts.today - began <= AWAY_DAYS[1]:
        return None
    before = [places for day, places in facts.countries_by_day.items() if began - DAYS_BEFORE_LEAVING <= day < began]
    if len(before) < FEWEST_DAYS_AT_HOME:
        return None
    days = Counter(country for places in before for country in places)
    home = min(days, key=lambda country: (-days[country], country))
    foreign = sum(bool(places - {home}) for places in before)
    if home == here or days[here] > THERE_SHARE * len(before) or foreign > FOREIGN_SHARE * len(before):
        return None
    loss = sum(row.network_cost - row.usage_income for row in facts.usage if row.day >= began)
    stay = max(1, facts.today - began + 1)
    loss -= facts.package_income(whole=False) * stay // WINDOW_DAYS
    return CauseFinding(day_start(began), max(0, loss) * 30 // stay, {"country": here, "usual_country": home, "days": facts.today - began})


def spike(facts: VerdictFacts) -> CauseFinding | None:
    """On one of the last seven whole days the line used five times as much data as usual."""
    data = facts.data_by_day
    for day in sorted(data, reverse=True):
        if day < facts.today - SPIKE_LATELY_DAYS:
            return None
        others = [size for each, size in data.items() if each != day]
        if len(others) < FEWEST_OTHER_DAYS or data[day] < SPIKE_RATIO * (usual := median(others)):
            continue
        dearest = max((size for size in others if size < SPIKE_RATIO * usual), default=0)
        if data[day] >= SPIKE_OVER_OTHERS * dearest and data[day] - usual >= LEAST_SPIKE_BYTES:
            loss = sum(row.network_cost - row.usage_income for row in facts.recent if row.day == day)
            return CauseFinding(day_start(day), max(0, loss), {"day": date_text(day), "bytes": data[day], "usual_bytes": round(usual)})
    return None


def silence(facts: VerdictFacts) -> CauseFinding | None:
    """An active line is without use for longer than its own rhythm explains: five whole days at least."""
    if facts.line.status != "ACTIVE" or not facts.used_days:
        return None
    first, last = facts.used_days[0], facts.used_days[-1]
    days = min(WINDOW_DAYS, last - first + 1)
    share = (sum(day > last - days for day in facts.used_days) + 1) / (days + 2)
    if days < FEWEST_RHYTHM_DAYS or share < 0.5:
        return None
    needed = max(SILENT_DAYS, ceil(log(SILENCE_CHANCE) / log(1 - share)))
    quiet = facts.today - 1 - last
    if not needed <= quiet <= LONGEST_SILENCE:
        return None
    since = day_start(last + 1)
    return CauseFinding(since, facts.lost_income(since), {"silent_days": quiet, "used_share_percent": round(100 * share, 1)})


def churn(facts: VerdictFacts) -> CauseFinding | None:
    """An active line fades out: it is used half as often as before or less, and not at all in the last seven days."""
    if facts.line.status != "ACTIVE" or not facts.used_days:
        return None
    before, last = facts.days_used(-FADED_DAYS - DAYS_BEFORE_FADING, -FADED_DAYS), facts.days_used(-FADED_DAYS, 0)
    rarer = before >= FEWEST_BEFORE_FADING and FADED_RATIO * last / FADED_DAYS <= before / DAYS_BEFORE_FADING
    if not rarer or facts.days_used(-QUIET_DAYS, 1):
        return None
    quiet_since = day_start(facts.used_days[-1] + 1)
    return CauseFinding(quiet_since, facts.lost_income(quiet_since), {"used_days_before": before, "used_days_lately": last})


def series_on_suspended(facts: VerdictFacts) -> CauseFinding | None:
    """A series goes on making packages for a line that is not active."""
    if facts.line.status not in ("SUSPENDED", "INACTIVE", "DISCONNECTED"):
        return None
    running = [row for row in facts.series if next_repetition(row, facts.now) is not None]
    if not running:
        return None
    made = [package.price for package in facts.all_packages if package.series_id in {row.get("id") for row in running}]
    return CauseFinding(facts.line.status_since, made[-1] if made else 0, {"series_id": running[0].get("id"), "status": facts.line.status})


def never_attached(facts: VerdictFacts) -> CauseFinding | None:
    """An active line has had a package for three days or longer, and no network has ever seen it."""
    since = min((package.assigned for package in facts.packages), default=facts.now)
    if facts.line.status != "ACTIVE" or facts.line.mcc or facts.line.last_used > 0 or since > facts.now - UNATTACHED_DAYS * DAY:
        return None
    return CauseFinding(since, 0, {"waiting_days": int((facts.now - since) // DAY)})


RULES: Mapping[ProblemCause, Rule] = {
    "exhausted": exhausted,
    "expired": expired,
    "blocked": blocked,
    "suspended": suspended,
    "forbidden": forbidden,
    "no_coverage": no_coverage,
    "throttled": throttled,
    "mis_steered": mis_steered,
    "wrong_package": wrong_package,
    "high_cost": high_cost,
    "abroad": abroad,
    "spike": spike,
    "silence": silence,
    "churn": churn,
    "series_running_on_suspended": series_on_suspended,
    "never_attached": never_attached,
}
"""In the order in which to mend them."""
CAUSE_PLACES: Mapping[ProblemCause, int] = {cause: place for place, cause in enumerate(RULES)}
NEEDS_PRESENCE: frozenset[ProblemCause] = frozenset(
    {
        "exhausted",
        "expired",
        "blocked",
        "forbidden",
        "no_coverage",
        "throttled",
        "mis_steered",
        "wrong_package",
        "high_cost",
        "abroad",
    }
)
"""Told of an active line that a network saw in the last seven days: else nobody is there who could notice."""
NO_DATA: tuple[ProblemCause, ...] = ("exhausted", "expired", "blocked", "suspended", "forbidden", "no_coverage")
AFTER_NO_DATA: tuple[ProblemCause, ...] = (*NO_DATA, "throttled", "wrong_package", "silence", "churn")
EXPLAINS: Mapping[ProblemCause, tuple[ProblemCause, ...]] = {
    **dict.fromkeys(NO_DATA, AFTER_NO_DATA),
    "exhausted": (*AFTER_NO_DATA, "spike"),
    "suspended": (*AFTER_NO_DATA, "series_running_on_suspended"),
    "no_coverage": (*AFTER_NO_DATA, "abroad"),
    "throttled": ("wrong_package", "spike"),
    "mis_steered": ("wrong_package", "high_cost", "abroad", "silence", "churn"),
    "high_cost": ("spike",),
    "silence": ("churn",),
    "series_running_on_suspended": ("wrong_package", "silence", "churn"),
    "never_attached": ("expired", "wrong_package", "silence", "churn"),
}
"""What a cause explains of the same line: that is not told beside it."""


class LineVerdicts(NamedTuple):
    """What is told of a line. `open`: more would be told if a network had seen it lately, and that has not been asked for."""

    verdicts: list[Verdict]
    open: bool


def is_judged(facts: VerdictFacts) -> bool:
    """Whether a customer has the line: it is issued, and not at its end."""
    return facts.line.sim_status != "FREE" and facts.line.status not in ("PENDING", "END_OF_LIFE")


def find_verdicts(facts: VerdictFacts) -> LineVerdicts:
    """The causes that hold, in the order in which to mend them, without those that another one explains."""
    if not is_judged(facts):
        return LineVerdicts([], False)
    told: list[Verdict] = []
    explained = set[ProblemCause]()
    unseen = False
    present = facts.present()
    for cause, rule in RULES.items():
        if cause in explained:
            continue
        needs = cause in NEEDS_PRESENCE
        if needs and facts.line.status != "ACTIVE":
            continue
        found = rule(facts)
        if found is None:
            continue
        if needs and not present:
            unseen = True
            continue
        explained.update(EXPLAINS.get(cause, ()))
        told.append(Verdict(cause, found))
    return LineVerdicts(without_explained(told), unseen or is_stay_open(facts))


def without_explained(told: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts without those that a later one explains. Of two that explain each other the first stays, and the other was left out."""
    return [each for each in told if not any(each.cause in EXPLAINS.get(other.cause, ()) for other in told if other is not each)]


def is_stay_open(facts: VerdictFacts) -> bool:
    """Whether an active line was last seen in a country where it has no use yet, and nobody has asked since when it is there.

    One that was used too long ago to have been at home anywhere is left alone.
    """
    lately = facts.line.last_used >= facts.now - (DAYS_BEFORE_LEAVING + AWAY_DAYS[1]) * DAY
    return facts.line.status == "ACTIVE" and facts.country is not None and lately and facts.stay_began is None
