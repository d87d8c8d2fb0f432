"""How the line of a part lives each day: what it is that day, what is done to it in the morning, and whether it buys."""

from clients.sandbox.ocs import coverage, packages
from clients.sandbox.ocs.entities import DATA, Line, Persona
from clients.sandbox.ocs.seed.history import change_status
from clients.sandbox.ocs.seed.plan import Turn
from clients.sandbox.ocs.seed.plant_parts import Part, Role
from clients.sandbox.ocs.seed.plant_wares import CHEAPEST_LIST
from clients.sandbox.ocs.state import World

AWAY: frozenset[Role] = frozenset({"abroad", "no_coverage", "first_trip", "mis_steered"})
QUIET: frozenset[Role] = frozenset({"pause", "silence"})
STOPPED: frozenset[Role] = frozenset({"blocked", "suspended", "forbidden", "no_coverage"})
ENDING: frozenset[Role] = frozenset({"churn", "exhausted", "expired", *STOPPED})
"""Who buys nothing from its special time on."""
SPIKE_SESSIONS, SPIKE_FACTOR = 20.0, 12.0
GREEDY_SESSIONS = 6.0
GREEDY_BYTES = 130_000_000
MOST_AT_ONCE = 6
MONDAY = 4
"""The first of January 1970 was a Thursday."""


def persona_on(part: Part, line: Line, day: int) -> Persona:
    """How the line lives on a UTC day."""
    special = part.begin <= day < part.end
    if part.role == "churn":
        return fading(part, day)
    if part.role in QUIET:
        return silent(part.base) if special else part.base
    if part.role in AWAY:
        return part.base._replace(home_iso2=part.place) if special else part.base
    if part.role == "spike" and day in part.days:
        return spiking(part.base)
    if part.role == "weekday" and (day - MONDAY) % 7 >= 5:
        return part.base._replace(active_share=0.04)
    if part.role == "throttled" and special and not line.throttled:
        return greedy(part.base, GREEDY_BYTES)
    if part.role == "exhausted" and part.begin <= day < part.begin + 2:
        return greedy(part.base, max(package.data_limit or 0 for package in line.packages) // 3)
    return part.base


def fading(part: Part, day: int) -> Persona:
    """Less often and less each week, then nothing."""
    if day < part.begin:
        return part.base
    if day >= part.end:
        return silent(part.base)
    gone = (day - part.begin) / (part.end - part.begin)
    return part.base._replace(
        active_share=part.base.active_share * (1.0 - gone) ** 1.5,
        session_bytes=int(part.base.session_bytes * (1.0 - 0.5 * gone)),
        travel_iso2=(),
    )


def silent(persona: Persona) -> Persona:
    """Nothing at all, anywhere else either."""
    return persona._replace(active_share=0.0, travel_iso2=())


def spiking(persona: Persona) -> Persona:
    """Many sessions, together a multiple of a day's."""
    size = int(persona.sessions * persona.session_bytes * SPIKE_FACTOR / SPIKE_SESSIONS)
    return persona._replace(active_share=1.0, sessions=SPIKE_SESSIONS, session_bytes=size)


def greedy(persona: Persona, size: int) -> Persona:
    """As much as there is."""
    return persona._replace(active_share=1.0, sessions=GREEDY_SESSIONS, session_bytes=size)


def morning(world: World, part: Part, line: Line, day: int) -> None:
    """What is due before the day begins: the life of the day, a package, and what is done to the line by hand."""
    line.persona = persona_on(part, line, day)
    if line.status == "ACTIVE":
        supply(world, part, line, day)
    if day == part.begin:
        interfere(world, part, line)


def supply(world: World, part: Part, line: Line, day: int) -> None:
    """Buy when nothing is left, before a day of much use as much as that takes, and a last one before the trouble."""
    template = world.templates[part.template_id]
    if day == part.begin and part.role in STOPPED:
        packages.assign(world, line, template, period=None, validity_days=None)
    if day >= part.begin and part.role in ENDING:
        return
    wanted = int(line.persona.sessions * line.persona.session_bytes * 1.7) if day in part.days else 1
    for _ in range(MOST_AT_ONCE):
        if bytes_left(line, world.now) >= wanted:
            return
        packages.assign(world, line, template, period=None, validity_days=None)


def bytes_left(line: Line, now: int) -> int:
    """What the packages of a line still hold."""
    return sum(coverage.left(package, DATA) for package in line.packages if coverage.in_date(package, now))


def interfere(world: World, part: Part, line: Line) -> None:
    """What somebody does to the line by hand."""
    if part.role == "mis_steered":
        line.steering_list_id = CHEAPEST_LIST
    elif part.role == "suspended":
        change_status(world, line, Turn(world.now, "SUSPENDED"))
    elif part.role == "forbidden":
        line.allowed_data = False
    elif part.role == "blocked":
        for package in line.packages:
            packages.set_active(world, package, False)


def settled(part: Part, line: Line, day: int) -> Persona:
    """How the line lives on without mornings: for good as on this day, but who only pauses comes back."""
    return part.base if part.role in ("pause", "weekday", "throttled") else persona_on(part, line, day)
