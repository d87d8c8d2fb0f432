"""What stands out in a line's last four weeks: data spikes, silences and spikes of cost outside packages, each with what was expected.

Spikes: the cube root of a day's figure is compared. It makes sums of sessions, which are skewed, nearly normal (Wilson and Hilferty 1931),
and multiplying all figures by a number changes nothing. The centre is the median of the line's days of the same class, and the scale is
their MAD; where days are few, both are drawn towards the values of more days. So it is a Hampel identifier (Hampel 1974) whose scale
cannot collapse.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from datetime import date, timedelta
from itertools import groupby
from math import sqrt
from statistics import NormalDist, median
from typing import Literal, NamedTuple

from operations.intelligence.lines.usage import InterUseModel, LineCalendar, inter_use_model, silence_odds

MAD_TO_DEVIATION = 1.4826
"""Makes the MAD of normal values their standard deviation."""


def robust_deviation(distances: Iterable[float]) -> float:
    """The scale of `distances` from a centre: their median, scaled to a standard deviation (Rousseeuw and Croux 1993)."""
    return MAD_TO_DEVIATION * median(abs(distance) for distance in distances)


def pooled_deviation(scale: float, count: int, usual: float, weight: float) -> float:
    """`scale`, of `count` values, drawn towards `usual`: variances are averaged, and `usual` counts as `weight` values."""
    return sqrt((count * scale**2 + weight * usual**2) / (count + weight))


SPIKE_THRESHOLD = 2.8
"""Robust standard deviations."""
FALSE_SPIKES_PER_1000 = 2.6
"""Of normal days so many in 1,000 lie beyond: the rate that the threshold is chosen by. docs/intelligence.md has what was measured."""
ROOT_ROUNDING = 1e-9
"""Of the median: roots of equal figures may differ by so little once they were averaged."""
SPIKE_DAYS_NEEDED = 6
"""Days with use that a verdict takes."""
DAY_CLASS_WEIGHT = 4.0
"""Days that the median of all days counts for beside those of a class."""
USUAL_SPIKE_SCALE, USUAL_SCALE_WEIGHT = 0.25, 28.0
"""Of the median: the scale that days of sums of sessions have. Choice: it counts as much as a whole window of the line's own days."""


class DaySample(NamedTuple):
    """A day with use: its place in the window, its figure, and the class of days that it belongs to."""

    place: int
    figure: int
    kind: Hashable


class UsageSpike(NamedTuple):
    """A day that stands out, and between what its figure would not."""

    place: int
    figure: int
    least: int
    most: int
    score: float


def find_spikes(samples: Sequence[DaySample], floor: int) -> list[UsageSpike]:
    """The days that exceed the threshold, and `floor`. The rest is measured again without them until no day stands out."""
    found: dict[int, UsageSpike] = {}
    rest = list(samples)
    while len(rest) >= SPIKE_DAYS_NEEDED:
        new = {spike.place: spike for spike in outlying_days(rest, floor)}
        if not new:
            break
        found |= new
        rest = [sample for sample in rest if sample.place not in new]
    return [found[place] for place in sorted(found)]


def outlying_days(samples: Sequence[DaySample], floor: int) -> list[UsageSpike]:
    roots = [sample.figure ** (1 / 3) for sample in samples]
    usual = median(roots)
    centres = [usual_of_day(place, samples, roots, usual) for place in range(len(samples))]
    distances = [root - centre for root, centre in zip(roots, centres, strict=True)]
    above = [distance for distance in distances if distance >= -ROOT_ROUNDING * usual]  # a day just as usual is no day below
    scale = pooled_deviation(
        max(robust_deviation(distances), robust_deviation(above) if above else 0.0),
        len(samples),
        USUAL_SPIKE_SCALE * usual,
        USUAL_SCALE_WEIGHT,
    )
    scale = scale or floor ** (1 / 3) / SPIKE_THRESHOLD  # most days had nothing: the floor decides
    found: list[UsageSpike] = []
    for sample, centre, distance in zip(samples, centres, distances, strict=True):
        if distance > SPIKE_THRESHOLD * scale and sample.figure - centre**3 >= floor:
            least = round(max(0.0, centre - SPIKE_THRESHOLD * scale) ** 3)
            most = max(round((centre + SPIKE_THRESHOLD * scale) ** 3), round(centre**3) + floor)
            found.append(UsageSpike(sample.place, sample.figure, least, most, round(distance / scale, 1)))
    return found


