"""Which unusual countries a line entered, and where it is now: by registrations, by locations that were pushed to us, and by its use.

Where they contradict each other about where a line is, the newest registration that the charging system tells is believed first, then
the newest location that was pushed to us, then its use by day. Each of them alone tells that a line was somewhere.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import orjson

from operations.fleet.wire_rows import day_start, ordinal
from operations.intelligence.verdicts.facts import VerdictFacts
from operations.intelligence.verdicts.rules import DAYS_BEFORE_LEAVING, FEWEST_DAYS_AT_HOME, THERE_SHARE

SightingSource = Literal["registration", "push", "use"]
TRUST: tuple[SightingSource, ...] = ("registration", "push", "use")
"""The most trusted first."""
VISIT_GAP_DAYS = 14
"""Choice: whoever comes back within two weeks goes on with the same visit; that is as long as a line counts as abroad."""
ENTRIES_KEPT = 5
"""The newest entries of a line that are kept."""


class CountrySighting(NamedTuple):
    """A line was in a country at a moment, Unix seconds; of use it is the beginning of the UTC day."""

    country: str
    at: float
    source: SightingSource


class UnusualEntry(NamedTuple):
    """An entry into a country that is unusual for a line. `at`: the first sighting, Unix seconds; `evidence`: the first of each source,
    the most trusted first; `there`: the line is there by what is trusted most."""

    country: str
    at: float
    usual: list[str]
    evidence: list[tuple[SightingSource, float]]
    there: bool


NO_ENTRY = ("", 0.0, "")


def sightings_of_facts(facts: VerdictFacts, pushed: Sequence[CountrySighting]) -> list[CountrySighting]:
    """All sightings of a line in ninety days. A registration whose time was not asked for counts where use of its day says the same."""
    found = [CountrySighting(country, day_start(day), "use") for day, places in facts.countries_by_day.items() for country in places]
    found += [each for each in pushed if each.at <= facts.now]
    line, here = facts.line, facts.country
    if here is not None and line.sighted > 0:
        found.append(CountrySighting(here, line.sighted, "registration"))
    elif here is not None and here in facts.countries_by_day.get(ordinal(line.last_used), ()):
        found.append(CountrySighting(here, line.last_used, "registration"))
    return found


def present_country(facts: VerdictFacts, sightings: Sequence[CountrySighting]) -> str | None:
    """Where the line is: where it registered last, whenever that was, else by the newest sighting of what is trusted most."""
    newest = max(sightings, key=lambda one: (-TRUST.index(one.source), one.at), default=None)
    return facts.country or (None if newest is None else newest.country)


def find_entries(facts: VerdictFacts, pushed: Sequence[CountrySighting]) -> list[UnusualEntry]:
    """The entries of a line into countries where it hardly ever was before, newest first.

    Choice: a country is usual where the line was on more than one in twenty of its days with a sighting in the 56 days before; without ten
    such days nobody can say what is usual.
    """
    sightings = sightings_of_facts(facts, pushed)
    places: dict[int, set[str]] = {}
    for one in sightings:
        places.setdefault(ordinal(one.at), set()).add(one.country)
    here = present_country(facts, sightings)
    found: list[UnusualEntry] = []
    for country in sorted({one.country for one in sightings}):
        there = sorted((one for one in sightings if one.country == country), key=lambda one: (one.at, one.source))
        for visit in visits_of(there):
            usual = usual_countries(places, ordinal(visit[0].at))
            if usual and country not in usual:
                is_there = here == country and visit[-1] == there[-1]
                found.append(UnusualEntry(country, first_moment(visit), usual, evidence_of(visit), is_there))
    return sorted(found, key=lambda entry: (-entry.at, entry.country))[:ENTRIES_KEPT]


def visits_of(sightings: Sequence[CountrySighting]) -> list[list[CountrySighting]]:
    """The sightings in one country, which are in the order of time, by visits."""
    visits: list[list[CountrySighting]] = []
    for one in sightings:
        if visits and ordinal(one.at) - ordinal(visits[-1][-1].at) <= VISIT_GAP_DAYS:
            visits[-1].append(one)
        else:
            visits.append([one])
    return visits


def usual_countries(places: Mapping[int, set[str]], first: int) -> list[str]:
    """Where the line was before the day `first`, most days first; none where too few days are known."""
    before = [countries for day, countries in places.items() if first - DAYS_BEFORE_LEAVING <= day < first]
    if len(before) < FEWEST_DAYS_AT_HOME:
        return []
    days = Counter(country for countries in before for country in countries)
    return sorted((one for one in days if days[one] > THERE_SHARE * len(before)), key=lambda one: (-days[one], one))


def first_moment(visit: Sequence[CountrySighting]) -> float:
    """The first sighting: of those of the first day one with a time of its own, which use by day has not."""
    day = ordinal(visit[0].at)
    exact = [one.at for one in visit if one.source != "use" and ordinal(one.at) == day]
    return float(int(min(exact, default=day_start(day))))


def evidence_of(visit: Sequence[CountrySighting]) -> list[tuple[SightingSource, float]]:
    firsts: dict[SightingSource, float] = {}
    for one in visit:
        firsts.setdefault(one.source, one.at)
    return [(source, firsts[source]) for source in TRUST if source in firsts]


def entry_columns(facts: VerdictFacts, pushed: Sequence[CountrySighting]) -> tuple[str, float, str]:
    """The newest entry of a line: country, moment (Unix seconds), and JSON of this and earlier entries."""
    found = find_entries(facts, pushed)
    return (found[0].country, found[0].at, orjson.dumps([list(each) for each in found]).decode()) if found else NO_ENTRY


def entries_of_text(text: str) -> list[UnusualEntry]:
    """The entries that `entry_columns` wrote."""
    return [UnusualEntry(country, at, usual, [(source, first) for source, first in evidence], there)
            for country, at, usual, evidence, there in orjson.loads(text)]  # fmt: skip
