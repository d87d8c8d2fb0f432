"""Which lines of a simulated network have which trouble at a moment: the judge of fleet problems.

This was written before the operation that it judges and knows nothing of it: it reads the simulated network's own state. Nobody tells it
what was planted. A line that lives as it does by chance is judged like one that was made to.

Each cause is a rule below, and the docstring of the rule is its definition. The words that they use:

- *now* is the network's clock. A day is a UTC day; whole days are those before today. *The last four weeks* are the last 28 whole days.
- *Use* is a call record, but not an incoming message.
- A *data package* holds data. It *runs* while it is within its dates; one that waits for its first use has none, and runs. It is *stocked*
  when it runs, is not paused and has data left.
- A line is *present* when a network saw it in the last 7 days, by a registration or a use: the SIM is in a device that is switched on.
- A balance *pays* when the tariff has a price for data on the network where the line is, and the balance that is charged (the line's own,
  or its account's) buys a mebibyte there.

Judged are lines that a customer has: the SIM is issued (not FREE), and the line is neither PENDING nor at its end of life.

*True* is what must be found. *Allowed* is what may be told and counts neither way: what the `Choice:` of a rule says; what would be true of
a line that was last seen 7 to 28 days ago, were it present; and what another cause, true or of the latter kind, explains (`EXPLAINS`). One
fact has one verdict: a line out of coverage abroad is not also silent and churning. Everything else that is told is a false alarm.

A true cause is *borderline* when its rule would not hold with limits drawn a little tighter (`TIGHT`). What is neither true nor allowed,
but would hold with limits drawn a little wider (`LOOSE`), is a *near miss*.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from math import ceil, log
from statistics import median
from typing import Literal, NamedTuple, get_args

from benchmarks.fleet_line import WINDOW_DAYS, LineState, ObservedNetwork
from simulators.network.entities import DATA, DAY_SECONDS, MICRO_EURO, UNLIMITED_BITRATE
from simulators.network.world import World

FleetCause = Literal[
    "exhausted",
    "expired",
    "blocked",
    "suspended",
    "forbidden",
    "no_coverage",
    "throttled",
    "mis_steered",
    "wrong_package",
    "high_cost",
    "abroad",
    "spike",
    "silence",
    "churn",
    "series_running_on_suspended",
    "never_attached",
]
FLEET_CAUSES: tuple[FleetCause, ...] = get_args(FleetCause)
"""In the order of verdicts: of two causes that explain each other the first one is the verdict."""
NO_DATA: tuple[FleetCause, ...] = FLEET_CAUSES[:6]
AFTER_NO_DATA: tuple[FleetCause, ...] = (*NO_DATA, "throttled", "wrong_package", "silence", "churn")
EXPLAINS: Mapping[FleetCause, tuple[FleetCause, ...]] = {
    **dict.fromkeys(NO_DATA, AFTER_NO_DATA),
    "exhausted": (*AFTER_NO_DATA, "spike"),
    "suspended": (*AFTER_NO_DATA, "series_running_on_suspended"),
    "no_coverage": (*AFTER_NO_DATA, "abroad"),
    "throttled": ("wrong_package", "spike"),
    "mis_steered": ("wrong_package", "high_cost", "abroad", "silence", "churn"),
    "high_cost": ("spike",),
    "silence": ("churn",),
    "series_running_on_suspended": ("suspended", "wrong_package", "silence", "churn"),
    "never_attached": ("expired", "wrong_package", "silence", "churn"),
}
"""What a cause explains of the same line. It is allowed, whether or not its own rule holds."""
HOUR_SECONDS = 3_600


class Limits(NamedTuple):
    """The limits of all rules, as they are meant."""

    present_days: int = 7
    lag: int = 0
    """Seconds for which a package counts as running after its end where that speaks against a trouble, and by which it counts as ended
    before its end where the trouble needs it running."""
    empty_share: float = 0.0
    """Of a package: so much may be left in one that is used up."""
    lead: int = 12 * HOUR_SECONDS
    """Seconds until another package begins, within which nobody need do anything."""
    suspended_use_days: int = 14
    needs_package: bool = True
    """Whether data that is switched off needs a package to be missed."""
    arrived_days: int = 0
    slow_kbps: int = 10_240
    outside_share: float = 0.5
    price_share: float = 0.5
    saving: int = 5 * MICRO_EURO
    loss: int = 5 * MICRO_EURO
    loss_share: float = 0.5
    """Of what the customer pays."""
    away_days: tuple[int, int] = (1, 14)
    there_share: float = 0.05
    foreign_share: float = 0.1
    spike_ratio: float = 5.0
    rest_days: int = 0
    """Days of silence beyond those that are unusual."""
    faded: float = 2.0
    """How many times as often the line was used before."""
    quiet_days: int = 7
    needs_future: bool = True
    """Whether a line that leaves must be seen to have left."""
    repetitions: int = 1
    unattached_days: int = 3


STRICT = Limits()
TIGHT = Limits(
    present_days=5,
    lag=24 * HOUR_SECONDS,
    lead=36 * HOUR_SECONDS,
    suspended_use_days=12,
    arrived_days=2,
    slow_kbps=7_680,
    outside_share=0.65,
    price_share=0.4,
    saving=6_250_000,
    loss=6_250_000,
    loss_share=0.75,
    away_days=(2, 12),
    there_share=0.0,
    foreign_share=0.05,
    spike_ratio=5.5,
    rest_days=1,
    faded=3.0,
    quiet_days=9,
    repetitions=2,
    unattached_days=4,
)
LOOSE = Limits(
    present_days=9,
    lag=-24 * HOUR_SECONDS,
    empty_share=0.05,
    lead=0,
    suspended_use_days=16,
    needs_package=False,
    slow_kbps=20_480,
    outside_share=0.35,
    price_share=0.6,
    saving=4_000_000,
    loss=4_000_000,
    loss_share=0.25,
    away_days=(0, 17),
    there_share=0.15,
    foreign_share=0.2,
    spike_ratio=4.5,
    rest_days=-1,
    faded=1.5,
    quiet_days=5,
    needs_future=False,
    repetitions=0,
    unattached_days=2,
)
SEEN_BEFORE = STRICT._replace(present_days=WINDOW_DAYS)
Outcome = Literal["true", "allowed", "no"]


def outcome(holds: bool, *, allowed: bool = False) -> Outcome:
    """`allowed`: what holds may be told, and need not be."""
    return ("allowed" if allowed else "true") if holds else "no"


def is_in_use(state: LineState, limits: Limits) -> bool:
    """Active and present."""
    return state.line.status == "ACTIVE" and state.present(limits.present_days)


def begins_soon(state: LineState, limits: Limits) -> bool:
    """Whether a package begins by itself within 12 hours."""
    return state.next_start is not None and state.next_start <= state.now + limits.lead


def exhausted(state: LineState, limits: Limits) -> Outcome:
    """An active, present line has used up its data: a data package runs that is not paused, none is stocked, none begins within 12 hours.

    Choice: where a balance pays, the user notices nothing, and it may be told.
    """
    used_up = any(package.active for package in state.running(-limits.lag))
    none_left = used_up and not state.stocked(limits.lag, limits.empty_share) and not begins_soon(state, limits)
    return outcome(none_left and is_in_use(state, limits), allowed=state.pays)


def expired(state: LineState, limits: Limits) -> Outcome:
    """An active, present line had data packages, and none of them runs any more, paused ones included; none begins within 12 hours.

    Choice: it may be told where a balance pays, and where another package begins later: then the gap is the product's.
    """
    over = bool(state.packages) and not state.running(limits.lag) and not begins_soon(state, limits)
    later = state.next_start is not None and not begins_soon(state, STRICT)
    return outcome(over and is_in_use(state, limits), allowed=state.pays or later)


def blocked(state: LineState, limits: Limits) -> Outcome:
    """An active, present line has a paused package that runs and has data left, none is stocked, and none begins within 12 hours.

    Choice: it may be told where a balance pays.
    """
    paused = any(not package.active and package.units_left(DATA) for package in state.running(-limits.lag))
    stopped = paused and not state.stocked(limits.lag) and not begins_soon(state, limits)
    return outcome(stopped and is_in_use(state, limits), allowed=state.pays)


def suspended(state: LineState, limits: Limits) -> Outcome:
    """The line is SUSPENDED and missed: it was used in the last 14 days, or a package that it had before is stocked and has begun.

    Choice: it may be told of an INACTIVE line, and where the package has not begun. Packages that a series made since then prove nothing.
    """
    if state.line.status not in ("SUSPENDED", "INACTIVE"):
        return "no"
    held = [package for package in state.stocked(-limits.lag) if package.assigned <= state.line.statuses[-1].start]
    used = bool(state.uses) and state.uses[-1].at >= state.now - limits.suspended_use_days * DAY_SECONDS
    missed = used or any(package.activated is not None for package in held)
    return outcome(missed or bool(held), allowed=not missed or state.line.status == "INACTIVE")


def forbidden(state: LineState, limits: Limits) -> Outcome:
    """Data is switched off on an active, present line that has a stocked package."""
    missed = not limits.needs_package or bool(state.stocked(-limits.lag))
    return outcome(missed and not state.line.allowed_data and is_in_use(state, limits))


def no_coverage(state: LineState, limits: Limits) -> Outcome:
    """An active, present line that may use data is in a country where none of its stocked packages has a network in its zone.

    Choice: it may be told where a balance pays.
    """
    if state.place is None or not state.line.allowed_data or not is_in_use(state, limits):
        return "no"
    useless = any(not state.works_here(package) for package in state.stocked(-limits.lag))
    covered = any(state.works_here(package) for package in state.stocked(limits.lag))
    return outcome(useless and not covered and state.days_there >= limits.arrived_days, allowed=state.pays)


def throttled(state: LineState, limits: Limits) -> Outcome:
    """The speed of an active, present line with a stocked package is limited to less than 10,240 kbit/s, by its package or by hand.

    Choice: it may be told of a line without a stocked package for which a balance pays.
    """
    limit = state.line.bitrate
    if limit == UNLIMITED_BITRATE or not state.line.allowed_data or not is_in_use(state, limits):
        return "no"
    slow = int(limit.removeprefix("KB_")) < limits.slow_kbps
    return outcome(slow and (bool(state.stocked()) or state.pays), allowed=not state.stocked())


STEERED_SESSIONS, STEERED_SHARE_DAYS = 3, 7


def mis_steered(state: LineState, limits: Limits) -> Outcome:
    """An active, present line used half or more of its data of the last 7 days on networks beside those that its packages work on.

    Counted is data in countries where the zone of a stocked package, which the line had by then, has a network; outside are the networks
    that no such zone has. It takes 3 sessions outside, on 2 days or more. Where sessions outside were refused because nobody pays, sessions
    are counted instead of bytes. Whether a steering list or chance led there makes no difference.

    Choice: it may be told where fewer sessions were outside, and where the network that saw the line last is outside.
    """
    if state.place is None or not state.line.allowed_data or not is_in_use(state, limits):
        return "no"
    stocked = state.stocked(-limits.lag)
    sessions = state.sessions_there(stocked, STEERED_SHARE_DAYS)
    outside = [session for session in sessions if session.outside]
    by_size = all(session.size for session in outside)
    part, whole = (sum(session.size if by_size else 1 for session in some) for some in (outside, sessions))
    mostly = bool(outside) and part >= limits.outside_share * whole
    often = len(outside) >= STEERED_SESSIONS and len({session.at // DAY_SECONDS for session in outside}) > 1
    return outcome(mostly or state.is_beside(stocked), allowed=not (mostly and often))


FEWEST_DAYS_OF_NEED = 7


def wrong_package(state: LineState, limits: Limits) -> Outcome:
    """The cheapest packages for what an active, present line used cost half of what its customer pays or less, and 5 EUR less a month.

    What covers the use of the last four weeks, which packages there are, what they cost in 30 days, and what the customer pays now, is as
    docs/intelligence.md says of optimize_package, but all that was used must be covered; what calls and messages were charged outside of
    packages is charged with other packages, too. The line was used on 7 of the 28 days or more.

    Choice: it may be told of a line that was used on fewer days, and where the search for the cheapest packages had to be cut short.
    """
    if state.monthly_price < limits.saving or not is_in_use(state, limits):
        return "no"
    now, best = state.monthly_price, state.cheapest_price
    then = 0 if best is None else best.price + state.lasting_charges
    cheaper = best is not None and then <= limits.price_share * now and now - then >= limits.saving
    seldom = state.days_used(-WINDOW_DAYS, 0) < FEWEST_DAYS_OF_NEED
    return outcome(cheaper, allowed=seldom or best is None or not best.certain)


def high_cost(state: LineState, limits: Limits) -> Outcome:
    """In the last four weeks networks charged 5 EUR more for an active, present line than its customer pays, and half as much again.

    The customer pays what use outside of packages was charged, and the whole price of each package that was assigned or ran in these weeks.

    Choice: where it is such a loss only because of packages by the part of their life that lay in these weeks, it may be told.
    """
    if not is_in_use(state, limits):
        return "no"
    cost = sum(cdr.reseller_cost for cdr in state.records)
    most, least = state.income(whole=True), state.income(whole=False)
    sure = cost - most >= max(limits.loss, limits.loss_share * most)
    return outcome(sure or cost - least >= max(limits.loss, limits.loss_share * least), allowed=not sure)


DAYS_BEFORE_LEAVING, FEWEST_DAYS_AT_HOME = 56, 10


def abroad(state: LineState, limits: Limits) -> Outcome:
    """An active, present line has been in a country for 1 to 14 days where nobody expects it.

    The stay began on the first day with use there that has none in another country after it. In the 56 days before, the line was used on 10
    days or more: on most of them in another country, its home, in the present one on 5 % of them at most, and out of its home on 10 %.

    Choice: it may be told of a line that is out of its home country more often, if the present country is new.
    """
    if state.place is None or not is_in_use(state, limits):
        return "no"
    began = state.today - state.days_there
    before = [places for day, places in state.countries_by_day.items() if began - DAYS_BEFORE_LEAVING <= day < began]
    if len(before) < FEWEST_DAYS_AT_HOME or not limits.away_days[0] <= state.days_there <= limits.away_days[1]:
        return "no"
    days = Counter(iso2 for places in before for iso2 in places)
    home = min(days, key=lambda iso2: (-days[iso2], iso2))
    new = home != state.place.iso2 and days[state.place.iso2] <= limits.there_share * len(before)
    return outcome(new, allowed=sum(bool(places - {home}) for places in before) > limits.foreign_share * len(before))


SPIKE_DAYS, SPIKE_OVER_OTHER_DAYS, FEWEST_OTHER_DAYS, LEAST_SPIKE_BYTES = 7, 1.5, 6, 1_000_000


def spike(state: LineState, limits: Limits) -> Outcome:
    """On one of the last 7 whole days the line used 5 times as much data as on the median of its other days, and a megabyte more.

    The other days are those of the last four weeks with data, 6 or more. It is also one and a half times any of them that is no such day.

    Choice: one of the three weeks before may be told.
    """
    days = list(spike_days(state, limits))
    return outcome(bool(days), allowed=all(day < state.today - SPIKE_DAYS for day in days))


def spike_days(state: LineState, limits: Limits) -> Iterator[int]:
    data = state.data_by_day
    for day, size in data.items():
        others = [other for each, other in data.items() if each != day]
        if len(others) < FEWEST_OTHER_DAYS or size < limits.spike_ratio * (usual := median(others)):
            continue
        dearest = max((other for other in others if other < limits.spike_ratio * usual), default=0)
        if size >= SPIKE_OVER_OTHER_DAYS * dearest and size - usual >= LEAST_SPIKE_BYTES:
            yield day


SILENT_DAYS, SILENCE_CHANCE, FEWEST_RHYTHM_DAYS = 5, 0.001, 14


def silence(state: LineState, limits: Limits) -> Outcome:
    """An active line has been without use for 5 whole days or more, and for longer than its rhythm explains.

    The rhythm is the share of days with use, of the 28 days up to the last use (14 or more, from the first use on), with one day of use and
    one of rest added. A line that is used by chance on such a share of days, half of them or more, rests for so long once in a thousand
    times or less: 5 days at 75 %, 7 at 65 %, 10 at 50 %.

    Choice: after four weeks it may be told.
    """
    needed = days_of_unusual_rest(state) if state.line.status == "ACTIVE" and state.used_days else None
    quiet = state.today - 1 - state.used_days[-1] if state.used_days else 0
    return outcome(needed is not None and quiet >= needed + limits.rest_days, allowed=quiet > WINDOW_DAYS)


def days_of_unusual_rest(state: LineState) -> int | None:
    """None: the line is used too rarely, or was for too short a time."""
    first, last = state.used_days[0], state.used_days[-1]
    days = min(WINDOW_DAYS, last - first + 1)
    share = (sum(day > last - days for day in state.used_days) + 1) / (days + 2)
    if days < FEWEST_RHYTHM_DAYS or share < 0.5:
        return None
    return max(SILENT_DAYS, ceil(log(SILENCE_CHANCE) / log(1 - share)))


FADED_DAYS, DAYS_BEFORE_FADING, FEWEST_DAYS_BEFORE_FADING = 14, 28, 5


def churn(state: LineState, limits: Limits) -> Outcome:
    """An active line fades out: it is used half as often as before or less, not at all in the last 7 days, and not in the next four weeks.

    Compared are the last 14 whole days and the 28 before them, 5 of them or more with use. The next four weeks are those of a copy of the
    network that lives on, in which customers buy as before.

    Choice: a line that will not be used any more and had not faded so may be told: nobody could know.
    """
    if state.line.status != "ACTIVE" or not state.used_days:
        return "no"
    before, last = state.days_used(-FADED_DAYS - DAYS_BEFORE_FADING, -FADED_DAYS), state.days_used(-FADED_DAYS, 0)
    rarer = before >= FEWEST_DAYS_BEFORE_FADING and limits.faded * last / FADED_DAYS <= before / DAYS_BEFORE_FADING
    faded = rarer and not state.days_used(-limits.quiet_days, 1)
    return outcome(faded) if not limits.needs_future else outcome(not state.used_later, allowed=not faded)


def series_running_on_suspended(state: LineState, limits: Limits) -> Outcome:
    """A series will make another package on a line that is not ACTIVE: SUSPENDED, INACTIVE or DISCONNECTED.

    A series that waits for the first use makes none. One whose packages are wanted is no trouble of its own: `suspended` explains it.
    """
    runs = any(left >= limits.repetitions for left in state.repetitions_left)
    return outcome(runs and state.line.status != "ACTIVE")


def never_attached(state: LineState, limits: Limits) -> Outcome:
    """An active line has had a data package for 3 days or longer, and no network has ever seen it."""
    since = min((package.assigned for package in state.packages), default=state.now)
    waited = since <= state.now - limits.unattached_days * DAY_SECONDS
    return outcome(waited and state.line.status == "ACTIVE" and state.line.sighting is None)


RULES: Mapping[FleetCause, Callable[[LineState, Limits], Outcome]] = {
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
    "series_running_on_suspended": series_running_on_suspended,
    "never_attached": never_attached,
}


class LineTruth(NamedTuple):
    """What must be found of a line (`true`), what may be told of it, which true causes are borderline, and which false ones near misses."""

    true: frozenset[FleetCause]
    allowed: frozenset[FleetCause]
    borderline: frozenset[FleetCause]
    near: frozenset[FleetCause]

    @property
    def causes(self) -> list[FleetCause]:
        """What is true, in the order of verdicts."""
        return [cause for cause in FLEET_CAUSES if cause in self.true]


def fleet_truth(network: World, later: World, *, reseller_id: int | None = None) -> dict[str, LineTruth]:
    """By ICCID, the truth about the lines that customers have: all of them, or those of a reseller.

    `later` is the same network four weeks on, in which customers went on as before. Neither world is changed.
    """
    observed = ObservedNetwork(network, later)
    return {
        line.iccid: line_truth(LineState(observed, line))
        for line in network.lines.values()
        if line.sim.status != "FREE" and line.status not in ("PENDING", "END_OF_LIFE") and reseller_id in (None, line.reseller_id)
    }


def line_truth(state: LineState) -> LineTruth:
    """Cause by cause, in the order of verdicts, so that the first of two that explain each other is the one that is true."""
    true: list[FleetCause] = []
    allowed: set[FleetCause] = set()
    explained: set[FleetCause] = set()
    for cause, rule in RULES.items():
        now, before = rule(state, STRICT), rule(state, SEEN_BEFORE)
        if now == "true" and cause not in explained:
            true.append(cause)
        elif before != "no":
            allowed.add(cause)
        if before == "true":
            explained.update(EXPLAINS.get(cause, ()))
    allowed |= explained - {*true}
    borderline: set[FleetCause] = {cause for cause in true if RULES[cause](state, TIGHT) != "true"}
    near: set[FleetCause] = {cause for cause in FLEET_CAUSES if cause not in (*true, *allowed) and RULES[cause](state, LOOSE) == "true"}
    return LineTruth(frozenset(true), frozenset(allowed), frozenset(borderline), frozenset(near))


class CauseScore(NamedTuple):
    """How well a cause was found. `missed` and `false` are ICCIDs, in order."""

    right: int
    missed: tuple[str, ...]
    false: tuple[str, ...]

    @property
    def recall(self) -> float:
        """Of what is true, the share that was told; nothing to find is found."""
        return self.right / (self.right + len(self.missed)) if self.right + len(self.missed) else 1.0

    @property
    def precision(self) -> float:
        """Of what was told, without what is allowed, the share that is true."""
        return self.right / (self.right + len(self.false)) if self.right + len(self.false) else 1.0


def score_causes(told: Mapping[str, Set[FleetCause]], truths: Mapping[str, LineTruth]) -> dict[FleetCause, CauseScore]:
    """Holds what was `told`, causes by ICCID, against the truth. What is told of a line that no customer has is false."""
    return {cause: score_cause(cause, told, truths) for cause in FLEET_CAUSES}


def score_cause(cause: FleetCause, told: Mapping[str, Set[FleetCause]], truths: Mapping[str, LineTruth]) -> CauseScore:
    said = {iccid for iccid, causes in told.items() if cause in causes}
    true = {iccid for iccid, truth in truths.items() if cause in truth.true}
    open_ = {iccid for iccid, truth in truths.items() if cause in truth.allowed}
    return CauseScore(len(said & true), tuple(sorted(true - said)), tuple(sorted(said - true - open_)))


def add_scores(scores: Iterable[CauseScore]) -> CauseScore:
    """All of them as one."""
    rows = list(scores)
    return CauseScore(
        sum(row.right for row in rows),
        tuple(iccid for row in rows for iccid in row.missed),
        tuple(iccid for row in rows for iccid in row.false),
    )
