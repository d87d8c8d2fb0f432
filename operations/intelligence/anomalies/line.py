"""What stands out in a line's last four weeks: data spikes, silences and spikes of cost outside packages, each with what was expected."""

from collections import Counter
from datetime import date, timedelta
from typing import Literal, NamedTuple

from operations.intelligence.anomalies.silences import Silence, silences
from operations.intelligence.anomalies.spikes import FEWEST, Sample, Spike, spikes
from operations.intelligence.lines.calendar import Calendar

Kind = Literal["spike", "silence", "cost"]
Word = Literal["abroad", "first_time_abroad", "weekend", "outside_package", "lasting"]
LEAST_BYTES, LEAST_COST = 1_000_000, 10_000_000
"""Choice: a megabyte more than usual is no news, whatever the line, and neither are ten euros (in millionths) outside packages."""
COST_APART = 1.5
"""Choice: times the dearest other day. Lines that live from a balance have dear days of all sizes, and one more is no news."""
SATURDAY = 5


class Anomaly(NamedTuple):
    """What was seen and between what it was expected: bytes of a spike, whole days of a silence, micro-euros of a cost."""

    kind: Kind
    day: date
    days: int
    observed: int
    least: int
    most: int
    score: float
    country: str
    usual_country: str
    words: tuple[Word, ...]


class Judged(NamedTuple):
    """Of a line: how many of its days could be compared, and what stood out, by day."""

    line_days: int
    anomalies: tuple[Anomaly, ...]


def judged(calendar: Calendar, *, active: bool) -> Judged:
    """Everything about a line. Choice: a silence that lasts is none where the line is not active, since its status says why."""
    places = Places(calendar)
    data = data_spikes(calendar, places)
    bursts = {spike.place for spike in data}
    found = [spike_anomaly("spike", spike, calendar, places) for spike in data]
    found += [spike_anomaly("cost", spike, calendar, places) for spike in cost_spikes(calendar) if spike.place not in bursts]
    found += [silence_anomaly(silence, calendar) for silence in silences(calendar.used) if active or not silence.lasting]
    compared = sum(day is not None and day.data_bytes > 0 for day in calendar.days)
    return Judged(compared if compared >= FEWEST else 0, tuple(sorted(found, key=lambda anomaly: anomaly.day)))


class Places:
    """Where the line lives, and where it was."""

    def __init__(self, calendar: Calendar) -> None:
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


def data_spikes(calendar: Calendar, places: Places) -> list[Spike]:
    """Days of much data, each compared with days of its class: abroad, at weekends, on weekdays."""
    samples = [
        Sample(place, day.data_bytes, "abroad" if places.abroad(place) else is_weekend(day.day))
        for place, day in enumerate(calendar.days)
        if day is not None and day.data_bytes > 0
    ]
    return spikes(samples, LEAST_BYTES)


def cost_spikes(calendar: Calendar) -> list[Spike]:
    """Days that cost much outside packages, among all days with use."""
    samples = [Sample(place, max(0, day.subscriber_cost), None) for place, day in enumerate(calendar.days) if day is not None]
    found = spikes(samples, LEAST_COST)
    apart = {spike.place for spike in found}
    dearest = max((sample.figure for sample in samples if sample.place not in apart), default=0)
    return [spike for spike in found if spike.figure >= COST_APART * dearest]


def spike_anomaly(kind: Kind, spike: Spike, calendar: Calendar, places: Places) -> Anomaly:
    """With where it was."""
    day, abroad = calendar.window.first + timedelta(days=spike.place), places.abroad(spike.place)
    words: list[Word] = []
    if abroad is not None:
        words.append("first_time_abroad" if places.first_time(spike.place, abroad) else "abroad")
    if is_weekend(day):
        words.append("weekend")
    use = calendar.days[spike.place]
    if use is not None and use.subscriber_cost > 0:
        words.append("outside_package")
    observed, country = spike.figure, abroad or places.home
    return Anomaly(kind, day, 1, observed, spike.least, spike.most, spike.score, country, places.home, tuple(words))


def silence_anomaly(silence: Silence, calendar: Calendar) -> Anomaly:
    """On its first day."""
    skipped = len(calendar.days) - len(calendar.used)
    day = calendar.window.first + timedelta(days=skipped + silence.place)
    words: tuple[Word, ...] = ("lasting",) if silence.lasting else ()
    return Anomaly("silence", day, silence.days, silence.days, 0, silence.most, silence.score, "", "", words)


def is_weekend(day: date) -> bool:
    """Saturday or Sunday, UTC."""
    return day.weekday() >= SATURDAY