def usual_of_day(place: int, samples: Sequence[DaySample], roots: Sequence[float], usual: float) -> float:
    """The usual value of other days of the same class; a day is not compared with itself."""
    kind = samples[place].kind
    own = [roots[other] for other, sample in enumerate(samples) if sample.kind == kind and other != place]
    return (len(own) * median(own) + DAY_CLASS_WEIGHT * usual) / (len(own) + DAY_CLASS_WEIGHT) if own else usual


SILENCE_ODDS_LIMIT = 0.001
"""How likely a silence has to be at most: about as rare as what the threshold of spikes lets by."""
REGULAR_USE_SHARE, REGULAR_USE_DAYS = 0.5, 8
"""Share of days with use, and such days, that a regular line has."""
SILENCE_DAY_LIMIT = 60


class UsageSilence(NamedTuple):
    """Where it begins, how long it is, how long the line's usual rests let one be, and whether it lasts."""

    place: int
    days: int
    most: int
    score: float
    lasting: bool


def find_silences(used: Sequence[bool]) -> list[UsageSilence]:
    """The silences that the days around them do not explain. `used` begins with the line's first day."""
    found: list[UsageSilence] = []
    place = 0
    for day, run in groupby(used):
        days = len(list(run))
        if not day and place > 0:
            silence = unusual_silence(used, place, days)
            found += [silence] if silence is not None else []
        place += days
    return found


def unusual_silence(used: Sequence[bool], place: int, days: int) -> UsageSilence | None:
    """A silence, unless the line's rests on its other days let it be."""
    inter_use = inter_use_model([*used[:place], *used[place + days :]])
    if inter_use.used < REGULAR_USE_DAYS or inter_use.used < REGULAR_USE_SHARE * inter_use.days:
        return None
    odds = silence_odds(inter_use, days)
    if odds > SILENCE_ODDS_LIMIT:
        return None
    return UsageSilence(
        place, days, longest_usual_silence(inter_use), round(NormalDist().inv_cdf(1 - max(odds, 1e-12)), 1), place + days == len(used)
    )


def longest_usual_silence(inter_use: InterUseModel) -> int:
    """The days that a silence of this line may last before it is unusual."""
    return next(days for days in range(SILENCE_DAY_LIMIT) if silence_odds(inter_use, days + 1) <= SILENCE_ODDS_LIMIT)


AnomalyKind = Literal["spike", "silence", "cost"]
AnomalyContext = Literal["abroad", "first_time_abroad", "weekend", "outside_package", "lasting"]
SPIKE_BYTES_MINIMUM, SPIKE_COST_MINIMUM = 1_000_000, 10_000_000
"""Choice: a megabyte more than usual is no news, whatever the line, and neither are ten euros (in millionths) outside packages."""
COST_SPIKE_RATIO = 1.5
"""Choice: times the dearest other day. Lines that live from a balance have dear days of all sizes, and one more is no news."""
SATURDAY = 5


class LineAnomaly(NamedTuple):
    """What was seen and between what it was expected: bytes of a spike, whole days of a silence, micro-euros of a cost."""

    kind: AnomalyKind
    day: date
    days: int
    observed: int
    least: int
    most: int
    score: float
    country: str
    usual_country: str
    words: tuple[AnomalyContext, ...]


class LineAnomalies(NamedTuple):
    """Of a line: how many of its days could be compared, and what stood out, by day."""

    line_days: int
    anomalies: tuple[LineAnomaly, ...]


