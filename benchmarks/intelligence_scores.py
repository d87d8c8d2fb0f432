"""How right each composite is, held against what was planted and what the network's own records say."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.intelligence_ask import Answer, Asker
from benchmarks.intelligence_packages import cheapest, coverable, covers, needs_of, wares_of
from benchmarks.intelligence_reference import Reference

MICRO = 1_000_000
MOST_WEAK = 8
SEARCHED = ("change", "keep", "loses_money", "mis_steered")
"""Verdicts of optimize_package that come with the cheapest set that covers the need."""
WORDS = {
    "exhausted": "package_exhausted",
    "expired": "package_expired",
    "blocked": "package_blocked",
    "suspended": "status_not_active",
    "forbidden": "data_not_allowed",
    "no_coverage": "zone_not_covering",
    "throttled": "throttled",
}
"""The causes that were planted, in the words of diagnose_subscriber."""


class Score(NamedTuple):
    """A share of things that were right. `weak`: the first that were not, and why."""

    composite: str
    measure: str
    right: int
    of: int
    weak: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """From 0 to 1; nothing to find is found."""
        return self.right / self.of if self.of else 1.0


def score(composite: str, measure: str, verdicts: Mapping[str, bool] | Sequence[tuple[str, bool]]) -> Score:
    """Of things with a name, those that were right."""
    rows = list(verdicts.items()) if isinstance(verdicts, Mapping) else list(verdicts)
    weak = [name for name, right in rows if not right]
    return Score(composite, measure, len(rows) - len(weak), len(rows), tuple(weak[:MOST_WEAK]))


def precision_and_recall(composite: str, told: Iterable[str], true: set[str], *, allowed: set[str] | None = None) -> list[Score]:
    """Precision of what was told, where what is allowed is not wrong, and recall of what is true."""
    said, right = list(told), true | (allowed or set())
    return [
        score(composite, "precision", [(one, one in right) for one in said]),
        score(composite, "recall", [(one, one in said) for one in sorted(true)]),
    ]


async def coverage(ask: Asker, world: Reference) -> list[Score]:
    """Mis-steered lines. A line that was outside by chance, and is now, is not told wrongly."""
    truth = world.planted.truth
    rows = await ask.rows("audit-network-coverage", "lines", {"limit": 200})
    told = {row["iccid"]: row for row in rows if row["verdict"] == "mis_steered"}
    true = world.mine(truth.mis_steered)
    scores = precision_and_recall("audit_network_coverage", told, true, allowed=world.mine(truth.strays))
    where = [(iccid, told[iccid]["country"].lower() in truth.mis_steered[iccid]) for iccid in sorted(true & set(told))]
    return [*scores, score("audit_network_coverage", "country", where)]


async def costs(ask: Asker, world: Reference) -> list[Score]:
    """The ranking, every line's cost, and that networks and countries add up to the bill, to the micro-euro."""
    body = {"start": world.first_day.isoformat(), "end": world.last_day.isoformat(), "limit": 500}
    rows = await ask.rows("high-cost-subscribers", "lines", body)
    whole = (await ask.whole("high-cost-subscribers", body))["data"]
    true = {iccid: cost for iccid, cost in world.costs().items() if cost}
    name = "high_cost_subscribers"
    costs_told = [micro(row) for row in rows]
    planted = world.mine(world.planted.truth.high_cost)
    top = {row["iccid"] for row in rows[: 2 * len(planted)]}
    countries = {row["country"]: micro(row) for row in whole["countries"] if micro(row)}
    return [
        score(name, "cost of each line", [(row["iccid"], micro(row) == true.get(row["iccid"], 0)) for row in rows]),
        score(name, "lines with cost", [(iccid, any(row["iccid"] == iccid for row in rows)) for iccid in true]),
        score(name, "ranking", [(str(place), costs_told[place] >= costs_told[place + 1]) for place in range(len(rows) - 1)]),
        score(name, "networks", [(row["iccid"], networks_agree(row, world)) for row in rows]),
        score(name, "bill", {"whole": micro(whole) == sum(true.values()), "countries": countries == world_countries(world)}),
        score(name, "planted among the first 2k", [(iccid, iccid in top) for iccid in sorted(planted)]),
    ]


def micro(row: Answer) -> int:
    """A network cost in micro-euros."""
    return round(row["network_cost"] * MICRO)


def networks_agree(row: Answer, world: Reference) -> bool:
    """Whether each network that is shown costs what its records do, and all together what the line does."""
    true = world.network_costs(world.lines[row["iccid"]])
    shown = {world.network_of(int(one["mcc"]), int(one["mnc"])): micro(one) for one in row["networks"]}
    rest = micro(row["rest"]) if row["rest"] else 0
    agree = all(true.get(network, 0) == cost for network, cost in shown.items()) and len(shown) == len(row["networks"])
    return agree and sum(shown.values()) + rest == micro(row)


def world_countries(world: Reference) -> dict[str, int]:
    """Countries that cost anything."""
    return {country: cost for country, cost in world.country_costs().items() if cost}


