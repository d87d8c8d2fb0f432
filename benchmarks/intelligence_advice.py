"""Whether advice works and costs nobody more: what a steering list holds, which no answer tells, is looked up in the network itself."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from benchmarks.intelligence_ask import Answer, Asker
from benchmarks.intelligence_reference import Reference
from benchmarks.intelligence_scores import Score, micro, score
from simulators.network.charging import find_tariff_rule, rate_unit, tariff_rate, usage_cost
from simulators.network.entities import DATA, Cdr, Line
from simulators.network.world import World

MICRO = 1_000_000
HELPED = "mis-steered lines that a list would help: advised"
"""The one measure that is far from whole: what lists hold is concluded from lines, and in small fleets there are few."""
STEERING = ("change_steering_list", "push_steering")
ROUNDING = 100
"""Micro-euros that sums of rounded records may differ by."""


def led_to(world: World, line: Line, list_id: int | None, iso2: str) -> int | None:
    """The network of a country that a steering list leads a line to; none of a list that says nothing of the country."""
    allowed = world.profiles[line.profile_id].network_ids
    wanted = world.steering[list_id].network_ids if list_id in world.steering else ()
    return next((one for one in wanted if one in allowed and world.networks[one].iso2 == iso2), None)


def list_told(row: Answer, line: Line, world: World) -> int | None:
    """The list that holds for the line when the advice is followed."""
    given = [step["arguments"]["listId"] for step in row["do"] if "listId" in step["arguments"]]
    return given[0] if given else line.steering_list_id or world.accounts[line.account_id].steering_list_id


def is_covered(world: World, line: Line, network_id: int) -> bool:
    """Whether a package with data left works there."""
    usable = [package for package in line.packages if package.in_date(world.now) and package.units_left(DATA)]
    return any(network_id in world.zones[package.zone_id].network_ids for package in usable)


def covers_or_none(world: World, line: Line, network_id: int) -> bool:
    """Whether a network is covered, or the line has no package in its country that could cover anything there."""
    usable = [package for package in line.packages if package.in_date(world.now) and package.units_left(DATA)]
    inside = {one for package in usable for one in world.zones[package.zone_id].network_ids}
    iso2 = world.networks[network_id].iso2
    return network_id in inside or not any(world.networks[one].iso2 == iso2 for one in inside)


def paid_there(world: World, line: Line, records: Iterable[Cdr], network_id: int) -> tuple[int, int]:
    """What networks would have charged, and the customer have paid, for the same use on one network; data that packages have is free."""
    reseller, cost, charged = world.resellers[line.reseller_id], 0, 0
    zone = [package for package in line.packages if package.in_date(world.now) and network_id in world.zones[package.zone_id].network_ids]
    room, covered = sum(package.units_left(DATA) for package in zone), is_covered(world, line, network_id)
    for cdr in records:
        buy = find_tariff_rule(world, reseller.buy_tariff_id, network_id, line.sim.sponsor_id, world.now)
        sell = find_tariff_rule(world, line.mobile_plan_id or reseller.mobile_plan_id, network_id, line.sim.sponsor_id, world.now)
        per = rate_unit(cdr.usage_type)
        cost += usage_cost(tariff_rate(buy, cdr.usage_type), cdr.quantity, per)
        rest = cdr.quantity - cdr.in_package if covered else cdr.quantity
        taken = min(rest, room) if cdr.usage_type == DATA else 0
        room -= taken
        charged += usage_cost(tariff_rate(sell, cdr.usage_type), rest - taken, per)
    return cost, charged


def harms_nobody(world: World, line: Line, list_id: int | None, records: Sequence[Cdr], iso2: str | None) -> bool:
    """Whether the same use would have cost neither operator nor customer more, had the list led the line; in one country, or all."""
    by_country: dict[str, list[Cdr]] = {}
    for cdr in records:
        by_country.setdefault(world.networks[cdr.network_id].iso2, []).append(cdr)
    was, then = [0, 0], [0, 0]
    for place, found in by_country.items():
        network = led_to(world, line, list_id, place)
        if network is None or (iso2 is not None and place != iso2):
            continue
        moved = [cdr for cdr in found if cdr.network_id != network]
        for at, amount in enumerate(paid_there(world, line, moved, network)):
            then[at] += amount
        was[0] += sum(cdr.reseller_cost for cdr in moved)
        was[1] += sum(cdr.subscriber_cost for cdr in moved)
    return then[0] <= was[0] + ROUNDING and then[1] <= was[1] + ROUNDING


async def advice(ask: Asker, world: Reference) -> list[Score]:
    """Each action of the audit and of the ranking of costs: it leads where it says, to cover, and costs nobody more."""
    body = {"start": world.first_day.isoformat(), "end": world.last_day.isoformat(), "limit": 500}
    audit = await ask.rows("audit-network-coverage", "lines", {"limit": 200})
    costs = await ask.rows("high-cost-subscribers", "lines", body)
    scores = [
        part for name, rows in (("audit_network_coverage", audit), ("high_cost_subscribers", costs)) for part in judged(name, rows, world)
    ]
    helped = [(row["iccid"], row["action"] in STEERING) for row in audit if row["verdict"] == "mis_steered" and can_be_steered(row, world)]
    margins = [(row["iccid"], micro_of(row["margin_with_packages"]) == true_margin(world, row)) for row in costs]
    scores.append(score("audit_network_coverage", HELPED, helped))
    return [*scores, score("high_cost_subscribers", "margin, with package income", margins)]


def can_be_steered(row: Answer, world: Reference) -> bool:
    """Whether any list leads a line of the audit to a covered network, at no more cost for anybody. Only the network itself can tell."""
    line, planted, iso2 = world.lines[row["iccid"]], world.planted.world, row["country"].lower()
    led = {list_id: led_to(planted, line, list_id, iso2) for list_id in planted.steering}
    good = [list_id for list_id, network in led.items() if network is not None and is_covered(planted, line, network)]
    return any(harms_nobody(planted, line, list_id, world.records(line), None) for list_id in good)


def judged(name: str, rows: Sequence[Answer], world: Reference) -> list[Score]:
    """The steering actions and the offers of one answer."""
    there, harmless, offers = list[tuple[str, bool]](), list[tuple[str, bool]](), list[tuple[str, bool]]()
    planted = world.planted.world
    for row in rows:
        line = world.lines[row["iccid"]]
        if row["action"] in STEERING:
            told, list_id = world.network_of(int(row["leads_to"]["mcc"]), int(row["leads_to"]["mnc"])), list_told(row, line, planted)
            country = planted.networks[told].iso2
            label = f"{row['iccid']} {row['action']} {list_id} in {country}"
            there.append((label, led_to(planted, line, list_id, country) in (told, None) and covers_or_none(planted, line, told)))
            one = country if row["action"] == "push_steering" else None
            harmless.append((label, harms_nobody(planted, line, list_id, world.records(line), one)))
        if row["action"] == "offer_package" and row["saving_customer"] is not None:
            charged = sum(cdr.subscriber_cost for cdr in world.records(line) if cdr.usage_type == DATA)
            offers.append((row["iccid"], 0 < round(row["saving_customer"] * MICRO) < charged))
    return [
        score(name, "steering leads to a covered network", there),
        score(name, "steering costs nobody more", harmless),
        score(name, "offers cost less than was charged", offers),
    ]


def micro_of(euros: float | None) -> int | None:
    """Micro-euros."""
    return None if euros is None else round(euros * MICRO)


def true_margin(world: Reference, row: Answer) -> int:
    """What packages and use brought in, less what networks charged, by the network's own records."""
    line, end = world.lines[row["iccid"]], world.today * 86_400
    first, income = end - 28 * 86_400, 0
    for package in line.packages:
        if package.activated is not None and package.expires is not None and package.expires > package.activated:
            inside = max(0, min(package.expires, end) - max(package.activated, first))
            income += round(Fraction(package.cost * inside, package.expires - package.activated))
    return income + sum(cdr.subscriber_cost for cdr in world.records(line)) - micro(row)