def find_anomalies(calendar: LineCalendar, *, active: bool) -> LineAnomalies:
    """All anomalies of a line. Choice: a silence that lasts is none where the line is not `active`, since its status says why."""
    places = LinePlaces(calendar)
    data = data_spikes(calendar, places)
    bursts = {spike.place for spike in data}
    found = [spike_anomaly("spike", spike, calendar, places) for spike in data]
    found += [spike_anomaly("cost", spike, calendar, places) for spike in cost_spikes(calendar) if spike.place not in bursts]
    found += [silence_anomaly(silence, calendar) for silence in find_silences(calendar.used) if active or not silence.lasting]
    compared = sum(day is not None and day.data_bytes > 0 for day in calendar.days)
    return LineAnomalies(compared if compared >= SPIKE_DAYS_NEEDED else 0, tuple(sorted(found, key=lambda anomaly: anomaly.day)))


class LinePlaces:
    """Where the line lives, and where it was."""

    def __init__(self, calendar: LineCalendar) -> None:
        days = Counter(iso2 for countries in calendar.countries for iso2 in countries)
        self._countries = calendar.countries
        self.home = min(days, key=lambda iso2: (-days[iso2], iso2), default="")

    def abroad(self, place: int) -> str | None:
        """The first country of the day that is not home."""
        return next((iso2 for iso2 in self._countries[place] if iso2 != self.home), None)

    def first_time(self, place: int, iso2: str) -> bool:
        """Whether the line was in no other country but home before, as far as the days go."""
        seen = next((day for day, countries in enumerate(self._countries) if iso2 in countries), place)
        return seen > 0 and not any(self.abroad(day) for day in range(seen))


def data_spikes(calendar: LineCalendar, places: LinePlaces) -> list[UsageSpike]:
    """Days with much data. Each is compared with days of its class: abroad, weekend, weekday."""
    samples = [
        DaySample(place, day.data_bytes, "abroad" if places.abroad(place) else is_weekend(day.day))
        for place, day in enumerate(calendar.days)
        if day is not None and day.data_bytes > 0
    ]
    return find_spikes(samples, SPIKE_BYTES_MINIMUM)


def cost_spikes(calendar: LineCalendar) -> list[UsageSpike]:
    """Days with high costs outside packages, compared with all days with use."""
    samples = [DaySample(place, max(0, day.subscriber_cost), None) for place, day in enumerate(calendar.days) if day is not None]
    found = find_spikes(samples, SPIKE_COST_MINIMUM)
    apart = {spike.place for spike in found}
    dearest = max((sample.figure for sample in samples if sample.place not in apart), default=0)
    return [spike for spike in found if spike.figure >= COST_SPIKE_RATIO * dearest]


def spike_anomaly(kind: AnomalyKind, spike: UsageSpike, calendar: LineCalendar, places: LinePlaces) -> LineAnomaly:
    day, abroad = calendar.window.first + timedelta(days=spike.place), places.abroad(spike.place)
    words: list[AnomalyContext] = []
    if abroad is not None:
        words.append("first_time_abroad" if places.first_time(spike.place, abroad) else "abroad")
    if is_weekend(day):
        words.append("weekend")
    use = calendar.days[spike.place]
    if use is not None and use.subscriber_cost > 0:
        words.append("outside_package")
    observed, country = spike.figure, abroad or places.home
    return LineAnomaly(kind, day, 1, observed, spike.least, spike.most, spike.score, country, places.home, tuple(words))


def silence_anomaly(silence: UsageSilence, calendar: LineCalendar) -> LineAnomaly:
    skipped = len(calendar.days) - len(calendar.used)
    day = calendar.window.first + timedelta(days=skipped + silence.place)
    words: tuple[AnomalyContext, ...] = ("lasting",) if silence.lasting else ()
    return LineAnomaly("silence", day, silence.days, silence.days, 0, silence.most, silence.score, "", "", words)


def is_weekend(day: date) -> bool:
    return day.weekday() >= SATURDAY