async def packages(ask: Asker, world: Reference) -> list[Score]:
    """The price of the cheapest set against a search of ours, and that the set covers the need; and what was planted."""
    rows = await ask.rows("optimize-package", "lines", {"limit": 500})
    exact: list[tuple[str, bool]] = []
    fitting: list[tuple[str, bool]] = []
    for row in rows:
        line = world.lines[row["iccid"]]
        wares = wares_of(world, line)
        needs = coverable(needs_of(world, line), wares)
        if needs is None or row["verdict"] not in SEARCHED:
            continue
        by_id, cover = {ware.template_id: ware for ware in wares}, row["next" if row["best_is_present"] else "best"]
        chosen = [by_id[one["template_id"]] for one in cover["packages"] for _ in range(one["count"])]
        found, told = cheapest(needs, wares), round(cover["package_income"] * MICRO)
        verdict = told == found.price if found.certain else told >= found.price
        exact.append((f"{row['iccid']} {told} for {found.price}{'' if found.certain else ' at least'}", verdict))
        fitting.append((row["iccid"], covers(needs, chosen) and told == sum(ware.price for ware in chosen)))
    told_to_change = {row["iccid"] for row in rows if row["verdict"] == "change" and row["saving_customer"] > 0}
    planted = world.mine(world.planted.truth.wrong_package)
    name = "optimize_package"
    dearer = [
        (row["iccid"], row["best"] is None or row["best"]["total"] <= row["now"]["total"]) for row in rows if row["verdict"] in SEARCHED
    ]
    return [
        score(name, "cheapest price", exact),
        score(name, "set covers the need", fitting),
        score(name, "planted: change", [(iccid, iccid in told_to_change) for iccid in sorted(planted)]),
        score(name, "best costs no more than now", dearer),
    ]


async def country_entry(ask: Asker, world: Reference) -> list[Score]:
    """Lines abroad are elsewhere; all others are where they were seen."""
    abroad = {iccid: places for iccid, places in world.planted.truth.abroad.items() if iccid in world.lines}
    verdicts: dict[str, bool] = {}
    for iccid, (expected, country) in abroad.items():
        data = (await ask.whole("detect-country-entry", {"iccid": iccid, "expectedCountry": expected}))["data"]
        verdicts[iccid] = (data["presence"], data["country"]) == ("elsewhere", country.upper())
    rest: dict[str, bool] = {}
    for iccid, line in world.lines.items():
        if iccid not in abroad:
            seen = world.seen_in(line)
            data = (await ask.whole("detect-country-entry", {"iccid": iccid, "expectedCountry": seen or "NO"}))["data"]
            rest[iccid] = (data["presence"], data["country"]) == ("as_expected" if seen else "never_seen", seen)
    return [score("detect_country_entry", "abroad", verdicts), score("detect_country_entry", "all others", rest)]


async def health(ask: Asker, world: Reference) -> list[Score]:
    """Every count."""
    data = (await ask.whole("fleet-health", {"limit": 500}))["data"]
    counts = [(name, data["lines"][name] == value) for name, value in world.fleet_counts().items()]
    accounts = [
        (f"{row['account_id']} {name}", row[name] == value)
        for row in data["accounts"]
        for name, value in world.account_counts(row["account_id"]).items()
    ]
    return [score("fleet_health", "counts", counts), score("fleet_health", "counts by account", accounts)]


async def market(ask: Asker, world: Reference) -> list[Score]:
    """Countries and packages that are shown by name; the groups that are too small for that are left out here as there."""
    data = (await ask.whole("marketing-intelligence", {"limit": 500}))["data"]
    countries, sales = world.countries(), world.sales()
    places = [
        (row["country"], (row["lines"], row["data_bytes"]) == countries.get(row["country"]))
        for row in data["countries"]
        if row["country"] != "other"
    ]
    packages = [
        (row["name"], (row["lines"], row["sold"], row["sold_before"]) == sales.get(row["template_id"]))
        for row in data["packages"]
        if row["template_id"] is not None
    ]
    whole = sum(bytes_ for _, bytes_ in countries.values())
    segments = {"lines": sum(row["lines"] for row in data["segments"]) == world.fleet_counts()["issued"]}
    segments["bytes"] = sum(row["data_bytes"] for row in data["segments"]) == whole
    name = "marketing_intelligence"
    return [score(name, "countries", places), score(name, "packages", packages), score(name, "segments add up", segments)]


async def diagnosis(ask: Asker, world: Reference) -> list[Score]:
    """The first cause of every planted trouble, and that lines whose data works are called healthy, or named for a problem beside that."""
    troubles = {iccid: cause for iccid, cause in world.planted.truth.troubles.items() if iccid in world.lines}
    found = [(iccid, WORDS[cause], await first_cause(ask, iccid)) for iccid, cause in sorted(troubles.items())]
    healthy = [(iccid, "healthy", await working_word(ask, iccid)) for iccid in world.healthy()]
    name = "diagnose_subscriber"
    return [score(name, "cause", told_of(found)), score(name, "healthy lines", told_of(healthy))]


def told_of(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, bool]]:
    """With what was said instead."""
    return [(f"{iccid} {expected}: {told}", expected == told) for iccid, expected, told in rows]


async def working_word(ask: Asker, iccid: str) -> str:
    """`healthy` where the first cause leaves data working, which it says as its effect; else the cause."""
    first = (await ask.whole("diagnose-subscriber", {"iccid": iccid}))["data"]["causes"][0]
    return "healthy" if first["effect"] == "none" else first["cause"]


async def first_cause(ask: Asker, iccid: str) -> str:
    """In a word."""
    return (await ask.whole("diagnose-subscriber", {"iccid": iccid}))["data"]["first_cause"]
